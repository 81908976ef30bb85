/* SPDX-License-Identifier: MIT */
/* Each test executes this program anew, which finds what was handed to it and judges it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/daemon/rig.h"

#define VARIABLE "GPREEMPTD_HANDOVER"
#define SERVE_PID 300
#define LATE_PID 310
#define BROKEN_PID 201
#define NUMBER 0x123456789abcdefull

static struct handover *before; /* in the second image */

/* @put fills it in the first image; the test called @name judges in the second. */
static void hand_over_to(const char *name, void (*put)(struct handover *h))
{
	char *argv[] = { (char *)"test_daemon_handover", (char *)name, NULL };
	struct handover *h;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(STDERR_FILENO, STDOUT_FILENO); /* its report is not ours */
		if (handover_new(&h) < 0)
			_exit(98);
		put(h);
		handover_exec(h, argv);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- bytes and descriptors ---- */

static void put_values(struct handover *h)
{
	const uint64_t number = NUMBER;
	int fds[2], other = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (pipe2(fds, O_CLOEXEC) < 0 || write(fds[1], "x", 1) != 1)
		_exit(97);
	handover_put(h, &number, sizeof(number));
	handover_put_fd(h, fds[0]);
	handover_put(h, NULL, 0);
	handover_put(h, &other, sizeof(other));
}

static void judge_values(void **state)
{
	uint64_t number = 0;
	char c = 0, comm[16] = "";
	int fd = -1, other = -1;
	FILE *f;

	assert_int_equal(handover_get(before, &number, sizeof(number)), 0);
	assert_true(number == NUMBER);
	assert_int_equal(handover_get_fd(before, &fd), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(read(fd, &c, 1), 1);
	assert_int_equal(c, 'x');
	assert_int_equal(read(fd, &c, 1), 0); /* the other end is closed */
	assert_int_equal(handover_get(before, &other, sizeof(other)), 0);
	assert_int_equal(fcntl(other, F_GETFD), -1);
	assert_int_equal(handover_get(before, &c, 1), -EBADMSG);
	assert_null(getenv(VARIABLE));
	f = fopen("/proc/self/comm", "re");
	assert_non_null(f);
	assert_non_null(fgets(comm, sizeof(comm), f));
	assert_memory_equal(comm, "test_daemon_han", 15);
	fclose(f);
}

static void what_went_in_comes_out(void **state)
{
	hand_over_to("values", put_values);
}

/* Longer than any argument may be. */
static void after_a_failure_everything_is_as_before(void **state)
{
	size_t len = 1 << 20;
	char *argv[] = { malloc(len), NULL };
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct handover *h;

	assert_non_null(argv[0]);
	memset(argv[0], 'x', len - 1);
	argv[0][len - 1] = 0;
	assert_int_equal(handover_new(&h), 0);
	handover_put_fd(h, fd);
	assert_int_equal(handover_exec(h, argv), -E2BIG);
	assert_null(getenv(VARIABLE));
	handover_free(h);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	free(argv[0]);
}

static void a_program_that_was_not_executed_so_finds_nothing(void **state)
{
	char value[32];

	assert_null(handover_find());
	snprintf(value, sizeof(value), "%d 999", getpid());
	assert_int_equal(setenv(VARIABLE, value, 1), 0);
	assert_null(handover_find());
	assert_int_equal(setenv(VARIABLE, "nonsense", 1), 0);
	assert_null(handover_find());
}

/* A failure leaves all but the execution done. */
static void what_is_handed_to_another_process_is_not_for_us(void **state)
{
	char *argv[] = { (char *)"", NULL };
	struct handover *h, *found;
	char value[32];
	int fd = dup(STDIN_FILENO), copy;

	close(fd); /* whose number is the next one's */
	assert_int_equal(handover_new(&h), 0);
	handover_put_fd(h, -1);
	assert_int_equal(handover_exec(h, argv), -EBADF);
	copy = dup(fd);
	snprintf(value, sizeof(value), "%d %d", getppid(), copy);
	assert_int_equal(setenv(VARIABLE, value, 1), 0);
	assert_null(handover_find());
	assert_null(getenv(VARIABLE));
	snprintf(value, sizeof(value), "%d %d", getpid(), copy);
	assert_int_equal(setenv(VARIABLE, value, 1), 0);
	found = handover_find();
	assert_non_null(found);
	handover_free(found);
	handover_free(h);
}

/* ---- a scheduler ---- */

struct crowd {
	struct fake_process *serve, *offline, *online, *broken;
};

static struct crowd populate(struct rig *r)
{
	struct crowd c = {
		.serve = rig_offline(r, SERVE_PID, 1),
		.offline = rig_offline(r, OFFLINE_PID, 1),
		.online = rig_online(r, ONLINE_PID, 2),
		.broken = rig_offline(r, BROKEN_PID, 2),
	};

	snprintf(c.serve->comm, sizeof(c.serve->comm), "serve");
	c.serve->online = true;
	fake_set_work(c.serve, false);
	for (size_t i = 0; i < r->fake.max_processes; i++) /* the same in both images */
		r->fake.processes[i].start_ticks = 1000 + i;
	return c;
}

static void put_scheduler(struct handover *h)
{
	struct rig *r = rig_new(8);
	struct crowd c = populate(r);
	struct class_request raise = rig_request(WIRE_BY_NAME, 0, JOB_ONLINE);
	int page;

	snprintf(raise.pattern, sizeof(raise.pattern), "serve");
	rig_run(r, S);
	assert_int_equal(scheduler_class(r->s, &raise), 1);
	scheduler_set_policy(r->s, gpol_find("rotate"));
	assert_int_equal(scheduler_hint_page(r->s, SERVE_PID, &page), 0);
	c.broken->outcomes[GPU_SUSPEND] = (struct fake_outcome){
		.result = -ETIME, .gpu_failed = true, .gpu = 2, .times = 1
	};
	fake_set_work(c.online, true);
	rig_run_until(r, r->told[WIRE_TRIPPED] == 1);
	scheduler_pause(r->s);
	rig_run_until(r, scheduler_is_idle(r->s));
	scheduler_set_backend(r->s, NULL);
	handover_put_fd(h, page);
	scheduler_save(r->s, h);
}

static void restore(struct rig *r)
{
	struct scheduler_parts parts = {
		.guard = &r->guard,
		.journal = r->journal,
		.events = r->events,
	};
	struct wire_status status = { 0 };

	scheduler_free(r->s);
	fake_set_time(&r->fake, 100 * S);
	r->config.attach_age_ns = 60 * S;
	assert_int_equal(scheduler_new(&parts, &r->config, &r->s), 0);
	assert_int_equal(scheduler_restore(r->s, before), 0);
	assert_true(scheduler_is_paused(r->s));
	scheduler_status(r->s, &status);
	assert_true(status.flags & WIRE_STATUS_PAUSED);
	assert_int_equal(status.trips, 1);
	assert_int_equal(status.gpus, 2);
	assert_string_equal(status.policy, "rotate");
	assert_string_equal(status.backend, r->fake.base.caps.name);
	assert_true(scheduler_turn(r->s) == UINT64_MAX);
	scheduler_set_backend(r->s, &r->fake.base);
	scheduler_continue(r->s);
}

static void judge_scheduler(void **state)
{
	struct rig *r = rig_new(8);
	struct crowd c = populate(r);
	struct fake_process *late = rig_offline(r, LATE_PID, 1);
	struct wire_hint_page *page;
	struct wire_job job;
	int fd;

	snprintf(late->comm, sizeof(late->comm), "serve");
	late->start_ticks = 2000;
	assert_int_equal(handover_get_fd(before, &fd), 0);
	restore(r);
	rig_run(r, 5 * S);
	assert_true(rig_job(r, SERVE_PID, 1, &job));
	assert_int_equal(job.job_class, WIRE_CLASS_ONLINE);
	assert_true(rig_job(r, LATE_PID, 1, &job));
	assert_int_equal(job.job_class, WIRE_CLASS_OFFLINE);
	assert_int_equal(c.offline->attaches, 1); /* it is old enough, */
	assert_int_equal(late->attaches, 0); /* and this is not */
	assert_int_equal(c.broken->attaches, 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	page->calls++;
	rig_run(r, 10 * MS);
	assert_int_equal(scheduler_figures(r->s)->hints, 1);
	assert_int_equal(scheduler_rearm(r->s, 2), 0);
	rig_run(r, S);
	assert_int_equal(c.broken->attaches, 1);
	munmap(page, 4096);
	close(fd);
	rig_end(r);
}

static void a_scheduler_knows_what_people_said_before(void **state)
{
	hand_over_to("scheduler", put_scheduler);
}

static int judge(const char *name)
{
	const struct CMUnitTest values[] = { cmocka_unit_test(judge_values) };
	const struct CMUnitTest scheduler[] = { cmocka_unit_test(judge_scheduler) };

	return strcmp(name, "values") == 0 ? cmocka_run_group_tests(values, NULL, NULL) :
					     cmocka_run_group_tests(scheduler, NULL, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_went_in_comes_out),
		cmocka_unit_test(after_a_failure_everything_is_as_before),
		cmocka_unit_test(a_program_that_was_not_executed_so_finds_nothing),
		cmocka_unit_test(what_is_handed_to_another_process_is_not_for_us),
		cmocka_unit_test(a_scheduler_knows_what_people_said_before),
	};

	if (argc > 1) {
		int failed;

		before = handover_find();
		failed = !before || judge(argv[1]) != 0;
		handover_free(before);
		return failed;
	}
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
