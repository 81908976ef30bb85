/* SPDX-License-Identifier: MIT */
/*
 * The self-test of the driver, on a driver that does what it is told and ones that do not: a hold
 * is a stopped child here, and CUDA is tests/h200/fakecuda.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/nvrm/process.h"
#include "gpu/nvrm/selftest.h"

struct driver {
	bool finds_nobody, holds_nothing, lets_nobody_go, refuses;
	struct nvrm_process process;
	bool closed;
	int descriptors; /* that the child has */
};

static struct driver driver;

static int count_descriptors(pid_t pid)
{
	char path[32];
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

int nvrm_process_open(struct nvrm *n, pid_t pid, struct nvrm_process **ret,
		      struct nvrm_failure *ret_failure)
{
	driver.process.pid = pid;
	driver.descriptors = count_descriptors(pid);
	if (driver.finds_nobody) {
		*ret_failure = (struct nvrm_failure){ .why = NVRM_WHY_NOT_FOUND };
		return -ENOENT;
	}
	*ret = &driver.process;
	return 0;
}

void nvrm_process_close(struct nvrm_process *p)
{
	driver.closed |= p != NULL;
}

int nvrm_hold(struct nvrm_process *const *procs, size_t n, uint32_t gpu, uint64_t *ret_off_ns,
	      struct nvrm_failure *ret_failure)
{
	int status;

	assert_int_equal(n, 1);
	if (driver.refuses) {
		*ret_failure = (struct nvrm_failure){ .why = NVRM_WHY_REFUSED, .status = 0x1b };
		return -EPERM;
	}
	if (driver.holds_nothing)
		return 0;
	kill(procs[0]->pid, SIGSTOP);
	assert_int_equal(waitpid(procs[0]->pid, &status, WUNTRACED), procs[0]->pid);
	return 0;
}

int nvrm_let_go(struct nvrm_process *const *procs, size_t n, uint32_t gpu,
		struct nvrm_failure *ret_failure)
{
	if (!driver.lets_nobody_go)
		kill(procs[0]->pid, SIGCONT);
	return 0;
}

static int setup(void **state)
{
	driver = (struct driver){ 0 };
	unsetenv("FAKE_CUDA");
	return 0;
}

static void nobody_is_left(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void fails_with(int expected, unsigned int gpu, enum nvrm_why why)
{
	struct nvrm_selftest figures = { .suspend_ns = 1 };
	struct nvrm_failure failure = { 0 };

	assert_int_equal(nvrm_selftest(NULL, gpu, &figures, &failure), expected);
	assert_int_equal(failure.why, why);
	assert_int_equal(figures.suspend_ns, 1);
	nobody_is_left();
}

static void what_stops_and_goes_on_passes(void **state)
{
	struct nvrm_selftest figures = { 0 };
	struct nvrm_failure failure = { 0 };

	assert_int_equal(nvrm_selftest(NULL, 0, &figures, &failure), 0);
	assert_true(figures.suspend_ns > 0 && figures.resume_ns > 0 && figures.running_ns > 0);
	assert_true(figures.frozen_ns < 1000000000ull);
	assert_true(driver.closed);
	nobody_is_left();
}

static void the_child_has_nothing_of_ours_open(void **state)
{
	int fd = open("/dev/null", O_RDONLY);

	what_stops_and_goes_on_passes(state);
	assert_int_equal(driver.descriptors, 4); /* standard ones, and where it says what it does */
	close(fd);
}

static void a_hold_that_holds_nothing_is_noticed(void **state)
{
	driver.holds_nothing = true;
	fails_with(-EIO, 0, NVRM_WHY_SELF_TEST);
	assert_true(driver.closed);
}

static void a_resume_that_resumes_nothing_is_noticed(void **state)
{
	driver.lets_nobody_go = true;
	fails_with(-EIO, 0, NVRM_WHY_SELF_TEST);
	assert_true(driver.closed);
}

static void a_driver_that_refuses_is_told(void **state)
{
	driver.refuses = true;
	fails_with(-EIO, 0, NVRM_WHY_SELF_TEST);
}

static void a_context_that_is_not_found_is_an_error(void **state)
{
	driver.finds_nobody = true;
	fails_with(-EIO, 0, NVRM_WHY_SELF_TEST);
	assert_false(driver.closed);
}

static void what_libcuda_said_is_told(void **state)
{
	struct nvrm_selftest figures;
	struct nvrm_failure failure = { 0 };

	setenv("FAKE_CUDA", "module", 1);
	assert_int_equal(nvrm_selftest(NULL, 0, &figures, &failure), -EOPNOTSUPP);
	assert_int_equal(failure.status, 999);
	assert_string_equal(failure.step, "starting a kernel of our own");
}

static void what_cannot_be_tried_says_nothing_about_the_driver(void **state)
{
	static const char *const calls[] = { "init", "context", "module", "launch" };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		setenv("FAKE_CUDA", calls[i], 1);
		fails_with(-EOPNOTSUPP, 0, NVRM_WHY_SELF_TEST);
	}
	unsetenv("FAKE_CUDA");
	fails_with(-EOPNOTSUPP, 1, NVRM_WHY_SELF_TEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_stops_and_goes_on_passes, setup),
		cmocka_unit_test_setup(the_child_has_nothing_of_ours_open, setup),
		cmocka_unit_test_setup(a_hold_that_holds_nothing_is_noticed, setup),
		cmocka_unit_test_setup(a_resume_that_resumes_nothing_is_noticed, setup),
		cmocka_unit_test_setup(a_driver_that_refuses_is_told, setup),
		cmocka_unit_test_setup(a_context_that_is_not_found_is_an_error, setup),
		cmocka_unit_test_setup(what_libcuda_said_is_told, setup),
		cmocka_unit_test_setup(what_cannot_be_tried_says_nothing_about_the_driver, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
