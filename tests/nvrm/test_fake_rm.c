/* SPDX-License-Identifier: MIT */
/* The fake itself: it is as strict as the driver, and notices what must never happen. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/nvrm/rig.h"
#include "util/macros.h"

struct fixture {
	struct fake_rm *fake;
	struct nvrm *n;
	uint32_t client;
	int pidfd, fd;
	uint32_t channel; /* one of the compute group */
};

static uint32_t first_channel(struct fixture *f, uint32_t client)
{
	struct nvrm_objects objects = { 0 };
	uint32_t handle = 0;

	fake_rm_table(f->fake, client, &objects);
	for (size_t i = objects.n; i-- > 0;)
		if (objects.all[i].parent == COMPUTE_GROUP && NVRM_IS_CHANNEL(objects.all[i].class))
			handle = objects.all[i].handle;
	nvrm_objects_done(&objects);
	return handle;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->fake = fake_rm_new();
	f->n = fake_rm_nvrm(f->fake);
	f->client = fake_rm_job(f->fake, JOB);
	f->channel = first_channel(f, f->client);
	f->pidfd = f->n->transport->pidfd(f->n->data, JOB);
	f->fd = fake_rm_borrow(f->fake, JOB);
	assert_true(f->pidfd >= 0 && f->fd >= 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	_cleanup_free_ struct fixture *f = *state;

	close(f->pidfd);
	nvrm_free(f->n);
	fake_rm_free(f->fake);
	return 0;
}

static int disable(struct fixture *f, uint32_t client, uint32_t channel, bool disable)
{
	struct nvrm_disable_channels call = { .disable = disable, .n = 1 };

	call.clients[0] = client;
	call.channels[0] = channel;
	return nvrm_disable_channels(f->n, f->fd, f->client, SUBDEVICE, &call);
}

static void disables_are_counted_and_enables_end_at_none(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(disable(f, f->client, f->channel, false), NVRM_OK);
	assert_int_equal(disable(f, f->client, f->channel, true), NVRM_OK);
	assert_int_equal(disable(f, f->client, f->channel, true), NVRM_OK);
	assert_int_equal(fake_rm_highest(f->fake, JOB), 2);
	assert_int_equal(disable(f, f->client, f->channel, false), NVRM_OK);
	assert_true(fake_rm_group_off(f->fake, f->client, COMPUTE_GROUP));
	assert_int_equal(disable(f, f->client, f->channel, false), NVRM_OK);
	assert_int_equal(disable(f, f->client, f->channel, false), NVRM_OK);
	assert_false(fake_rm_group_off(f->fake, f->client, COMPUTE_GROUP));
	assert_int_equal(fake_rm_sins(f->fake).strangers, 0);
}

static void a_strangers_channel_is_taken_off_and_that_is_noticed(void **state)
{
	struct fixture *f = *state;
	uint32_t other = fake_rm_job(f->fake, OTHER);

	assert_int_equal(disable(f, other, f->channel, true), NVRM_OK);
	assert_int_equal(fake_rm_disabled(f->fake, OTHER), 1);
	assert_int_equal(fake_rm_sins(f->fake).strangers, 1);
}

static void a_shared_group_is_taken_off_and_that_is_noticed(void **state)
{
	struct fixture *f = *state;
	uint32_t other = fake_rm_job(f->fake, OTHER);

	fake_rm_share_group(f->fake, other, COMPUTE_GROUP, f->client, COMPUTE_GROUP);
	assert_int_equal(disable(f, f->client, f->channel, true), NVRM_OK);
	assert_int_equal(fake_rm_sins(f->fake).shared, 1);
}

static void a_control_on_a_dead_client_leaves_a_line(void **state)
{
	struct fixture *f = *state;
	uint32_t class, parent;

	nvrm_get_object(f->n, f->fd, f->client + 1, SUBDEVICE, &class, &parent);
	assert_int_equal(fake_rm_sins(f->fake).kernel_lines, 1);
}

static void every_size_is_compared(void **state)
{
	static const struct {
		uint32_t cmd, object, size;
	} calls[] = {
		{ NVRM_CTRL_GET_HANDLE_INFO, 0, 16 },
		{ NVRM_CTRL_GET_PROBED_IDS, 0, 384 },
		{ NVRM_CTRL_GET_PCI_INFO, 0, 12 },
		{ NVRM_CTRL_GET_GPU_ID, SUBDEVICE, 4 },
		{ NVRM_CTRL_DISABLE_CHANNELS, SUBDEVICE, 536 },
		{ NVRM_CTRL_SET_TIMESLICE, COMPUTE_GROUP, 8 },
		{ NVRM_CTRL_GET_TIMESLICE, COMPUTE_GROUP, 8 },
		{ NVRM_CTRL_PREEMPT, COMPUTE_GROUP, 8 },
		{ NVRM_CTRL_GET_GROUP_INFO, COMPUTE_GROUP, 4 },
	};
	struct fixture *f = *state;
	uint64_t params[128] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		for (uint32_t size = calls[i].size - 1; size <= calls[i].size + 1; size += 2) {
			struct nvrm_control a = {
				.client = f->client,
				.object = calls[i].object ? calls[i].object : f->client,
				.cmd = calls[i].cmd,
				.params = (uintptr_t)params,
				.params_size = size,
			};

			assert_int_equal(
				f->n->transport->ioctl(f->n->data, f->fd, NVRM_IOC_CONTROL, &a), 0);
			assert_int_equal(a.status, NVRM_INVALID_ARGUMENT);
		}
	}
}

static void a_copy_of_a_descriptor_keeps_the_client_of_the_dead(void **state)
{
	struct fixture *f = *state;
	struct pollfd end = { .fd = f->pidfd, .events = POLLIN };
	int copy = fake_rm_dup(f->fake, f->fd);

	assert_int_equal(poll(&end, 1, 0), 0);
	fake_rm_exit(f->fake, JOB);
	assert_int_equal(poll(&end, 1, 0), 1);
	assert_int_equal(fake_rm_pinned(f->fake), 1);
	assert_int_equal(fake_rm_borrow(f->fake, JOB), -ESRCH);
	f->n->transport->close_fd(f->n->data, f->fd);
	assert_int_equal(fake_rm_pinned(f->fake), 1);
	f->n->transport->close_fd(f->n->data, copy);
	assert_int_equal(fake_rm_pinned(f->fake), 0);
	assert_int_equal(fake_rm_descriptors(f->fake), 0);
	f->n->transport->close_fd(f->n->data, copy);
	assert_int_equal(fake_rm_sins(f->fake).misuse, 1);
}

static void numbers_are_given_again_only_when_free(void **state)
{
	struct fixture *f = *state;
	uint32_t second = fake_rm_job(f->fake, OTHER);

	assert_int_equal(second, f->client + 1);
	fake_rm_recycle_numbers(f->fake);
	fake_rm_exit(f->fake, JOB);
	assert_int_equal(fake_rm_job(f->fake, 100), second + 1);
	f->n->transport->close_fd(f->n->data, f->fd);
	assert_int_equal(fake_rm_job(f->fake, 101), f->client);
}

static void *get_slice(void *arg)
{
	struct fixture *f = arg;
	uint64_t us;

	nvrm_get_timeslice(f->n, f->fd, f->client, COMPUTE_GROUP, &us);
	return NULL;
}

static void a_call_waits_in_the_driver_until_it_is_let_go(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;
	uint32_t id;

	fake_rm_block(f->fake, NVRM_CTRL_GET_TIMESLICE);
	assert_int_equal(pthread_create(&thread, NULL, get_slice, f), 0);
	fake_rm_wait_blocked(f->fake);
	assert_int_equal(fake_rm_count(f->fake, FAKE_IOCTL, NVRM_CTRL_GET_TIMESLICE), 0);
	assert_int_equal(nvrm_get_group_id(f->n, f->fd, f->client, COMPUTE_GROUP, &id), NVRM_OK);
	fake_rm_unblock(f->fake);
	pthread_join(thread, NULL);
	assert_int_equal(fake_rm_count(f->fake, FAKE_IOCTL, NVRM_CTRL_GET_TIMESLICE), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(disables_are_counted_and_enables_end_at_none),
		CASE(a_strangers_channel_is_taken_off_and_that_is_noticed),
		CASE(a_shared_group_is_taken_off_and_that_is_noticed),
		CASE(a_control_on_a_dead_client_leaves_a_line),
		CASE(every_size_is_compared),
		CASE(a_copy_of_a_descriptor_keeps_the_client_of_the_dead),
		CASE(numbers_are_given_again_only_when_free),
		CASE(a_call_waits_in_the_driver_until_it_is_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
