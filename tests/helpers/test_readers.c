/* SPDX-License-Identifier: MIT */
/* Readers that hang, crash and starve, and whoever else is read meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/helpers/asks.h"
#include "gpu/helpers/helper.h"
#include "tests/helpers/reader_program.h"
#include "util/macros.h"

#define LONG_NS (60 * NSEC_PER_SEC)
#define PATIENCE_NS (100 * NSEC_PER_MSEC)
#define ALICE 1000
#define BOB 1001
#define MOST_HUNG 4 /* readers of one user, unless said otherwise */

struct question {
	struct readers_task task;
	const char *order;
	unsigned int left; /* until it is answered */
	int result;
	char answer[64];
	size_t len;
	int fds[2];
	uint32_t n_fds;
	uint32_t reader;
};

static size_t write_order(struct readers_task *t, uint32_t reader, void *to, size_t max)
{
	struct question *q = (struct question *)t;
	size_t len = strlen(q->order);

	if (len > max)
		return SIZE_MAX;
	memcpy(to, q->order, len);
	q->reader = reader;
	return len;
}

static void take_answer(struct readers_task *t, struct readers_answer *a)
{
	struct question *q = (struct question *)t;

	assert_int_equal(q->left, 1);
	q->left = 0;
	q->result = a->result;
	q->len = a->len;
	if (a->len && a->len < sizeof(q->answer))
		memcpy(q->answer, a->bytes, a->len);
	q->n_fds = a->n_fds;
	for (uint32_t i = 0; i < MIN(a->n_fds, ARRAY_SIZE(q->fds)); i++)
		q->fds[i] = steal_fd(&a->fds[i]);
}

static struct question ask(struct readers *r, struct question *q, uid_t user, pid_t pid,
			   const char *order)
{
	*q = (struct question){
		.task = { .service = READER_MQDS, .pid = pid, .user = user, .write = write_order,
			  .done = take_answer, .wants_fds = order[0] == PASS },
		.order = order,
		.left = 1,
	};
	readers_post(r, &q->task);
	return *q;
}

static void await(struct readers *r, struct question *q)
{
	readers_wait(r, LONG_NS, &q->left);
	assert_int_equal(q->left, 0);
}

static int setup(void **state)
{
	struct readers *r;

	assert_int_equal(readers_new(&(struct readers_options){ .patience_ns = PATIENCE_NS }, &r),
			 0);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	readers_free(*state);
	while (waitpid(-1, NULL, __WALL | WNOHANG) > 0)
		;
	return 0;
}

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- cases ---- */

static void what_is_asked_is_answered(void **state)
{
	struct readers *r = *state;
	struct question a, b, c;

	ask(r, &a, ALICE, 1, "echo");
	ask(r, &b, ALICE, 2, "fail");
	ask(r, &c, BOB, 3, "");
	await(r, &a);
	await(r, &b);
	await(r, &c);
	assert_int_equal(a.result, 0);
	assert_memory_equal(a.answer, "echo", 4);
	assert_int_equal(b.result, -EXDEV);
	assert_int_equal(b.len, 0);
	assert_int_equal(c.result, 0);
	assert_int_equal(a.reader, b.reader); /* one reader for all of a user, */
	assert_int_not_equal(a.reader, c.reader); /* and another for another */
}

static void one_that_hangs_keeps_nobody_else_waiting(void **state)
{
	struct readers *r = *state;
	struct question before, bad, after, other;

	ask(r, &before, ALICE, 1, "echo");
	ask(r, &bad, ALICE, 2, "hang");
	ask(r, &after, ALICE, 3, "echo");
	ask(r, &other, BOB, 4, "echo");
	await(r, &other);
	assert_int_equal(bad.left, 1); /* which is still waited for */
	await(r, &bad);
	await(r, &before);
	await(r, &after);
	assert_int_equal(before.result, 0);
	assert_int_equal(bad.result, -ETIMEDOUT);
	assert_int_equal(after.result, 0);
	assert_int_not_equal(before.reader, after.reader);
}

/* It would hang the next reader, too. */
static void a_process_that_hung_one_is_left_alone_for_a_while(void **state)
{
	struct readers *r = *state;
	struct question q;
	uint32_t reader;

	ask(r, &q, ALICE, 2, "hang");
	await(r, &q);
	reader = q.reader;
	ask(r, &q, ALICE, 2, "echo");
	await(r, &q);
	assert_int_equal(q.result, -ETIMEDOUT);
	assert_int_equal(q.reader, 0); /* nobody was told */
	do { /* a second, and it is tried again */
		ask(r, &q, ALICE, 2, "echo");
		await(r, &q);
	} while (q.result == -ETIMEDOUT);
	assert_int_equal(q.result, 0);
	assert_true(q.reader > reader);
}

/* ---- readers that do not even end ---- */

static pid_t newest_child(void)
{
	char path[64];
	pid_t newest = 0, pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	assert_non_null(f);
	while (fscanf(f, "%d", &pid) == 1)
		newest = MAX(newest, pid);
	fclose(f);
	return newest;
}

/* Whoever traces a process can keep it from its end, also when it was killed. */
static pid_t hang_for_ever(struct readers *r, struct question *q, bool apart, pid_t pid)
{
	pid_t reader;

	ask(r, q, ALICE, pid, "hang");
	readers_cancel(r, &q->task);
	q->task.apart = apart;
	readers_post(r, &q->task);
	readers_run(r);
	reader = newest_child();
	assert_int_equal(ptrace(PTRACE_SEIZE, reader, NULL, (void *)PTRACE_O_TRACEEXIT), 0);
	await(r, q);
	assert_int_equal(q->result, -ETIMEDOUT);
	return reader;
}

static void let_it_end(pid_t reader)
{
	while (ptrace(PTRACE_CONT, reader, NULL, NULL) < 0) /* it is on its way */
		sched_yield();
}

static void so_many_may_hang_and_no_more(void **state)
{
	struct readers_options options = { .patience_ns = PATIENCE_NS, .most_hung = 2 };
	struct readers *r;
	struct question q, other;
	pid_t stuck[2];

	assert_int_equal(readers_new(&options, &r), 0);
	for (size_t i = 0; i < ARRAY_SIZE(stuck); i++)
		stuck[i] = hang_for_ever(r, &q, false, (pid_t)i + 1);
	ask(r, &q, ALICE, 3, "echo");
	ask(r, &other, BOB, 4, "echo");
	await(r, &q);
	await(r, &other);
	assert_int_equal(q.result, -EUSERS);
	assert_int_equal(other.result, 0);
	for (size_t i = 0; i < ARRAY_SIZE(stuck); i++)
		let_it_end(stuck[i]);
	do { /* then they count no more */
		ask(r, &q, ALICE, 3, "echo");
		await(r, &q);
	} while (q.result == -EUSERS);
	assert_int_equal(q.result, 0);
	readers_free(r);
}

/* It stays to be buried. */
static void await_death(pid_t pid)
{
	siginfo_t info;

	do
		assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | __WALL), 0);
	while (info.si_code != CLD_KILLED);
}

/* Whoever ends does not wait for those that hang, and has forgotten whose they were. */
static void readers_end_while_some_hang(void **state)
{
	struct readers_options options = { .patience_ns = PATIENCE_NS };
	struct readers *r;
	struct question q;
	pid_t stuck;

	assert_int_equal(readers_new(&options, &r), 0);
	stuck = hang_for_ever(r, &q, false, 1);
	let_it_end(stuck);
	await_death(stuck); /* until they are looked at a last time */
	readers_free(r);
}

/* The owner may be a part of a program that goes on, as a device that is let go of for a while. */
static void those_left_behind_are_buried_by_the_next(void **state)
{
	struct readers_options options = { .patience_ns = PATIENCE_NS };
	struct readers *r;
	struct question q;
	siginfo_t info;
	pid_t stuck;

	assert_int_equal(readers_new(&options, &r), 0);
	stuck = hang_for_ever(r, &q, false, 1);
	readers_free(r);
	let_it_end(stuck);
	await_death(stuck);
	assert_int_equal(readers_new(&options, &r), 0);
	readers_see(r);
	assert_int_equal(waitid(P_PID, (id_t)stuck, &info, WEXITED | WNOWAIT | __WALL), -1);
	assert_int_equal(errno, ECHILD);
	readers_free(r);
}

/* What is known of a process by the kernel is not waited for behind its memory, and vice versa. */
static void a_user_has_two_readers_that_do_not_wait_for_each_other(void **state)
{
	struct readers_options options = { .patience_ns = PATIENCE_NS, .most_hung = 1 };
	struct readers *r;
	struct question q;
	pid_t stuck;

	assert_int_equal(readers_new(&options, &r), 0);
	stuck = hang_for_ever(r, &q, true, 1);
	ask(r, &q, ALICE, 2, "echo");
	await(r, &q);
	assert_int_equal(q.result, 0);
	let_it_end(stuck);
	readers_free(r);
}

/* Whoever has many user ids does not fill the machine with readers. */
static void so_many_run_and_no_more(void **state)
{
	struct readers_options options = { .patience_ns = LONG_NS, .most = 2 };
	struct question q, busy[2], late;
	struct readers *r;

	assert_int_equal(readers_new(&options, &r), 0);
	for (uid_t user = ALICE; user < ALICE + 5; user++) {
		ask(r, &q, user, 1, "echo");
		await(r, &q);
		assert_int_equal(q.result, 0); /* one that has nothing to do makes room */
	}
	ask(r, &busy[0], ALICE, 1, "hang");
	ask(r, &busy[1], BOB, 2, "hang");
	readers_run(r);
	ask(r, &late, BOB + 1, 3, "echo");
	await(r, &late);
	assert_int_equal(late.result, -EUSERS);
	readers_free(r);
}

static void one_that_crashes_is_replaced(void **state)
{
	struct readers *r = *state;
	struct question bad, after;

	for (pid_t pid = 1; pid <= MOST_HUNG + 1; pid++) { /* it does not count as one that hangs */
		ask(r, &bad, ALICE, pid, "crash");
		ask(r, &after, ALICE, 100, "echo");
		await(r, &bad);
		await(r, &after);
		assert_int_equal(bad.result, -EIO);
		assert_int_equal(after.result, 0);
	}
}

/* A busy machine is no hostile process. */
static void one_that_only_needs_a_processor_is_waited_for(void **state)
{
	struct readers *r = *state;
	struct question q;

	ask(r, &q, ALICE, 1, "burn");
	await(r, &q);
	assert_int_equal(q.result, 0);
	assert_memory_equal(q.answer, "burn", 4);
}

static void what_is_cancelled_is_not_told(void **state)
{
	struct readers *r = *state;
	struct question sent, waiting, last;

	ask(r, &sent, ALICE, 1, "burn");
	readers_run(r);
	ask(r, &waiting, ALICE, 2, "echo");
	ask(r, &last, ALICE, 3, "echo");
	readers_cancel(r, &sent.task);
	readers_cancel(r, &waiting.task);
	await(r, &last);
	assert_int_equal(last.result, 0);
	assert_int_equal(sent.left, 1);
	assert_int_equal(waiting.left, 1);
	readers_cancel(r, &last.task); /* which is not under way */
}

static void descriptors_come_with_the_answer(void **state)
{
	struct readers *r = *state;
	struct question before, q, after;
	char byte = 0;

	ask(r, &before, ALICE, 1, "echo");
	ask(r, &q, ALICE, 2, "pass");
	ask(r, &after, ALICE, 3, "echo");
	await(r, &before);
	await(r, &q);
	await(r, &after);
	assert_int_equal(q.result, 2);
	assert_int_equal(q.n_fds, 2);
	assert_int_equal(write(q.fds[1], "x", 1), 1);
	assert_int_equal(read(q.fds[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(q.fds[0]);
	close(q.fds[1]);
	assert_int_equal(after.result, 0);
}

static void descriptors_that_nobody_wants_are_closed(void **state)
{
	struct readers *r = *state;
	struct question q, last;
	size_t fds;

	ask(r, &q, ALICE, 1, "echo");
	await(r, &q);
	fds = count_fds();
	ask(r, &q, ALICE, 2, "pass");
	readers_run(r);
	readers_cancel(r, &q.task);
	ask(r, &last, ALICE, 3, "echo");
	await(r, &last);
	assert_int_equal(count_fds(), fds);
}

static void an_answer_that_does_not_fit_is_an_error(void **state)
{
	struct readers *r = *state;
	struct question q, after;

	ask(r, &q, ALICE, 1, "much");
	ask(r, &after, ALICE, 2, "echo");
	await(r, &q);
	await(r, &after);
	assert_int_equal(q.result, -ENOSPC);
	assert_int_equal(q.len, 0);
	assert_int_equal(after.result, 0);
}

static void more_than_one_request_holds_goes_with_the_next(void **state)
{
	struct readers *r = *state;
	static struct question many[3 * READER_TASKS];

	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		ask(r, &many[i], ALICE, (pid_t)i + 1, "echo");
	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		await(r, &many[i]);
		assert_int_equal(many[i].result, 0);
	}
}

/* Closing a socket of ours closes files of strangers there. */
static void what_older_kernels_would_wait_for_is_not_closed_here(void **state)
{
	assert_true(helper_may_close("6.12.117+deb12-amd64"));
	assert_true(helper_may_close("6.9.0"));
	assert_true(helper_may_close("10.0-rc1"));
	assert_false(helper_may_close("6.8.0-90-generic"));
	assert_false(helper_may_close("5.15.0"));
	assert_false(helper_may_close("nobody knows"));
}

/* What is in a message may be the last copy of somebody's file. */
static void a_message_that_nobody_read_is_dropped_elsewhere(void **state)
{
	struct drops drops = { 0 };
	struct helper h = HELPER_NONE;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(send(ends[1], "x", 1, 0), 1);
	h.socket = ends[0];
	helper_hang_up(&h, &drops, 1001);
	assert_int_equal(h.socket, -1);
	assert_int_equal(drop_count(&drops, 1001), 1);
	assert_int_equal(send(ends[1], "x", 1, MSG_NOSIGNAL), -1);
	drop_now(&drops);
	assert_int_equal(drops.n, 0);
	free(drops.all);
	close(ends[1]);
}

static void nothing_is_left_behind(void **state)
{
	size_t fds = count_fds();
	struct readers *r;
	struct question q, bad;

	assert_int_equal(readers_new(&(struct readers_options){ .patience_ns = PATIENCE_NS }, &r),
			 0);
	ask(r, &q, ALICE, 1, "echo");
	await(r, &q);
	ask(r, &bad, BOB, 2, "hang");
	readers_run(r);
	readers_free(r); /* who is asked still has nothing to say */
	assert_int_equal(bad.left, 1);
	assert_int_equal(count_fds(), fds);
	while (waitpid(-1, NULL, __WALL) > 0) /* they have been killed: this ends */
		;
	assert_int_equal(errno, ECHILD);
}

static void a_program_that_is_not_there_is_said_to_be_so(void **state)
{
	const char *helpers = getenv("GPREEMPT_HELPERS");
	_cleanup_free_ char *before = strdup(helpers);
	struct readers *r;

	setenv("GPREEMPT_HELPERS", "/nonexistent", 1);
	assert_int_equal(readers_new(&(struct readers_options){ 0 }, &r), -ENOPKG);
	setenv("GPREEMPT_HELPERS", before, 1);
}

static int open_here(void)
{
	int fd = helper_open("helper");

	if (fd >= 0)
		close(fd);
	return MIN(fd, 0);
}

static void a_program_that_others_could_have_put_there_is_not_run(void **state)
{
	_cleanup_free_ char *before = strdup(getenv("GPREEMPT_HELPERS"));
	char folder[] = "/tmp/gpreempt-helpers-XXXXXX", program[64];

	assert_non_null(mkdtemp(folder));
	snprintf(program, sizeof(program), "%s/helper", folder);
	setenv("GPREEMPT_HELPERS", folder, 1);
	assert_int_equal(open_here(), -ENOENT);
	close(open(program, O_CREAT | O_WRONLY, 0755));
	assert_int_equal(open_here(), 0);
	assert_int_equal(chmod(folder, 01777), 0);
	assert_int_equal(open_here(), -EPERM);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(chmod(program, 0757), 0);
	assert_int_equal(open_here(), -EPERM);
	assert_int_equal(chmod(program, 0755), 0);
	assert_int_equal(open_here(), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(program, BOB, 0), 0);
		assert_int_equal(open_here(), -EPERM);
		assert_int_equal(chown(program, 0, BOB), 0);
		assert_int_equal(chmod(program, 0775), 0);
		assert_int_equal(open_here(), -EPERM);
	}
	unlink(program);
	rmdir(folder);
	setenv("GPREEMPT_HELPERS", before, 1);
}

/* ---- who somebody is ---- */

static struct proc_files answer_of(struct readers *r, struct asks *a)
{
	unsigned int left = 1;
	struct proc_files f;

	while (!asks_answer(a, &f))
		readers_wait(r, 10 * NSEC_PER_MSEC, &left);
	return f;
}

static void who_a_process_is_is_told_though_its_memory_hangs(void **state)
{
	struct readers *r = *state;
	struct proc_files f;
	struct proc_stat stat;
	struct asks *a;

	assert_int_equal(asks_new(r, NULL, &a), 0);
	assert_int_equal(asks_ask(a, getpid(), PROC_BIT(PROC_STATUS) | PROC_BIT(PROC_PARENTS) |
						       PROC_BIT(PROC_CMDLINE)),
			 0);
	assert_int_equal(asks_ask(a, getpid(), PROC_BIT(PROC_STAT)), -EALREADY);
	f = answer_of(r, a);
	assert_int_equal(f.result, 0);
	assert_int_equal(f.unread, 0);
	assert_int_equal(proc_stat_parse(f.text[PROC_STAT], f.len[PROC_STAT], &stat), 0);
	assert_int_equal(stat.parent, getppid());
	assert_non_null(strstr(f.text[PROC_STATUS], "Uid:"));
	assert_non_null(strstr(f.text[PROC_CMDLINE], "test_readers"));
	assert_int_equal(strtol(f.text[PROC_PARENTS], NULL, 10), getppid());
	proc_files_done(&f);

	assert_int_equal(asks_ask(a, getpid(), PROC_BIT(PROC_STATUS) | PROC_MEMORY), 0);
	f = answer_of(r, a);
	assert_int_equal(f.result, 0);
	assert_int_equal(f.unread, PROC_MEMORY);
	assert_null(f.text[PROC_ENVIRON]);
	assert_non_null(f.text[PROC_STATUS]);
	proc_files_done(&f);
	asks_free(a);
}

static void a_process_that_is_gone_is_nobody(void **state)
{
	struct readers *r = *state;
	struct proc_files f;
	struct asks *a;
	pid_t gone = fork();

	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	assert_int_equal(asks_new(r, NULL, &a), 0);
	assert_int_equal(asks_ask(a, gone, PROC_BIT(PROC_STAT) | PROC_MEMORY), 0);
	f = answer_of(r, a);
	assert_int_equal(f.pid, gone);
	assert_int_equal(f.result, -ESRCH);
	assert_int_equal(f.unread, 0);
	proc_files_done(&f);
	assert_int_equal(asks_ask(a, getpid(), PROC_BIT(PROC_STAT)), 0);
	asks_free(a); /* while it is under way */
	readers_run(r);
}

static void nonsense_in_an_answer_is_refused(void **state)
{
	const uint32_t no_such_file[] = { PROC_FILES, 0 }, too_long[] = { PROC_STAT, 5, 0 };
	struct proc_files f = { 0 };

	assert_int_equal(proc_files_take(no_such_file, sizeof(no_such_file), &f), -EBADMSG);
	assert_int_equal(proc_files_take(too_long, sizeof(too_long), &f), -EBADMSG);
	assert_int_equal(proc_files_take(too_long, 7, &f), -EBADMSG);
	assert_int_equal(proc_files_take(NULL, 0, &f), 0);
	proc_files_done(&f);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_asked_is_answered),
		T(one_that_hangs_keeps_nobody_else_waiting),
		T(a_process_that_hung_one_is_left_alone_for_a_while),
		cmocka_unit_test(so_many_may_hang_and_no_more),
		cmocka_unit_test(readers_end_while_some_hang),
		cmocka_unit_test(those_left_behind_are_buried_by_the_next),
		cmocka_unit_test(a_user_has_two_readers_that_do_not_wait_for_each_other),
		cmocka_unit_test(so_many_run_and_no_more),
		T(one_that_crashes_is_replaced),
		T(one_that_only_needs_a_processor_is_waited_for),
		T(what_is_cancelled_is_not_told),
		T(descriptors_come_with_the_answer),
		T(descriptors_that_nobody_wants_are_closed),
		T(an_answer_that_does_not_fit_is_an_error),
		T(more_than_one_request_holds_goes_with_the_next),
		cmocka_unit_test(what_older_kernels_would_wait_for_is_not_closed_here),
		cmocka_unit_test(a_message_that_nobody_read_is_dropped_elsewhere),
		cmocka_unit_test(nothing_is_left_behind),
		cmocka_unit_test(a_program_that_is_not_there_is_said_to_be_so),
		cmocka_unit_test(a_program_that_others_could_have_put_there_is_not_run),
		T(who_a_process_is_is_told_though_its_memory_hangs),
		T(a_process_that_is_gone_is_nobody),
		cmocka_unit_test(nonsense_in_an_answer_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
