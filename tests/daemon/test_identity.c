/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "cmd/gpreemptd/rules.h"
#include "gpu/backend.h"
#include "gpu/kfd/transport.h"
#include "util/macros.h"

#define HEX16 "0123456789abcdef"
#define ID HEX16 HEX16 HEX16 HEX16
#define INNER "f" HEX16 HEX16 HEX16 "0123456789abcde"

/* ---- parsers ---- */

static void stat_of_a_name_with_brackets_is_read(void **state)
{
	static const char text[] = "7 (a) S 9 (b)) R 5 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 "
				   "18446744073709551615 1 2\n";
	struct proc_stat stat;

	assert_int_equal(proc_stat_parse(text, strlen(text), &stat), 0);
	assert_int_equal(stat.pid, 7);
	assert_int_equal(stat.parent, 5);
	assert_string_equal(stat.comm, "a) S 9 (b)");
	assert_true(stat.start_ticks == UINT64_MAX);
}

static void stat_that_is_cut_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"7",
		"7 (",
		"7 )",
		"x (a) R 5",
		"7 (a) R 5 7 7 0 -1",
		"7 (a) R x 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 55 1 2\n",
		"7 (a) R 5 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 18446744073709551616 1\n",
		"99999999999 (a) R 5 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 55 1 2\n",
	};
	struct proc_stat stat = { .pid = 3 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(proc_stat_parse(bad[i], strlen(bad[i]), &stat), -EBADMSG);
	assert_int_equal(stat.pid, 3);
}

static void the_real_user_counts_and_not_the_effective_one(void **state)
{
	static const char text[] = "Name:\tUid:\nUid:\t1000\t0\t0\t0\nGid:\t100\t5\t5\t5\n";
	struct identity id = { 0 };

	assert_int_equal(identity_parse_status(text, &id), 0);
	assert_int_equal(id.uid, 1000);
	assert_int_equal(id.gid, 100);
	assert_int_equal(identity_parse_status("Name:\ta\nUid:\t1\n", &id), -EBADMSG);
	assert_int_equal(identity_parse_status("Name:\ta\nUid:\nGid:\t1\n", &id), -EBADMSG);
	assert_int_equal(id.uid, 1000);
}

static void cgroups_are_found_in_both_hierarchies(void **state)
{
	static const char *const cases[][3] = {
		{ "0::/system.slice/a.service\n", "/system.slice/a.service", "" },
		{ "1:cpu:/much/longer/than/that\n0::/a\n2:b:/c\n", "/a", "" },
		{ "3:cpu:/a\n2:memory:/docker/" ID "\n1:name=systemd:/b\n", "/docker/" ID, ID },
		{ "1:cpu:/docker/" ID "\n0::/\n", "/docker/" ID, ID },
		{ "0::/k.slice/cri-containerd-" ID ".scope", "/k.slice/cri-containerd-" ID ".scope",
		  ID },
		{ "0::/docker/" ID "/docker/" INNER "\n", "/docker/" ID "/docker/" INNER, ID },
		{ "0::/x/" ID "0\n", "/x/" ID "0", "" },
		{ "0::/\n", "/", "" },
		{ "", "/", "" },
		{ "nonsense\n0:\n0::\n", "/", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct identity id = { 0 };

		assert_int_equal(identity_parse_cgroup(cases[i][0], &id), 0);
		assert_string_equal(id.cgroup, cases[i][1]);
		assert_string_equal(id.container, cases[i][2]);
		identity_done(&id);
	}
}

/* systemd has it in one hierarchy, Slurm in another. */
static void a_process_is_in_the_cgroups_of_all_hierarchies(void **state)
{
	static const char text[] = "3:memory:/a/very/long/path/of/memory\n1:cpu:/\n"
				   "2:freezer:/slurm/uid_1/job_7\n"
				   "0::/system.slice/slurmd.service\n";
	static const char theirs[] = "2:freezer:/user@7.service/slurm/uid_1/job_7\n0::/\n";
	struct identity id = { 0 };

	assert_int_equal(identity_parse_cgroup(text, &id), 0);
	assert_string_equal(id.cgroup, "/system.slice/slurmd.service");
	assert_true(identity_is_in_cgroup(&id, "/slurm/uid_1/job_7", true));
	assert_true(identity_is_in_cgroup(&id, "/a/very", true));
	assert_true(identity_is_in_cgroup(&id, "/system.slice", true));
	assert_false(identity_is_in_cgroup(&id, "/slurm/uid_1/job_8", true));
	assert_int_equal(identity_parse_cgroup(theirs, &id), 0);
	assert_true(identity_is_in_cgroup(&id, "*/slurm/uid_1/job_7", false));
	assert_false(identity_is_in_cgroup(&id, "*/slurm/uid_1/job_7", true));
	identity_done(&id);
}

static void what_a_user_named_is_told_from_what_the_system_did(void **state)
{
	assert_int_equal(cgroup_trusted_bytes("/a/b"), 4);
	assert_int_equal(cgroup_trusted_bytes("/user.slice/user@7.service"), 26);
	assert_int_equal(cgroup_trusted_bytes("/user.slice/user@7.service/x"), 26);
	assert_int_equal(cgroup_trusted_bytes("/user.slice/user@7.service/user@8.service"), 26);
}

/* ---- real processes ---- */

static int read_real_proc(void *user, const char *path, char **ret_text, size_t *ret_len)
{
	void *kernel = gkfd_syscall_new(NULL);
	int r = gkfd_transport_syscall.read_file(kernel, GKFD_TREE_PROC, path, ret_text, ret_len);

	gkfd_transport_syscall.close(kernel);
	return r;
}

static int identify(const struct proc_source *source, pid_t pid, uint32_t more,
		    struct identity *ret)
{
	static const struct rules no_rules = { 0 };
	struct proc_files files;
	int r = proc_files_read(source, pid, identity_files(&no_rules) | more, &files);

	if (r < 0)
		return r;
	r = identity_take(&files, ret);
	proc_files_done(&files);
	return r;
}

/* Stands still in its own program, with arguments and an environment. */
static pid_t start_program(void)
{
	char name[] = "tail", follow[] = "-f", blank[] = "", file[] = "/dev/null";
	char variable[] = "GPREEMPT_TEST=a b";
	char *const argv[] = { name, follow, blank, file, NULL };
	char *const envp[] = { variable, NULL };
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execve("/usr/bin/tail", argv, envp);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0); /* closed by the exec */
	close(ready[0]);
	return pid;
}

static void a_process_is_known_by_all_it_shows(void **state)
{
	const struct proc_source real = { read_real_proc, NULL };
	struct identity id;
	pid_t pid = start_program();

	assert_int_equal(identify(&real, pid, PROC_MEMORY, &id), 0);
	assert_int_equal(id.stat.pid, pid);
	assert_int_equal(id.stat.parent, getpid());
	assert_int_equal(id.uid, getuid());
	assert_int_equal(id.gid, getgid());
	assert_string_equal(id.stat.comm, "tail");
	assert_string_equal(id.path, "/usr/bin/tail");
	assert_string_equal(id.command, "tail -f  /dev/null");
	assert_string_equal(id.environment, "GPREEMPT_TEST=a b");
	assert_true(id.stat.start_ticks > 0);
	assert_int_equal(id.cgroup[0], '/');
	assert_true(id.n_ancestors >= 1);
	assert_int_equal(id.ancestors[0].pid, getpid());
	assert_true(id.ancestors[0].start_ticks > 0);
	identity_done(&id);
	assert_int_equal(identify(&real, pid, 0, &id), 0);
	assert_null(id.environment);
	assert_null(id.command);
	identity_done(&id);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(identify(&real, pid, PROC_MEMORY, &id), -ESRCH);
}

/* ---- a process that is another one in the end ---- */

static int calls_of_stat;

static int read_passing_pid(void *user, const char *path, char **ret, size_t *ret_len)
{
	int r;

	if (!strcmp(path, "7/stat"))
		r = asprintf(ret, "7 (a) R 5 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 %d 1\n",
			     calls_of_stat++ ? 99 : 55);
	else if (!strcmp(path, "7/status"))
		r = asprintf(ret, "Name:\ta\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n");
	else
		return -EACCES;
	*ret_len = (size_t)r;
	return 0;
}

static void a_pid_that_passed_on_while_we_read_is_nobody(void **state)
{
	const struct proc_source passing = { read_passing_pid, NULL };
	struct identity id = { 0 };

	calls_of_stat = 0;
	assert_int_equal(identify(&passing, 7, PROC_MEMORY, &id), -ESRCH);
	assert_int_equal(id.stat.pid, 0);
	assert_int_equal(identify(&passing, 7, PROC_MEMORY, &id), 0); /* the second one stays */
	assert_string_equal(id.cgroup, "/");
	assert_null(id.path);
	assert_null(id.command);
	identity_done(&id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_of_a_name_with_brackets_is_read),
		cmocka_unit_test(stat_that_is_cut_is_refused),
		cmocka_unit_test(the_real_user_counts_and_not_the_effective_one),
		cmocka_unit_test(cgroups_are_found_in_both_hierarchies),
		cmocka_unit_test(a_process_is_in_the_cgroups_of_all_hierarchies),
		cmocka_unit_test(what_a_user_named_is_told_from_what_the_system_did),
		cmocka_unit_test(a_process_is_known_by_all_it_shows),
		cmocka_unit_test(a_pid_that_passed_on_while_we_read_is_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
