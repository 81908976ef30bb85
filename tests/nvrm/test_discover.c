/* SPDX-License-Identifier: MIT */
/* Finding the clients and groups of a process, and following them as they come and go. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/nvrm/rig.h"
#include "util/macros.h"

static size_t asks(struct rig *r)
{
	return fake_rm_count(r->fake, FAKE_IOCTL, FAKE_CMD_SHARE);
}

static int refuse(struct rig *r, pid_t pid, enum nvrm_why why)
{
	struct nvrm_process *p = NULL;
	int result = nvrm_process_open(r->n, pid, &p, &r->failure);

	assert_true(result < 0);
	assert_null(p);
	assert_int_equal(r->failure.why, why);
	rig_nothing_left(r);
	return result;
}

/* ---- finding ---- */

static void a_job_has_four_groups_on_its_gpu(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = rig_open(r, JOB);

	assert_int_equal(p->pid, JOB);
	assert_int_equal(p->n_clients, 1);
	assert_int_equal(p->clients[0].handle, client);
	assert_int_equal(p->n_groups, 4);
	for (size_t i = 0; i < p->n_groups; i++) {
		const struct nvrm_group *g = &p->groups[i];

		assert_int_equal(g->gpu, FAKE_GPU);
		assert_int_equal(g->client, client);
		assert_int_equal(g->subdevice, SUBDEVICE);
		assert_int_equal(g->fd, p->clients[0].fd);
		assert_int_equal(g->compute, i == 0);
		assert_int_equal(g->id, i + 1);
		assert_int_equal(g->n_channels, i == 0 ? 8 : 4);
		assert_int_equal(g->slice_us, i == 0 ? NVRM_CUDA_SLICE_US : FAKE_COPY_SLICE_US);
		assert_int_equal(g->own_slice_us, g->slice_us);
		assert_int_equal(g->n_off, 0);
	}
	assert_int_equal(p->groups[0].handle, COMPUTE_GROUP);
	assert_int_equal(fake_rm_descriptors(r->fake), 1);
	nvrm_process_close(p);
}

static void a_young_job_is_found_with_few_questions(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	for (pid_t pid = 100; pid < 120; pid++)
		fake_rm_job(r->fake, pid);
	fake_rm_job(r->fake, JOB);
	for (pid_t pid = 200; pid < 220; pid++)
		fake_rm_job(r->fake, pid);
	p = rig_open(r, JOB);
	assert_in_range(asks(r), 1, 30);
	nvrm_process_close(p);
}

static void a_client_far_below_the_newest_is_found(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p;

	fake_rm_pass_clients(r->fake, 20000);
	p = rig_open(r, JOB);
	assert_int_equal(p->clients[0].handle, client);
	nvrm_process_close(p);
}

static void numbers_that_began_anew_are_found(void **state)
{
	struct rig *r = *state;
	uint32_t client;
	struct nvrm_process *p;

	fake_rm_pass_clients(r->fake, 0xffff0);
	client = fake_rm_job(r->fake, JOB);
	fake_rm_recycle_numbers(r->fake);
	p = rig_open(r, JOB);
	assert_int_equal(p->clients[0].handle, client);
	nvrm_process_close(p);
}

static void the_right_one_of_several_descriptors_is_kept(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	int number;

	fake_rm_spawn(r->fake, JOB, 0, "job");
	for (int i = 0; i < 3; i++)
		fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl");
	fake_rm_open_file(r->fake, JOB, "/dev/nvidia0");
	number = fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl");
	fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl");
	fake_rm_context(r->fake, fake_rm_client(r->fake, JOB, number), FAKE_GPU, 8);
	p = rig_open(r, JOB);
	assert_int_equal(p->n_groups, 4);
	assert_int_equal(fake_rm_descriptors(r->fake), 1);
	nvrm_process_close(p);
}

/* As NVML's, in the same process and through the same descriptor, also newer than the other. */
static void a_client_without_channels_is_passed_over(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p;

	fake_rm_memory(r->fake, fake_rm_client(r->fake, JOB, 3), 1);
	fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl"));
	p = rig_open(r, JOB);
	assert_int_equal(p->n_clients, 1);
	assert_int_equal(p->clients[0].handle, client);
	assert_int_equal(fake_rm_descriptors(r->fake), 1);
	nvrm_process_close(p);
}

static void two_clients_of_a_process_are_both_found(void **state)
{
	struct rig *r = *state;
	uint32_t first, second;
	struct nvrm_process *p;

	fake_rm_add_gpu(r->fake, FAKE_GPU_2, "NVIDIA H200");
	first = fake_rm_job(r->fake, JOB);
	second = fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl"));
	fake_rm_context(r->fake, second, FAKE_GPU_2, 8);
	p = rig_open(r, JOB);
	assert_int_equal(p->n_clients, 2);
	assert_int_equal(p->n_groups, 8);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(p->groups[i].client, i < 4 ? first : second);
		assert_int_equal(p->groups[i].gpu, i < 4 ? FAKE_GPU : FAKE_GPU_2);
	}
	nvrm_process_close(p);
}

static void a_client_on_two_gpus_has_groups_on_both(void **state)
{
	struct rig *r = *state;
	uint32_t client;
	struct nvrm_process *p;

	fake_rm_add_gpu(r->fake, FAKE_GPU_2, "NVIDIA H200");
	client = fake_rm_job(r->fake, JOB);
	fake_rm_context(r->fake, client, FAKE_GPU_2, 8);
	p = rig_open(r, JOB);
	assert_int_equal(p->n_clients, 1);
	assert_int_equal(p->n_groups, 8);
	assert_int_equal(p->groups[0].gpu, FAKE_GPU);
	assert_int_equal(p->groups[4].gpu, FAKE_GPU_2);
	nvrm_process_close(p);
}

/* ---- who is refused ---- */

static void who_has_no_control_device_has_no_context(void **state)
{
	struct rig *r = *state;

	fake_rm_spawn(r->fake, JOB, 0, "sh");
	assert_int_equal(refuse(r, JOB, NVRM_WHY_NO_CONTEXT), -ENOENT);
}

static void who_has_no_channels_yet_has_no_context(void **state)
{
	struct rig *r = *state;

	fake_rm_spawn(r->fake, JOB, 0, "starting");
	fake_rm_memory(
		r->fake,
		fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl")), 3);
	assert_int_equal(refuse(r, JOB, NVRM_WHY_NO_CONTEXT), -ENOENT);
}

static void who_is_not_there_is_told(void **state)
{
	struct rig *r = *state;

	assert_int_equal(refuse(r, JOB, NVRM_WHY_EXITED), -ESRCH);
}

static void another_users_process_is_refused(void **state)
{
	struct rig *r = *state;

	fake_rm_spawn(r->fake, JOB, 1000, "job");
	fake_rm_context(
		r->fake,
		fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl")),
		FAKE_GPU, 8);
	fake_rm_set_caller(r->fake, 1001);
	assert_int_equal(refuse(r, JOB, NVRM_WHY_NO_RIGHT), -EPERM);
	fake_rm_set_caller(r->fake, 1000);
	nvrm_process_close(rig_open(r, JOB));
	fake_rm_set_caller(r->fake, 0);
	nvrm_process_close(rig_open(r, JOB));
}

static void without_a_driver_there_is_nothing_to_open(void **state)
{
	struct rig *r = *state;

	fake_rm_job(r->fake, JOB);
	fake_rm_set_version(r->fake, NULL);
	assert_int_equal(refuse(r, JOB, NVRM_WHY_NO_DRIVER), -ENODEV);
}

static void more_clients_than_can_be_kept_are_refused(void **state)
{
	struct rig *r = *state;

	fake_rm_spawn(r->fake, JOB, 0, "job");
	for (int i = 0; i < NVRM_CLIENTS + 1; i++)
		fake_rm_context(r->fake,
				fake_rm_client(r->fake, JOB,
					       fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl")),
				FAKE_GPU, 8);
	assert_int_equal(refuse(r, JOB, NVRM_WHY_TOO_MANY), -ENOSPC);
}

/* ---- contexts that come and go ---- */

static void nothing_new_is_told_as_such_and_costs_little(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	fake_rm_forget_calls(r->fake);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 0);
	assert_in_range(fake_rm_count(r->fake, FAKE_ANY, 0), 1, 150);
	assert_in_range(asks(r), 0, 1);
	nvrm_process_close(p);
}

static void a_context_that_comes_later_is_seen(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB), group;
	struct nvrm_process *p = rig_open(r, JOB);

	group = fake_rm_context(r->fake, client, FAKE_GPU, 8);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 1);
	assert_int_equal(p->n_groups, 8);
	assert_int_equal(p->groups[4].handle, group);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 0);
	nvrm_process_close(p);
}

static void a_context_behind_thousands_of_new_buffers_is_seen(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = rig_open(r, JOB);

	fake_rm_memory(r->fake, client, 5000);
	fake_rm_context(r->fake, client, FAKE_GPU, 8);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 1);
	assert_int_equal(p->n_groups, 8);
	nvrm_process_close(p);
	p = rig_open(r, JOB);
	assert_int_equal(p->n_groups, 8);
	nvrm_process_close(p);
}

static void a_context_that_goes_is_forgotten(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB), group;
	struct nvrm_process *p;

	group = fake_rm_context(r->fake, client, FAKE_GPU, 8);
	p = rig_open(r, JOB);
	assert_int_equal(p->n_groups, 8);
	fake_rm_drop_context(r->fake, client, COMPUTE_GROUP);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 1);
	assert_int_equal(p->n_groups, 4);
	assert_int_equal(p->groups[0].handle, group);
	nvrm_process_close(p);
}

static void a_context_that_takes_the_numbers_of_another_is_seen_in_time(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p;

	fake_rm_context(r->fake, client, FAKE_GPU, 8);
	fake_rm_drop_context(r->fake, client, COMPUTE_GROUP);
	p = rig_open(r, JOB);
	assert_int_equal(p->n_groups, 4);
	fake_rm_reuse(r->fake, client, COMPUTE_GROUP);
	assert_int_equal(fake_rm_context(r->fake, client, FAKE_GPU, 8), COMPUTE_GROUP);
	for (int i = 0; i < 40 && p->n_groups < 8; i++) {
		fake_rm_advance(r->fake, NSEC_PER_SEC);
		assert_true(nvrm_process_refresh(p, &r->failure) >= 0);
	}
	assert_int_equal(p->n_groups, 8);
	nvrm_process_close(p);
}

/* It was never disabled: what is known of the other is not true of it. */
static void a_context_that_takes_the_numbers_of_a_held_one_is_held_anew(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = rig_open(r, JOB);

	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure), 0);
	fake_rm_drop_context(r->fake, client, COMPUTE_GROUP);
	fake_rm_reuse(r->fake, client, COMPUTE_GROUP);
	fake_rm_context(r->fake, client, FAKE_GPU, 8);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 1);
	assert_int_equal(nvrm_groups_off(p, FAKE_GPU), 0);
	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure), 0);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 20);
	nvrm_process_close(p);
}

static void a_process_without_any_context_left_may_make_a_new_one(void **state)
{
	struct rig *r = *state;
	uint32_t client = fake_rm_job(r->fake, JOB);
	struct nvrm_process *p = rig_open(r, JOB);

	fake_rm_drop_context(r->fake, client, COMPUTE_GROUP);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 1);
	assert_int_equal(p->n_groups, 0);
	fake_rm_context(r->fake, client, FAKE_GPU, 8);
	fake_rm_advance(r->fake, 2 * NSEC_PER_SEC);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 1);
	assert_int_equal(p->n_groups, 4);
	nvrm_process_close(p);
}

static void a_client_that_comes_later_is_seen_in_time(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	uint32_t second;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	second = fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl"));
	fake_rm_context(r->fake, second, FAKE_GPU, 8);
	fake_rm_advance(r->fake, 60 * NSEC_PER_SEC);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 1);
	assert_int_equal(p->n_clients, 2);
	assert_int_equal(p->n_groups, 8);
	nvrm_process_close(p);
}

/* A process with two clients closes the descriptor of the first, and opens @then in its place. */
static void close_one_of_two(struct rig *r, const char *then, uint64_t after_ns)
{
	struct nvrm_process *p;
	uint32_t client, second;
	int number;

	fake_rm_spawn(r->fake, JOB, 0, "job");
	number = fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl");
	client = fake_rm_client(r->fake, JOB, number);
	fake_rm_context(r->fake, client, FAKE_GPU, 8);
	second = fake_rm_client(r->fake, JOB, fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl"));
	fake_rm_context(r->fake, second, FAKE_GPU, 8);
	p = rig_open(r, JOB);
	assert_int_equal(p->n_clients, 2);
	fake_rm_close_file(r->fake, JOB, number);
	if (then)
		assert_int_equal(fake_rm_open_file(r->fake, JOB, then), number);
	fake_rm_advance(r->fake, after_ns);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 1);
	assert_int_equal(p->n_clients, 1);
	assert_int_equal(p->clients[0].handle, second);
	nvrm_process_close(p);
}

/* What is borrowed would keep its client alive, and that the job's memory. */
static void a_client_the_process_gave_up_is_given_back_at_once(void **state)
{
	close_one_of_two(*state, NULL, 0);
}

static void also_when_another_file_has_its_number(void **state)
{
	close_one_of_two(*state, "/dev/null", 0);
}

static void or_in_time_when_that_is_the_drivers_too(void **state)
{
	close_one_of_two(*state, "/dev/nvidiactl", 30 * NSEC_PER_SEC);
}

/* ---- the end ---- */

/* As a program's own dup2() and close() do. */
static void a_file_that_has_another_number_is_no_trouble(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	fake_rm_move_file(r->fake, JOB, (int)p->clients[0].name.number);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 0);
	fake_rm_forget_calls(r->fake);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 0);
	assert_int_equal(fake_rm_count(r->fake, FAKE_BORROW, 0), 0);
	nvrm_process_close(p);
}

static void the_end_is_told_and_nothing_is_kept(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	p = rig_open(r, JOB);
	assert_false(nvrm_process_ended(p));
	fake_rm_exit(r->fake, JOB);
	assert_true(nvrm_process_ended(p));
	assert_int_equal(fake_rm_pinned(r->fake), 1);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), -ESRCH);
	assert_int_equal(r->failure.why, NVRM_WHY_EXITED);
	assert_int_equal(fake_rm_pinned(r->fake), 0);
	assert_int_equal(p->n_groups, 0);
	nvrm_process_close(p);
	nvrm_process_close(NULL);
}

/* ---- trouble, everywhere ---- */

static void a_job_among_others(struct rig *r)
{
	fake_rm_job(r->fake, OTHER);
	fake_rm_context(r->fake, fake_rm_job(r->fake, JOB), FAKE_GPU, 8);
}

static void open_and_refresh(struct rig *r)
{
	struct nvrm_process *p = NULL;

	if (nvrm_process_open(r->n, JOB, &p, &r->failure) < 0) {
		assert_null(p);
		assert_int_not_equal(r->failure.why, NVRM_WHY_NONE);
		return;
	}
	nvrm_process_refresh(p, &r->failure);
	fake_rm_advance(r->fake, 60 * NSEC_PER_SEC);
	nvrm_process_refresh(p, &r->failure);
	nvrm_process_close(p);
}

static const struct rig_scene finding = { a_job_among_others, open_and_refresh, NULL };

static void a_job_that_ends_between_any_two_calls_leaves_nothing(void **state)
{
	rig_try_all(&finding, &(struct fake_fault){ .exits = JOB });
}

static void any_call_may_fail_with_any_error(void **state)
{
	static const int errors[] = { EIO, EPERM, EMFILE, ENOMEM, ENODEV, ESRCH };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		rig_try_all(&finding, &(struct fake_fault){ .error = errors[i] });
}

static void any_call_may_be_refused_with_any_status(void **state)
{
	static const int statuses[] = { NVRM_GPU_IS_LOST,
					NVRM_INSUFFICIENT_PERMISSIONS,
					NVRM_INVALID_CLIENT,
					NVRM_INVALID_OBJECT_HANDLE,
					NVRM_TIMEOUT,
					NVRM_NOT_SUPPORTED,
					0xffff };

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		rig_try_all(&finding,
			    &(struct fake_fault){ .op = FAKE_IOCTL, .status = statuses[i] });
	rig_try_all(&finding, &(struct fake_fault){ .cmd = NVRM_CTRL_GET_HANDLE_INFO,
						    .status = NVRM_OBJECT_NOT_FOUND });
}

/* ---- trying again ---- */

static int open_again(struct rig *r, struct nvrm_quest *quest, struct nvrm_process **ret)
{
	struct nvrm_process *p;
	int result;

	fake_rm_forget_calls(r->fake);
	assert_int_equal(nvrm_process_begin(r->n, JOB, &p, &r->failure), 0);
	p->quest = quest;
	result = nvrm_process_refresh(p, &r->failure);
	if (result < 0)
		nvrm_process_close(p);
	else
		*ret = p;
	return MIN(result, 0);
}

/* As those that count what the GPUs do: they have them open all the time. */
static void who_has_no_context_is_not_asked_for_all_clients_again(void **state)
{
	struct rig *r = *state;
	struct nvrm_quest quest = { 0 };
	struct nvrm_process *p;
	uint32_t idle;
	int number;

	fake_rm_spawn(r->fake, JOB, 0, "counter");
	number = fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl");
	fake_rm_open_file(r->fake, JOB, "/dev/nvidia0");
	idle = fake_rm_client(r->fake, JOB, number);
	fake_rm_pass_clients(r->fake, 20000);
	assert_int_equal(open_again(r, &quest, &p), -EOPNOTSUPP);
	assert_true(asks(r) > 20000);
	assert_int_equal(open_again(r, &quest, &p), -EOPNOTSUPP);
	assert_in_range(asks(r), 1, 8);
	fake_rm_context(r->fake, idle, FAKE_GPU, FAKE_CONNECTIONS);
	assert_int_equal(open_again(r, &quest, &p), 0);
	assert_int_equal(p->clients[0].handle, idle);
	nvrm_process_close(p);
}

static void a_newer_client_is_found_when_it_is_tried_again(void **state)
{
	struct rig *r = *state;
	struct nvrm_quest quest = { 0 };
	struct nvrm_process *p;
	uint32_t client;
	int number;

	fake_rm_spawn(r->fake, JOB, 0, "job");
	number = fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl");
	fake_rm_open_file(r->fake, JOB, "/dev/nvidia0");
	fake_rm_pass_clients(r->fake, 20000);
	assert_true(open_again(r, &quest, &p) < 0);
	client = fake_rm_client(r->fake, JOB, number);
	fake_rm_context(r->fake, client, FAKE_GPU, FAKE_CONNECTIONS);
	assert_int_equal(open_again(r, &quest, &p), 0);
	assert_int_equal(p->clients[0].handle, client);
	nvrm_process_close(p);
}

/* ---- forking ---- */

static void contexts_that_were_inherited_are_their_makers_alone(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_job(r->fake, JOB);
	fake_rm_fork(r->fake, JOB, OTHER);
	fake_rm_fork(r->fake, OTHER, OTHER + 1);
	fake_rm_pass_clients(r->fake, 20000);
	assert_int_equal(refuse(r, OTHER, NVRM_WHY_NO_CONTEXT), -ENOENT);
	assert_int_equal(refuse(r, OTHER + 1, NVRM_WHY_NO_CONTEXT), -ENOENT);
	p = rig_open(r, JOB);
	assert_int_equal(p->n_groups, 4);
	nvrm_process_close(p);
}

static void who_inherited_contexts_may_have_others_of_its_own(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	uint32_t client;
	int number;

	fake_rm_job(r->fake, JOB);
	fake_rm_fork(r->fake, JOB, OTHER);
	number = fake_rm_open_file(r->fake, OTHER, "/dev/nvidiactl");
	client = fake_rm_client(r->fake, OTHER, number);
	fake_rm_context(r->fake, client, FAKE_GPU, FAKE_CONNECTIONS);
	p = rig_open(r, OTHER);
	assert_int_equal(p->n_clients, 1);
	assert_int_equal(p->clients[0].handle, client);
	assert_int_equal(p->n_groups, 4);
	nvrm_process_close(p);
}

static void a_job_whose_parent_has_contexts_too_is_opened(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	int number;

	fake_rm_spawn(r->fake, JOB, 0, "launcher");
	fake_rm_fork(r->fake, JOB, OTHER);
	number = fake_rm_open_file(r->fake, JOB, "/dev/nvidiactl");
	fake_rm_open_file(r->fake, JOB, "/dev/nvidia0");
	fake_rm_context(r->fake, fake_rm_client(r->fake, JOB, number), FAKE_GPU, FAKE_CONNECTIONS);
	number = fake_rm_open_file(r->fake, OTHER, "/dev/nvidiactl");
	fake_rm_context(r->fake, fake_rm_client(r->fake, OTHER, number), FAKE_GPU,
			FAKE_CONNECTIONS);
	p = rig_open(r, OTHER);
	assert_int_equal(p->n_groups, 4);
	nvrm_process_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
		CASE(a_job_has_four_groups_on_its_gpu),
		CASE(a_young_job_is_found_with_few_questions),
		CASE(a_client_far_below_the_newest_is_found),
		CASE(numbers_that_began_anew_are_found),
		CASE(the_right_one_of_several_descriptors_is_kept),
		CASE(a_client_without_channels_is_passed_over),
		CASE(two_clients_of_a_process_are_both_found),
		CASE(a_client_on_two_gpus_has_groups_on_both),
		CASE(who_has_no_control_device_has_no_context),
		CASE(who_has_no_channels_yet_has_no_context),
		CASE(who_is_not_there_is_told),
		CASE(another_users_process_is_refused),
		CASE(without_a_driver_there_is_nothing_to_open),
		CASE(more_clients_than_can_be_kept_are_refused),
		CASE(who_has_no_context_is_not_asked_for_all_clients_again),
		CASE(a_newer_client_is_found_when_it_is_tried_again),
		CASE(contexts_that_were_inherited_are_their_makers_alone),
		CASE(who_inherited_contexts_may_have_others_of_its_own),
		CASE(a_job_whose_parent_has_contexts_too_is_opened),
		CASE(nothing_new_is_told_as_such_and_costs_little),
		CASE(a_context_that_comes_later_is_seen),
		CASE(a_context_behind_thousands_of_new_buffers_is_seen),
		CASE(a_context_that_goes_is_forgotten),
		CASE(a_context_that_takes_the_numbers_of_another_is_seen_in_time),
		CASE(a_context_that_takes_the_numbers_of_a_held_one_is_held_anew),
		CASE(a_process_without_any_context_left_may_make_a_new_one),
		CASE(a_client_that_comes_later_is_seen_in_time),
		CASE(a_client_the_process_gave_up_is_given_back_at_once),
		CASE(also_when_another_file_has_its_number),
		CASE(or_in_time_when_that_is_the_drivers_too),
		CASE(a_file_that_has_another_number_is_no_trouble),
		CASE(the_end_is_told_and_nothing_is_kept),
		CASE(a_job_that_ends_between_any_two_calls_leaves_nothing),
		CASE(any_call_may_fail_with_any_error),
		CASE(any_call_may_be_refused_with_any_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
