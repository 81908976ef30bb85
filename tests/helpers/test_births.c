/* SPDX-License-Identifier: MIT */
/* Real processes, in a pid namespace of their own where pids begin anew. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/helpers/births.h"
#include "util/macros.h"

#define MANY 4096u

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool is_among(pid_t pid, const pid_t *pids, int n)
{
	for (int i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* It is told again the next time, and then no more. */
static void who_has_begun_is_told(void **state)
{
	static pid_t pids[MANY];
	struct births *b;
	pid_t child;

	assert_int_equal(births_new("/proc", &b), 0);
	child = start_child();
	assert_true(is_among(child, pids, births_take(b, pids, MANY)));
	births_take(b, pids, MANY);
	assert_false(is_among(child, pids, births_take(b, pids, MANY)));
	end_child(child);
	births_free(b);
	births_free(NULL);
}

static void a_proc_that_is_none_is_refused(void **state)
{
	struct births *b = NULL;

	assert_true(births_new("/sys", &b) < 0);
	assert_true(births_new("/nowhere", &b) < 0);
	assert_null(b);
}

/* ---- in a namespace ---- */

static void next_pid(pid_t pid)
{
	FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "we");

	assert_non_null(f);
	fprintf(f, "%d", (int)pid - 1);
	assert_int_equal(fclose(f), 0);
}

/* As the first process there. */
static int lives_in_namespace(void *arg)
{
	const int *other_proc = arg;
	struct births *b = NULL;
	pid_t pids[8], child;
	char path[32];

	/* Pids there are not those here: it would tell nonsense. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *other_proc);
	if (births_new(path, &b) >= 0)
		return 1;
	if (mount("proc", "/proc", "proc", 0, NULL) < 0)
		return 2;
	if (births_new("/proc", &b) < 0)
		return 3;
	next_pid(3000);
	child = start_child();
	if (births_take(b, pids, ARRAY_SIZE(pids)) != 1 || pids[0] != child || child != 3000)
		return 4;
	next_pid(1000); /* as when all above were given */
	end_child(start_child());
	if (births_take(b, pids, ARRAY_SIZE(pids)) != -ERANGE)
		return 5;
	for (size_t i = 0; i < ARRAY_SIZE(pids) + 1; i++)
		start_child();
	if (births_take(b, pids, ARRAY_SIZE(pids)) != -ERANGE)
		return 6;
	births_free(b);
	return 0;
}

static char stack[1 << 20] __attribute__((aligned(16)));

static void in_a_namespace_pids_are_its_own_and_begin_anew(void **state)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), status;
	pid_t pid;

	pid = clone(lives_in_namespace, stack + sizeof(stack), CLONE_NEWPID | CLONE_NEWNS | SIGCHLD,
		    &proc);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(proc);
}

static bool may_have_namespaces(void)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWPID | CLONE_NEWNS) < 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_begun_is_told),
		cmocka_unit_test(a_proc_that_is_none_is_refused),
		cmocka_unit_test(in_a_namespace_pids_are_its_own_and_begin_anew),
	};

	if (!may_have_namespaces()) {
		printf("1..0 # SKIP pid namespaces cannot be had here\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
