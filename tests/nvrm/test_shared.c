/* SPDX-License-Identifier: MIT */
/* Who shares a context through MPS, and who only says so. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gpu/nvrm/machine.h"
#include "tests/nvrm/rig.h"
#include "util/macros.h"

#define SERVER 300
#define SERVER_NAME "nvidia-cuda-mps-server"
#define USER 1000
#define HOSTILE 1001

static int refuse(struct rig *r, pid_t pid)
{
	struct nvrm_process *p = NULL;
	int result = nvrm_process_open(r->n, pid, &p, &r->failure);

	assert_true(result < 0);
	assert_null(p);
	assert_int_equal(r->failure.why, NVRM_WHY_SHARED);
	rig_nothing_left(r);
	return result;
}

/* A process with a context; its client. */
static uint32_t start(struct rig *r, pid_t pid, uid_t uid, const char *comm)
{
	uint32_t client;
	int number;

	fake_rm_spawn(r->fake, pid, uid, comm);
	number = fake_rm_open_file(r->fake, pid, "/dev/nvidiactl");
	fake_rm_open_file(r->fake, pid, "/dev/nvidia0");
	client = fake_rm_client(r->fake, pid, number);
	fake_rm_context(r->fake, client, FAKE_GPU, 8);
	return client;
}

/* It has the GPU open, but what it does with it cannot be found. */
static void start_opaque(struct rig *r, pid_t pid, uid_t uid, const char *comm)
{
	fake_rm_spawn(r->fake, pid, uid, comm);
	fake_rm_open_file(r->fake, pid, "/dev/nvidiactl");
	fake_rm_open_file(r->fake, pid, "/dev/nvidia0");
}

static void start_mps(struct rig *r, uid_t server_uid, uid_t client_uid)
{
	uint32_t server = start(r, SERVER, server_uid, SERVER_NAME);
	uint32_t client = start(r, JOB, client_uid, "job");

	fake_rm_share_group(r->fake, client, COMPUTE_GROUP, server, COMPUTE_GROUP);
}

/* ---- MPS ---- */

static void whose_group_is_also_the_servers_is_refused(void **state)
{
	struct rig *r = *state;

	start_mps(r, 0, 0);
	assert_int_equal(refuse(r, JOB), -EOPNOTSUPP);
	assert_int_equal(refuse(r, SERVER), -EOPNOTSUPP);
}

static void a_users_server_serves_that_user(void **state)
{
	struct rig *r = *state;

	start_mps(r, USER, USER);
	assert_int_equal(refuse(r, JOB), -EOPNOTSUPP);
	assert_int_equal(refuse(r, SERVER), -EOPNOTSUPP);
}

static void roots_server_serves_everybody(void **state)
{
	struct rig *r = *state;

	start_mps(r, 0, USER);
	assert_int_equal(refuse(r, JOB), -EOPNOTSUPP);
	assert_int_equal(refuse(r, SERVER), -EOPNOTSUPP);
}

static void who_does_without_mps_beside_it_is_opened(void **state)
{
	struct rig *r = *state;

	start_mps(r, 0, 0);
	fake_rm_job(r->fake, OTHER);
	nvrm_process_close(rig_open(r, OTHER));
}

static void a_server_whose_file_was_replaced_is_known(void **state)
{
	struct rig *r = *state;

	start_mps(r, 0, USER);
	fake_rm_set_exe(r->fake, SERVER, "/opt/x/" SERVER_NAME " (deleted)");
	assert_int_equal(refuse(r, JOB), -EOPNOTSUPP);
}

/* It starts servers, and has no context that anybody could share. */
static void the_control_daemon_serves_nobody(void **state)
{
	struct rig *r = *state;

	start_opaque(r, SERVER, 0, "nvidia-cuda-mps-control");
	start(r, JOB, USER, "job");
	nvrm_process_close(rig_open(r, JOB));
}

static void a_server_that_may_not_be_looked_at_is_taken_for_ours(void **state)
{
	struct rig *r = *state;

	start_mps(r, 0, 0);
	start(r, OTHER, USER, "job");
	fake_rm_set_caller(r->fake, USER);
	assert_int_equal(refuse(r, OTHER), -EOPNOTSUPP);
}

static void roots_server_that_cannot_be_looked_into_is_taken_for_ours(void **state)
{
	struct rig *r = *state;

	start_opaque(r, SERVER, 0, SERVER_NAME);
	start(r, JOB, USER, "job");
	assert_int_equal(refuse(r, JOB), -EOPNOTSUPP);
}

static void who_begins_to_share_a_group_is_let_go_and_refused(void **state)
{
	struct rig *r = *state;
	uint32_t client = start(r, JOB, USER, "job"), server, group;
	struct nvrm_process *p = rig_open(r, JOB);

	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure), 0);
	server = start(r, SERVER, USER, SERVER_NAME);
	group = fake_rm_context(r->fake, client, FAKE_GPU, 8);
	fake_rm_share_group(r->fake, client, group, server, COMPUTE_GROUP);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), -EOPNOTSUPP);
	assert_int_equal(r->failure.why, NVRM_WHY_SHARED);
	assert_int_equal(fake_rm_disabled(r->fake, JOB), 0);
	nvrm_process_close(p);
}

static void a_server_is_let_go_when_its_first_client_comes(void **state)
{
	struct rig *r = *state;
	uint32_t server = start(r, SERVER, USER, SERVER_NAME), client;
	struct nvrm_process *p = rig_open(r, SERVER);

	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure), 0);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), 0);
	client = start(r, JOB, USER, "job");
	fake_rm_share_group(r->fake, client, COMPUTE_GROUP, server, COMPUTE_GROUP);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), -EOPNOTSUPP);
	assert_int_equal(r->failure.why, NVRM_WHY_SHARED);
	assert_int_equal(fake_rm_disabled(r->fake, SERVER), 0);
	nvrm_process_close(p);
}

/* Whether somebody shares its context can change without a change of its own. */
static void a_server_that_nobody_answers_for_is_not_held(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;

	fake_rm_answer_later(r->fake);
	nvrm_free(r->n);
	r->n = fake_rm_nvrm(r->fake);
	start(r, SERVER, 0, SERVER_NAME);
	p = rig_open(r, SERVER);
	assert_int_equal(nvrm_hold(&p, 1, FAKE_GPU, NULL, &r->failure), 0);
	fake_rm_silence(r->fake, SERVER);
	fake_rm_give_up(r->fake);
	assert_int_equal(nvrm_process_refresh(p, &r->failure), -ETIMEDOUT);
	assert_int_equal(nvrm_groups_off(p, NVRM_ALL_GPUS), 0);
	nvrm_process_close(p);
}

/* ---- who only says so ---- */

/* Whatever it is called, and whether or not it can be looked into. */
static void another_users_process_serves_nobody(void **state)
{
	struct rig *r = *state;

	start(r, JOB, USER, "job");
	start_opaque(r, SERVER, HOSTILE, SERVER_NAME);
	start(r, SERVER + 1, HOSTILE, SERVER_NAME);
	nvrm_process_close(rig_open(r, JOB));
	start_opaque(r, SERVER + 2, HOSTILE, SERVER_NAME);
	fake_rm_set_exe(r->fake, SERVER + 2, "/srv/hostile/" SERVER_NAME);
	nvrm_process_close(rig_open(r, JOB));
}

static void it_is_not_even_looked_into(void **state)
{
	struct rig *r = *state;

	start(r, JOB, USER, "job");
	start(r, SERVER, HOSTILE, SERVER_NAME);
	fake_rm_forget_calls(r->fake);
	nvrm_process_close(rig_open(r, JOB));
	assert_int_equal(fake_rm_count(r->fake, FAKE_PIDFD, 0), 1);
}

static void a_users_own_fake_concerns_his_own_jobs_alone(void **state)
{
	struct rig *r = *state;

	start_opaque(r, SERVER, HOSTILE, SERVER_NAME);
	start(r, JOB, HOSTILE, "job");
	start(r, OTHER, USER, "job");
	fake_rm_job(r->fake, OTHER + 1);
	assert_int_equal(refuse(r, JOB), -EOPNOTSUPP);
	nvrm_process_close(rig_open(r, OTHER));
	nvrm_process_close(rig_open(r, OTHER + 1));
}

static void what_a_process_calls_itself_is_nothing(void **state)
{
	struct rig *r = *state;

	start_opaque(r, SERVER, 0, SERVER_NAME);
	fake_rm_set_exe(r->fake, SERVER, "/usr/bin/python3.11");
	start(r, JOB, 0, "job");
	nvrm_process_close(rig_open(r, JOB));
}

static void a_job_that_renames_itself_is_opened(void **state)
{
	struct rig *r = *state;

	start(r, JOB, HOSTILE, SERVER_NAME);
	fake_rm_set_exe(r->fake, JOB, "/usr/bin/python3.11");
	nvrm_process_close(rig_open(r, JOB));
}

static void a_job_that_renames_its_executable_is_opened(void **state)
{
	struct rig *r = *state;

	start(r, JOB, HOSTILE, SERVER_NAME);
	fake_rm_set_exe(r->fake, JOB, "/srv/hostile/" SERVER_NAME);
	start(r, OTHER, HOSTILE, "job");
	start_opaque(r, OTHER + 1, USER, "Xorg"); /* nobody who could be its client */
	nvrm_process_close(rig_open(r, JOB));
}

static void a_file_that_is_called_nearly_so_is_no_server(void **state)
{
	static const char *const files[] = {
		SERVER_NAME,
		"/usr/bin/" SERVER_NAME "-2",
		"/usr/bin/my-" SERVER_NAME,
		"/" SERVER_NAME "/python3",
		" (deleted)",
		"",
	};
	struct rig *r = *state;

	fake_rm_spawn(r->fake, JOB, 0, "job");
	assert_false(nvrm_is_mps_server(r->n, JOB));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		fake_rm_set_exe(r->fake, JOB, files[i]);
		assert_false(nvrm_is_mps_server(r->n, JOB));
	}
	fake_rm_set_exe(r->fake, JOB, "/" SERVER_NAME);
	assert_true(nvrm_is_mps_server(r->n, JOB));
	assert_false(nvrm_is_mps_server(r->n, OTHER));
}

/* ---- in steps ---- */

#define FEW 16u

static void processes_are_gone_through_in_steps(void **state)
{
	struct rig *r = *state;
	struct nvrm_process *p;
	unsigned int left;
	int result;

	start_mps(r, USER, USER);
	for (pid_t pid = 100; pid < 140; pid++)
		fake_rm_spawn(r->fake, pid, 0, "idler");
	assert_int_equal(nvrm_process_begin(r->n, JOB, &p, &r->failure), 0);
	do {
		fake_rm_forget_calls(r->fake);
		left = FEW;
		result = nvrm_process_look(p, &left, &r->failure);
		assert_in_range(fake_rm_count(r->fake, FAKE_ANY, 0), 0, 3 * FEW + 20);
	} while (result == -EINPROGRESS);
	assert_int_equal(result, -EOPNOTSUPP);
	assert_int_equal(r->failure.why, NVRM_WHY_SHARED);
	nvrm_process_close(p);
}

static void a_server_and_its_client(struct rig *r)
{
	start_mps(r, USER, USER);
}

static void try_both(struct rig *r)
{
	static const pid_t pids[] = { JOB, SERVER };

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		struct nvrm_process *p = NULL;

		if (nvrm_process_open(r->n, pids[i], &p, &r->failure) >= 0)
			nvrm_process_close(p);
	}
}

static void whatever_fails_and_whoever_ends_meanwhile_nothing_is_kept(void **state)
{
	const struct rig_scene scene = { a_server_and_its_client, try_both, NULL };

	rig_try_all(&scene, &(struct fake_fault){ .error = EIO });
	rig_try_all(&scene, &(struct fake_fault){ .exits = JOB });
	rig_try_all(&scene, &(struct fake_fault){ .exits = SERVER });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
		CASE(whose_group_is_also_the_servers_is_refused),
		CASE(a_users_server_serves_that_user),
		CASE(roots_server_serves_everybody),
		CASE(who_does_without_mps_beside_it_is_opened),
		CASE(a_server_whose_file_was_replaced_is_known),
		CASE(the_control_daemon_serves_nobody),
		CASE(a_server_that_may_not_be_looked_at_is_taken_for_ours),
		CASE(roots_server_that_cannot_be_looked_into_is_taken_for_ours),
		CASE(who_begins_to_share_a_group_is_let_go_and_refused),
		CASE(a_server_is_let_go_when_its_first_client_comes),
		CASE(a_server_that_nobody_answers_for_is_not_held),
		CASE(another_users_process_serves_nobody),
		CASE(it_is_not_even_looked_into),
		CASE(a_users_own_fake_concerns_his_own_jobs_alone),
		CASE(what_a_process_calls_itself_is_nothing),
		CASE(a_job_that_renames_itself_is_opened),
		CASE(a_job_that_renames_its_executable_is_opened),
		CASE(a_file_that_is_called_nearly_so_is_no_server),
		CASE(processes_are_gone_through_in_steps),
		CASE(whatever_fails_and_whoever_ends_meanwhile_nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
