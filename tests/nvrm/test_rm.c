/* SPDX-License-Identifier: MIT */
/* Every call of the driver, one by one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/nvrm/rig.h"
#include "util/macros.h"

struct loan {
	struct rig *r;
	int fd, pidfd;
	uint32_t client;
};

static struct loan lend(struct rig *r, pid_t pid)
{
	struct loan b = { .r = r };

	b.client = fake_rm_job(r->fake, pid);
	b.pidfd = r->n->transport->pidfd(r->n->data, pid);
	assert_true(b.pidfd >= 0);
	b.fd = fake_rm_borrow(r->fake, pid);
	assert_true(b.fd >= 0);
	return b;
}

static void give_back(struct loan *b)
{
	b->r->n->transport->close_fd(b->r->n->data, b->fd);
	close(b->pidfd);
}

static void a_new_client_is_the_newest_and_ends_with_its_descriptor(void **state)
{
	struct rig *r = *state;
	uint32_t old = fake_rm_job(r->fake, JOB), client = 0;
	int fd = r->n->transport->open(r->n->data);

	assert_int_equal(nvrm_new_client(r->n, fd, &client), NVRM_OK);
	assert_int_equal(client, old + 1);
	assert_int_equal(nvrm_whose(r->n, fd, client), NVRM_THIS);
	r->n->transport->close_fd(r->n->data, fd);
	fd = r->n->transport->open(r->n->data);
	assert_int_equal(nvrm_whose(r->n, fd, client), NVRM_NOBODYS);
	r->n->transport->close_fd(r->n->data, fd);
}

static void whose_a_client_is_is_asked_without_a_line_in_the_log(void **state)
{
	struct rig *r = *state;
	struct loan b = lend(r, JOB);
	uint32_t other = fake_rm_job(r->fake, OTHER);

	assert_int_equal(nvrm_whose(r->n, b.fd, b.client), NVRM_THIS);
	assert_int_equal(nvrm_whose(r->n, b.fd, other), NVRM_SOMEBODYS);
	assert_int_equal(nvrm_whose(r->n, b.fd, other + 1), NVRM_NOBODYS);
	assert_int_equal(nvrm_whose(r->n, b.fd, 0xdeadbeef), NVRM_NOBODYS);
	fake_rm_exit(r->fake, OTHER);
	assert_int_equal(nvrm_whose(r->n, b.fd, other), NVRM_NOBODYS);
	give_back(&b);
}

static void whose_with_an_answer_nobody_knows_is_an_error(void **state)
{
	struct rig *r = *state;
	struct loan b = lend(r, JOB);

	fake_rm_fault(r->fake,
		      &(struct fake_fault){ .cmd = FAKE_CMD_SHARE, .status = NVRM_GPU_IS_LOST });
	assert_true(nvrm_whose(r->n, b.fd, b.client) < 0);
	fake_rm_fault(r->fake, &(struct fake_fault){ .cmd = FAKE_CMD_SHARE, .error = EIO });
	assert_int_equal(nvrm_whose(r->n, b.fd, b.client), -EIO);
	give_back(&b);
}

static void an_object_has_a_class_and_a_parent(void **state)
{
	struct rig *r = *state;
	struct loan b = lend(r, JOB);
	uint32_t class = 1, parent = 1;

	assert_int_equal(nvrm_get_object(r->n, b.fd, b.client, SUBDEVICE, &class, &parent), 0);
	assert_int_equal(class, NVRM_CLASS_SUBDEVICE);
	assert_int_equal(parent, SUBDEVICE - 1);
	assert_int_equal(nvrm_get_object(r->n, b.fd, b.client, 0x5cffffff, &class, &parent),
			 NVRM_OBJECT_NOT_FOUND);
	assert_int_equal(class, NVRM_CLASS_SUBDEVICE);
	assert_int_equal(parent, SUBDEVICE - 1);
	give_back(&b);
}

static void an_object_that_goes_between_two_questions_is_none(void **state)
{
	struct rig *r = *state;
	struct loan b = lend(r, JOB);
	uint32_t class = 1, parent = 1;

	fake_rm_fault(r->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_GET_HANDLE_INFO,
						     .after = 1,
						     .status = NVRM_OBJECT_NOT_FOUND });
	assert_int_equal(nvrm_get_object(r->n, b.fd, b.client, SUBDEVICE, &class, &parent),
			 NVRM_OBJECT_NOT_FOUND);
	assert_int_equal(class, 1);
	assert_int_equal(parent, 1);
	give_back(&b);
}

static void a_subdevice_knows_its_gpu_and_a_group_its_number(void **state)
{
	struct rig *r = *state;
	struct loan b = lend(r, JOB);
	uint32_t gpu = 0, id = 0;

	assert_int_equal(nvrm_get_gpu(r->n, b.fd, b.client, SUBDEVICE, &gpu), NVRM_OK);
	assert_int_equal(gpu, FAKE_GPU);
	assert_int_equal(nvrm_get_gpu(r->n, b.fd, b.client, COMPUTE_GROUP, &gpu),
			 NVRM_NOT_SUPPORTED);
	assert_int_equal(nvrm_get_group_id(r->n, b.fd, b.client, COMPUTE_GROUP, &id), NVRM_OK);
	assert_int_equal(id, 1);
	give_back(&b);
}

static void a_slice_is_read_and_set(void **state)
{
	struct rig *r = *state;
	struct loan b = lend(r, JOB);
	uint64_t us = 0;

	assert_int_equal(nvrm_get_timeslice(r->n, b.fd, b.client, COMPUTE_GROUP, &us), NVRM_OK);
	assert_int_equal(us, NVRM_CUDA_SLICE_US);
	assert_int_equal(nvrm_set_timeslice(r->n, b.fd, b.client, COMPUTE_GROUP, 77), NVRM_OK);
	assert_int_equal(fake_rm_slice(r->fake, b.client, COMPUTE_GROUP), 77);
	give_back(&b);
}

static void channels_are_disabled_and_enabled(void **state)
{
	struct rig *r = *state;
	struct loan b = lend(r, JOB);
	struct nvrm_disable_channels call = { .disable = 1, .n = 1 };
	struct nvrm_objects objects = { 0 };

	fake_rm_table(r->fake, b.client, &objects);
	for (size_t i = 0; i < objects.n; i++)
		if (objects.all[i].parent == COMPUTE_GROUP && objects.all[i].class == 0xc86f)
			call.channels[0] = objects.all[i].handle;
	nvrm_objects_done(&objects);
	call.clients[0] = b.client;
	assert_int_equal(nvrm_disable_channels(r->n, b.fd, b.client, SUBDEVICE, &call), NVRM_OK);
	assert_true(fake_rm_group_off(r->fake, b.client, COMPUTE_GROUP));
	call.disable = 0;
	assert_int_equal(nvrm_disable_channels(r->n, b.fd, b.client, SUBDEVICE, &call), NVRM_OK);
	assert_false(fake_rm_group_off(r->fake, b.client, COMPUTE_GROUP));
	give_back(&b);
}

static void a_client_of_another_file_is_refused(void **state)
{
	struct rig *r = *state;
	struct loan b = lend(r, JOB);
	uint32_t other = fake_rm_job(r->fake, OTHER), class, parent;

	assert_int_equal(nvrm_get_object(r->n, b.fd, other, SUBDEVICE, &class, &parent),
			 NVRM_INVALID_CLIENT);
	give_back(&b);
}

/* ---- every wrapper in turn ---- */

static int call_whose(struct loan *b)
{
	return nvrm_whose(b->r->n, b->fd, b->client);
}

static int call_new_client(struct loan *b)
{
	uint32_t client = 7;
	int r = nvrm_new_client(b->r->n, b->fd, &client);

	assert_int_equal(client, 7);
	return r;
}

static int call_object(struct loan *b)
{
	uint32_t class = 7, parent = 7;
	int r = nvrm_get_object(b->r->n, b->fd, b->client, SUBDEVICE, &class, &parent);

	assert_int_equal(class, 7);
	assert_int_equal(parent, 7);
	return r;
}

static int call_gpu(struct loan *b)
{
	uint32_t gpu = 7;
	int r = nvrm_get_gpu(b->r->n, b->fd, b->client, SUBDEVICE, &gpu);

	assert_int_equal(gpu, 7);
	return r;
}

static int call_group_id(struct loan *b)
{
	uint32_t id = 7;
	int r = nvrm_get_group_id(b->r->n, b->fd, b->client, COMPUTE_GROUP, &id);

	assert_int_equal(id, 7);
	return r;
}

static int call_get_slice(struct loan *b)
{
	uint64_t us = 7;
	int r = nvrm_get_timeslice(b->r->n, b->fd, b->client, COMPUTE_GROUP, &us);

	assert_int_equal(us, 7);
	return r;
}

static int call_set_slice(struct loan *b)
{
	return nvrm_set_timeslice(b->r->n, b->fd, b->client, COMPUTE_GROUP, 1);
}

static int call_disable(struct loan *b)
{
	struct nvrm_disable_channels call = { .disable = 1 };

	return nvrm_disable_channels(b->r->n, b->fd, b->client, SUBDEVICE, &call);
}

static int (*const wrappers[])(struct loan *b) = {
	call_new_client, call_object,	 call_gpu,     call_group_id,
	call_get_slice,	 call_set_slice, call_disable, call_whose,
};

static void what_the_driver_answers_is_passed_on_and_results_are_left_alone(void **state)
{
	struct rig *r = *state;
	struct loan b = lend(r, JOB);

	for (size_t i = 0; i < ARRAY_SIZE(wrappers); i++) {
		int status;

		fake_rm_fault(r->fake, &(struct fake_fault){ .op = FAKE_IOCTL, .status = 0x40 });
		status = wrappers[i](&b);
		assert_true(wrappers[i] == call_whose ? status < 0 : status == 0x40);
		fake_rm_mend(r->fake);
		fake_rm_fault(r->fake, &(struct fake_fault){ .op = FAKE_IOCTL, .error = ENODEV });
		assert_int_equal(wrappers[i](&b), -ENODEV);
		fake_rm_mend(r->fake);
	}
	give_back(&b);
}

static void nothing_is_freed_twice(void **state)
{
	struct nvrm *n = NULL;

	nvrm_free(NULL);
	nvrm_freep(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
		CASE(a_new_client_is_the_newest_and_ends_with_its_descriptor),
		CASE(whose_a_client_is_is_asked_without_a_line_in_the_log),
		CASE(whose_with_an_answer_nobody_knows_is_an_error),
		CASE(an_object_has_a_class_and_a_parent),
		CASE(an_object_that_goes_between_two_questions_is_none),
		CASE(a_subdevice_knows_its_gpu_and_a_group_its_number),
		CASE(a_slice_is_read_and_set),
		CASE(channels_are_disabled_and_enabled),
		CASE(a_client_of_another_file_is_refused),
		CASE(what_the_driver_answers_is_passed_on_and_results_are_left_alone),
		CASE(nothing_is_freed_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
