/* SPDX-License-Identifier: MIT */
/*
 * What a guard undoes without tracing anybody: several calls, with their data, whenever the holder
 * is killed. What is done and undone are flags of a socket, which whoever has it sees.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "gpu/guard.h"
#include "gpu/guard_watch.h"
#include "util/macros.h"

#define KILLS 60
#define KILL_WITHIN_NS (4 * NSEC_PER_MSEC)
#define STUCK_SILENCE_NS (500 * NSEC_PER_MSEC)

struct world {
	int fd; /* what is done to */
	pid_t target;
	int pidfd;
	unsigned int seed;
};

static struct guard_call flag_call(unsigned long request, int value, bool due)
{
	struct guard_call c = { .request = request, .pointer_at = GUARD_NO_POINTER, .due = due };

	memcpy(c.arg, &value, sizeof(value));
	return c;
}

static int flags(const struct world *w)
{
	int r = fcntl(w->fd, F_GETFL);

	assert_true(r >= 0);
	return r & (O_NONBLOCK | O_ASYNC);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->seed = 1;
	w->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(w->fd >= 0);
	w->target = fork();
	if (w->target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	w->pidfd = (int)syscall(SYS_pidfd_open, w->target, 0);
	assert_true(w->pidfd >= 0);
	*state = w;
	return 0;
}

static void end_target(struct world *w)
{
	if (w->target <= 0)
		return;
	kill(w->target, SIGKILL);
	assert_int_equal(waitpid(w->target, NULL, 0), w->target);
	w->target = 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	end_target(w);
	close(w->pidfd);
	close(w->fd);
	free(w);
	return 0;
}

/* ---- in the holder ---- */

static void must(bool condition)
{
	if (!condition)
		_exit(2);
}

static void do_to(const struct world *w, unsigned long request, int value)
{
	must(ioctl(w->fd, request, &value) == 0);
}

static int begin(const struct world *w, struct guard **ret)
{
	int slot;

	must(guard_start(ret) == 0);
	slot = guard_arm(*ret, w->target, 20 * NSEC_PER_SEC);
	must(slot >= 0);
	return slot;
}

static void say_guard(const struct guard *g, int say_fd)
{
	pid_t guard = guard_pid(g);

	must(write(say_fd, &guard, sizeof(guard)) == sizeof(guard));
}

static _Noreturn void wait_for_ever(void)
{
	for (;;)
		pause();
}

typedef void holder_fn(const struct world *w, int say_fd);

struct holder {
	pid_t pid, guard;
};

static struct holder start_holder(const struct world *w, holder_fn *fn)
{
	struct holder h;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	h.pid = fork();
	assert_true(h.pid >= 0);
	if (h.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(w, fds[1]);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &h.guard, sizeof(h.guard)), sizeof(h.guard));
	close(fds[0]);
	return h;
}

/* The guard and whom it starts are a process group, and ours once the holder is gone. */
static void wait_for_guard(struct holder h)
{
	while (waitpid(-h.guard, NULL, __WALL) > 0 || errno == EINTR)
		;
}

static void kill_holder(struct holder h)
{
	kill(h.pid, SIGKILL);
	assert_int_equal(waitpid(h.pid, NULL, 0), h.pid);
	wait_for_guard(h);
}

/* ---- one list ---- */

static _Noreturn void hold_with_a_list(const struct world *w, int say_fd)
{
	struct guard_undo undo = {
		.n_calls = 3,
		.calls = { flag_call(FIONBIO, 0, true), flag_call(FIOASYNC, 1, false),
			   flag_call(FIOASYNC, 0, false) },
	};
	struct guard *g;
	int slot = begin(w, &g);

	must(guard_entrust(g, slot, w->fd, w->pidfd, &undo) == 0);
	guard_set_due(g, slot, 2, true);
	do_to(w, FIONBIO, 1);
	do_to(w, FIOASYNC, 1);
	say_guard(g, say_fd);
	wait_for_ever();
}

static void every_due_call_of_a_list_is_made(void **state)
{
	struct world *w = *state;
	struct holder h = start_holder(w, hold_with_a_list);

	assert_int_equal(flags(w), O_NONBLOCK | O_ASYNC);
	kill_holder(h);
	assert_int_equal(flags(w), 0);
}

static _Noreturn void hold_and_let_go(const struct world *w, int say_fd)
{
	struct guard_undo undo = {
		.n_calls = 2,
		.calls = { flag_call(FIONBIO, 0, true), flag_call(FIOASYNC, 0, true) },
	};
	struct guard *g;
	int slot = begin(w, &g);

	must(guard_entrust(g, slot, w->fd, w->pidfd, &undo) == 0);
	guard_set_due(g, slot, 0, false);
	do_to(w, FIONBIO, 1);
	do_to(w, FIOASYNC, 1);
	say_guard(g, say_fd);
	wait_for_ever();
}

static void a_call_that_is_not_due_is_not_made(void **state)
{
	struct world *w = *state;
	struct holder h = start_holder(w, hold_and_let_go);

	kill_holder(h);
	assert_int_equal(flags(w), O_NONBLOCK);
}

static void nothing_is_done_on_behalf_of_a_target_that_has_ended(void **state)
{
	struct world *w = *state;
	struct holder h = start_holder(w, hold_with_a_list);

	end_target(w);
	kill_holder(h);
	assert_int_equal(flags(w), O_NONBLOCK | O_ASYNC);
}

static _Noreturn void disarm_what_is_due(const struct world *w, int say_fd)
{
	struct guard_undo undo = { .n_calls = 1, .calls = { flag_call(FIONBIO, 0, true) } };
	struct guard *g;
	int slot = begin(w, &g);

	must(guard_entrust(g, slot, w->fd, w->pidfd, &undo) == 0);
	do_to(w, FIONBIO, 1);
	guard_disarm(g, slot);
	must(guard_arm(g, w->target, 20 * NSEC_PER_SEC) == slot);
	say_guard(g, say_fd);
	wait_for_ever();
}

static void what_is_disarmed_is_forgotten(void **state)
{
	struct world *w = *state;
	struct holder h = start_holder(w, disarm_what_is_due);

	kill_holder(h);
	assert_int_equal(flags(w), O_NONBLOCK);
}

/* ---- at any moment ---- */

/*
 * The list is another one each time, and what is due at another place in it: the wrong one at the
 * wrong moment would set what must not be set, or leave what is.
 */
static _Noreturn void hold_again_and_again(const struct world *w, int say_fd)
{
	const struct guard_undo lists[2] = {
		{ .n_calls = 3,
		  .calls = { flag_call(FIONBIO, 0, true), flag_call(FIOASYNC, 1, false),
			     flag_call(FIOASYNC, 0, true) } },
		{ .n_calls = 4,
		  .calls = { flag_call(FIOASYNC, 1, false), flag_call(FIOASYNC, 0, true),
			     flag_call(FIONBIO, 1, false), flag_call(FIONBIO, 0, true) } },
	};
	const uint32_t places[2][2] = { { 0, 2 }, { 3, 1 } };
	struct guard *g;
	int slot = begin(w, &g);

	must(guard_entrust(g, slot, w->fd, w->pidfd, &lists[0]) == 0);
	say_guard(g, say_fd);
	for (unsigned int i = 0;; i = !i) {
		guard_set_due(g, slot, places[i][0], true);
		do_to(w, FIONBIO, 1);
		guard_set_due(g, slot, places[i][1], true);
		do_to(w, FIOASYNC, 1);
		must(guard_entrust(g, slot, w->fd, w->pidfd, &lists[!i]) == 0);
		do_to(w, FIONBIO, 0);
		guard_set_due(g, slot, places[!i][0], false);
		do_to(w, FIOASYNC, 0);
		guard_set_due(g, slot, places[!i][1], false);
	}
}

static void wait_at_random(struct world *w)
{
	struct timespec left = { .tv_nsec = (long)(rand_r(&w->seed) % KILL_WITHIN_NS) };

	ppoll(NULL, 0, &left, NULL);
}

static void a_holder_may_be_killed_at_any_moment(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < KILLS; i++) {
		struct holder h = start_holder(w, hold_again_and_again);

		wait_at_random(w);
		kill_holder(h);
		assert_int_equal(flags(w), 0);
	}
}

/* A list whose last data cannot be read: whoever copies it dies in the middle of it. */
static struct guard_undo *half_a_list(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = (sizeof(struct guard_undo) / page + 1) * page;
	char *at = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	struct guard_undo *undo = (struct guard_undo *)at;

	must(at != MAP_FAILED);
	must(mprotect(at + size - page, 2 * page, PROT_NONE) == 0);
	undo->n_calls = 2;
	undo->calls[0] = flag_call(FIONBIO, 0, false);
	undo->calls[1] = (struct guard_call){ .data_len = GUARD_DATA };
	return undo;
}

static _Noreturn void die_while_entrusting(const struct world *w, int say_fd)
{
	struct guard_undo undo = { .n_calls = 1, .calls = { flag_call(FIONBIO, 0, true) } };
	struct guard_undo *half = half_a_list();
	struct guard *g;
	int slot = begin(w, &g);

	signal(SIGSEGV, SIG_DFL);
	must(guard_entrust(g, slot, w->fd, w->pidfd, &undo) == 0);
	do_to(w, FIONBIO, 1);
	say_guard(g, say_fd);
	guard_entrust(g, slot, w->fd, w->pidfd, half);
	wait_for_ever();
}

static void what_is_half_entrusted_does_not_count(void **state)
{
	struct world *w = *state;
	struct holder h = start_holder(w, die_while_entrusting);
	int status;

	assert_int_equal(waitpid(h.pid, &status, 0), h.pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	wait_for_guard(h);
	assert_int_equal(flags(w), 0);
}

/* ---- a holder that does not end ---- */

static void *wait_in_thread(void *user)
{
	__atomic_store_n((pid_t *)user, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	wait_for_ever();
}

/* Says its guard, and then the thread that will not end. It beats no more. */
static _Noreturn void hold_with_a_thread(const struct world *w, int say_fd)
{
	struct guard_undo undo = { .n_calls = 1, .calls = { flag_call(FIONBIO, 0, true) } };
	static pid_t thread;
	pthread_t handle;
	struct guard *g;
	int slot = begin(w, &g);

	must(guard_entrust(g, slot, w->fd, w->pidfd, &undo) == 0);
	do_to(w, FIONBIO, 1);
	must(pthread_create(&handle, NULL, wait_in_thread, &thread) == 0);
	while (!__atomic_load_n(&thread, __ATOMIC_ACQUIRE))
		sched_yield();
	say_guard(g, say_fd);
	must(write(say_fd, &thread, sizeof(thread)) == sizeof(thread));
	guard_beat(g, slot, STUCK_SILENCE_NS);
	wait_for_ever();
}

/* Whoever traces a thread can keep it from its end, also when it was killed. */
static void keep_thread(pid_t thread)
{
	assert_int_equal(ptrace(PTRACE_SEIZE, thread, NULL, (void *)PTRACE_O_TRACEEXIT), 0);
}

static void let_thread_end(pid_t thread)
{
	int status;

	assert_int_equal(waitpid(thread, &status, __WALL), thread);
	assert_int_equal(status >> 8, SIGTRAP | PTRACE_EVENT_EXIT << 8);
	assert_int_equal(ptrace(PTRACE_CONT, thread, NULL, NULL), 0);
	assert_int_equal(waitpid(thread, NULL, __WALL), thread);
}

static bool is_undone_within(const struct world *w, uint64_t ns)
{
	struct pollfd nothing = { .fd = -1 };

	for (uint64_t left = ns / NSEC_PER_MSEC; left > 0 && flags(w); left--)
		poll(&nothing, 1, 1);
	return flags(w) == 0;
}

static void what_a_holder_left_is_undone_though_it_does_not_end(void **state)
{
	struct world *w = *state;
	struct holder h;
	pid_t thread;
	int say[2];

	assert_int_equal(pipe2(say, O_CLOEXEC), 0);
	h.pid = fork();
	if (h.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		hold_with_a_thread(w, say[1]);
	}
	close(say[1]); /* so that a holder that died is not waited for */
	assert_int_equal(read(say[0], &h.guard, sizeof(h.guard)), sizeof(h.guard));
	assert_int_equal(read(say[0], &thread, sizeof(thread)), sizeof(thread));
	keep_thread(thread);
	assert_true(is_undone_within(w, 2 * NSEC_PER_SEC));
	assert_int_equal(waitpid(h.pid, NULL, WNOHANG), 0); /* it is still there */
	let_thread_end(thread);
	assert_int_equal(waitpid(h.pid, NULL, 0), h.pid);
	wait_for_guard(h);
	close(say[0]);
}

/* ---- the guard's own part ---- */

static struct guard_page *new_page(void)
{
	struct guard_page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	return page;
}

static void lend(const struct world *w, int slot, struct guard_lent *ret)
{
	for (int i = 0; i < GUARD_SLOTS; i++)
		ret[i] = (struct guard_lent){ .fd = -1, .pidfd = -1 };
	ret[slot] = (struct guard_lent){ .fd = w->fd, .pidfd = w->pidfd };
}

static void undo_all(const struct world *w, struct guard_page *page, int slot)
{
	struct guard_lent lent[GUARD_SLOTS];

	lend(w, slot, lent);
	guard_undo_all(page, lent);
	while (waitpid(-1, NULL, __WCLONE) > 0 || errno == EINTR)
		;
}

/* The kernel writes the names of interfaces where the argument points to. */
static void the_data_of_a_call_is_what_its_argument_points_to(void **state)
{
	struct guard_page *page = new_page();
	struct guard_undo *undo = &page->undo[5][1];
	struct ifconf conf = { .ifc_len = 2 * (int)sizeof(struct ifreq) };
	struct ifreq first;

	page->slots[5].undo = 1;
	undo->n_calls = 1;
	undo->calls[0] = (struct guard_call){
		.request = SIOCGIFCONF,
		.pointer_at = offsetof(struct ifconf, ifc_buf),
		.data_at = 512,
		.data_len = 2 * sizeof(struct ifreq),
		.due = true,
	};
	memcpy(undo->calls[0].arg, &conf, sizeof(conf));
	undo_all(*state, page, 5);
	memcpy(&first, undo->data + 512, sizeof(first));
	assert_string_equal(first.ifr_name, "lo");
	assert_int_equal(undo->data[511], 0);
	/* The argument itself is as it was: it is made anew for each try. */
	assert_memory_equal(undo->calls[0].arg, &conf, sizeof(conf));
	munmap(page, sizeof(*page));
}

/* Asks us, for this process and its children, what comes of FIONBIO. -1: no such kernel. */
static int ask_us(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FIONBIO, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = ARRAY_SIZE(code), .filter = code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &filter);
}

/* @error 0: the call is made. */
static void answer(int listener, int error)
{
	struct seccomp_notif asked = { 0 };
	struct seccomp_notif_resp said = { .error = -error };

	must(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) == 0);
	said.id = asked.id;
	said.flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	must(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &said) == 0);
}

static _Noreturn void undo_against_resistance(const struct world *w, struct guard_page *page)
{
	struct guard_lent lent[GUARD_SLOTS];
	int listener = ask_us();

	if (listener < 0)
		_exit(77);
	alarm(20); /* should nobody ask again */
	lend(w, 3, lent);
	guard_undo_all(page, lent);
	answer(listener, EAGAIN);
	answer(listener, EINTR);
	answer(listener, 0);
	while (waitpid(-1, NULL, __WCLONE) > 0 || errno == EINTR)
		;
	_exit(0);
}

static void a_call_that_is_to_be_made_again_is_made_again(void **state)
{
	struct guard_page *page = new_page();
	struct world *w = *state;
	int status, on = 1;
	pid_t child;

	page->undo[3][0].n_calls = 1;
	page->undo[3][0].calls[0] = flag_call(FIONBIO, 0, true);
	assert_int_equal(ioctl(w->fd, FIONBIO, &on), 0);
	child = fork();
	if (child == 0)
		undo_against_resistance(w, page);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("# nobody can be asked what comes of a call here\n");
	} else {
		assert_int_equal(status, 0);
		assert_int_equal(flags(w), 0);
	}
	munmap(page, sizeof(*page));
}

static void an_undo_that_contradicts_itself_is_refused(void **state)
{
	const struct guard_call wrong[] = {
		{ .pointer_at = GUARD_UNDO_ARG_MAX - 7 },
		{ .data_at = GUARD_DATA, .data_len = 1 },
		{ .data_at = 1, .data_len = GUARD_DATA },
		{ .data_at = UINT32_MAX, .data_len = 2 },
	};
	struct world *w = *state;
	struct guard_undo undo = { .n_calls = 1 };
	struct guard *g;
	int slot;

	assert_int_equal(guard_start(&g), 0);
	slot = guard_arm(g, w->target, 20 * NSEC_PER_SEC);
	assert_true(slot >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		undo.calls[0] = wrong[i];
		assert_int_equal(guard_entrust(g, slot, w->fd, w->pidfd, &undo), -EINVAL);
	}
	undo.n_calls = GUARD_CALLS + 1;
	assert_int_equal(guard_entrust(g, slot, w->fd, w->pidfd, &undo), -EINVAL);
	undo = (struct guard_undo){
		.n_calls = 1,
		.calls = { { .pointer_at = GUARD_UNDO_ARG_MAX - 8, .data_len = GUARD_DATA } },
	};
	assert_int_equal(guard_entrust(g, slot, w->fd, w->pidfd, &undo), 0);
	guard_disarm(g, slot);
	guard_stop(g);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_due_call_of_a_list_is_made),
		T(a_call_that_is_not_due_is_not_made),
		T(nothing_is_done_on_behalf_of_a_target_that_has_ended),
		T(what_is_disarmed_is_forgotten),
		T(a_holder_may_be_killed_at_any_moment),
		T(what_is_half_entrusted_does_not_count),
		T(what_a_holder_left_is_undone_though_it_does_not_end),
		T(the_data_of_a_call_is_what_its_argument_points_to),
		T(a_call_that_is_to_be_made_again_is_made_again),
		T(an_undo_that_contradicts_itself_is_refused),
	};

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
