/* SPDX-License-Identifier: MIT */
/* Letting go on NVIDIA's driver beside a daemon: what that has is that one's to let go of. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "tests/lib/nvrm_rig.h"
#include "wire/wire.h"

/* One that has a job, and answers the connections that are made one after the other. */
struct daemon {
	struct lib_rig *rig;
	pthread_t thread;
	int listen_fd;
	char folder[32], path[64];
	const char *backend;
	bool silent; /* to a release */
	unsigned int released; /* asked to let go of it */
};

static void answer(struct daemon *d, int fd, const struct wire_request *request)
{
	const struct gpreempt_daemon_job job = { .pid = JOB, .attached = true, .detailed = true };
	struct gpreempt_daemon_status status = { .pid = 77 };
	union wire_packet a;

	switch (request->h.type) {
	case WIRE_STATUS:
		snprintf(status.backend, sizeof(status.backend), "%s", d->backend);
		wire_list_one(&a, WIRE_STATUS, request->h.seq, &status);
		break;
	case WIRE_JOBS:
		wire_list_one(&a, WIRE_JOBS, request->h.seq, &job);
		a.list.next = request->from + 1;
		break;
	default:
		d->released++;
		if (d->silent)
			return;
		a.h = wire_header(request->h.type, sizeof(a.answer), request->h.seq);
		a.answer.count = 1;
	}
	assert_int_equal(send(fd, &a, a.h.bytes, MSG_NOSIGNAL), a.h.bytes);
}

static void *serve(void *arg)
{
	struct daemon *d = arg;
	struct wire_request request;
	int fd;

	while ((fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		while (recv(fd, &request, sizeof(request), 0) == sizeof(request))
			answer(d, fd, &request);
		close(fd);
	}
	return NULL;
}

static int setup(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct daemon *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	lib_rig_setup((void **)&d->rig);
	d->backend = "nvrm";
	snprintf(d->folder, sizeof(d->folder), "/tmp/gpreempt-XXXXXX");
	assert_non_null(mkdtemp(d->folder));
	snprintf(d->path, sizeof(d->path), "%s/sock", d->folder);
	memcpy(address.sun_path, d->path, sizeof(d->path));
	d->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(d->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(d->listen_fd, 4), 0);
	assert_int_equal(pthread_create(&d->thread, NULL, serve, d), 0);
	setenv("GPREEMPT_SOCKET", d->path, 1);
	fake_rm_forget_calls(d->rig->fake);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	_cleanup_free_ struct daemon *d = *state;

	shutdown(d->listen_fd, SHUT_RDWR); /* ends the accept */
	pthread_join(d->thread, NULL);
	close(d->listen_fd);
	unlink(d->path);
	rmdir(d->folder);
	return lib_rig_teardown((void **)&d->rig);
}

static void what_the_daemon_has_it_is_asked_for(void **state)
{
	struct daemon *d = *state;
	pid_t pid = JOB, released = 0;

	assert_int_equal(gpreempt_release(d->rig->ctx, &pid, 1, &released, 1), 1);
	assert_int_equal(released, JOB);
	assert_int_equal(d->released, 1);
	assert_int_equal(fake_rm_count(d->rig->fake, FAKE_IOCTL, NVRM_CTRL_DISABLE_CHANNELS), 0);
}

static void what_it_has_not_is_let_go_of_here(void **state)
{
	struct daemon *d = *state;

	fake_rm_job(d->rig->fake, OTHER);
	assert_int_equal(gpreempt_release(d->rig->ctx, NULL, 0, NULL, 0), 2);
	assert_int_equal(d->released, 1);
	assert_true(fake_rm_count(d->rig->fake, FAKE_IOCTL, NVRM_CTRL_DISABLE_CHANNELS) > 0);
}

static void a_daemon_on_other_gpus_is_not_asked(void **state)
{
	struct daemon *d = *state;

	d->backend = "kfd";
	assert_int_equal(gpreempt_release(d->rig->ctx, NULL, 0, NULL, 0), 1);
	assert_int_equal(d->released, 0);
	assert_true(fake_rm_count(d->rig->fake, FAKE_IOCTL, NVRM_CTRL_DISABLE_CHANNELS) > 0);
}

static void one_that_does_not_answer_is_not_waited_for_long(void **state)
{
	struct daemon *d = *state;

	d->silent = true;
	fake_rm_leave_disabled(d->rig->fake, d->rig->job, COMPUTE_GROUP, 1);
	assert_int_equal(gpreempt_release(d->rig->ctx, NULL, 0, NULL, 0), 1);
	assert_int_equal(fake_rm_disabled(d->rig->fake, -1), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_the_daemon_has_it_is_asked_for),
		TEST(what_it_has_not_is_let_go_of_here),
		TEST(a_daemon_on_other_gpus_is_not_asked),
		TEST(one_that_does_not_answer_is_not_waited_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
