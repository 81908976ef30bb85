/* SPDX-License-Identifier: MIT */
/* Questions about a process with many descriptors, asked by the real reader. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "gpu/nvrm/machine.h"
#include "tests/kfd/counts.h"
#include "util/macros.h"

#define DEVICE "/dev/full"
#define OTHERS 2500u /* descriptors below those of the device */
#define COPIES 200u
#define PATIENCE_MS 20000
#define LINGER_S 8

static const struct nvrm_transport *const t = &nvrm_transport_syscall;

struct world {
	char root[64];
	struct nvrm n;
	struct nvrm_question q;
	pid_t child;
	size_t fds;
};

static _Noreturn void be_child(int ready)
{
	int device = open(DEVICE, O_RDWR | O_CLOEXEC),
	    other = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned int i = 0; i < OTHERS; i++)
		if (dup(other) < 0)
			_exit(1);
	for (unsigned int i = 1; i < COPIES; i++)
		if (dup(device) < 0)
			_exit(1);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void start_child(struct world *w)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	w->child = fork();
	assert_true(w->child >= 0);
	if (w->child == 0)
		be_child(ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const char *tmp = getenv("TMPDIR");
	char path[128];

	assert_non_null(w);
	w->fds = count_fds();
	snprintf(w->root, sizeof(w->root), "%s/nvrm-XXXXXX", tmp ? tmp : P_tmpdir);
	assert_non_null(mkdtemp(w->root));
	snprintf(path, sizeof(path), "%s/dev", w->root);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/dev/nvidiactl", w->root);
	assert_int_equal(symlink(DEVICE, path), 0);
	snprintf(path, sizeof(path), "%s/proc", w->root);
	assert_int_equal(symlink("/proc", path), 0);
	w->n = (struct nvrm){ .transport = t, .data = nvrm_syscall_new(w->root) };
	assert_non_null(w->n.data);
	assert_int_equal(nvrm_syscall_by_readers(w->n.data), 0);
	w->q.user = geteuid();
	start_child(w);
	w->q.blamed = w->child;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "dev/nvidiactl", "dev", "proc", "" };
	_cleanup_free_ struct world *w = *state;

	kill(w->child, SIGKILL);
	assert_int_equal(waitpid(w->child, NULL, 0), w->child);
	t->close(w->n.data);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", w->root, names[i]);
		remove(path);
	}
	assert_int_equal(count_fds(), w->fds);
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void hear(struct world *w)
{
	struct pollfd p = { .fd = t->answers_fd(w->n.data), .events = POLLIN };

	poll(&p, 1, 20);
	t->hear(w->n.data);
}

/* The answer, which is never there at once. */
static int ask(struct world *w, enum nvrm_what what, uint64_t position)
{
	uint64_t until_ms = now_ms() + PATIENCE_MS;
	int r;

	w->q.words = (struct nvrm_words){
		.what = what, .pid = w->child, .position = position, .left = 512
	};
	assert_int_equal(nvrm_ask(&w->n, &w->q), -EINPROGRESS);
	while ((r = nvrm_ask(&w->n, &w->q)) == -EINPROGRESS) {
		assert_true(now_ms() < until_ms);
		hear(w);
	}
	return r;
}

/* The only child that is none of the test's. */
static pid_t reader_of(const struct world *w)
{
	char path[64], text[256];
	FILE *f;
	pid_t pid = 0;
	int count = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	if (!f || !fgets(text, sizeof(text), f))
		text[0] = '\0';
	for (char *at = text, *end; strtol(at, &end, 10) > 0 && end != at; at = end) {
		pid_t child = (pid_t)strtol(at, NULL, 10);

		if (child == w->child)
			continue;
		pid = child;
		count++;
	}
	if (f)
		fclose(f);
	assert_int_equal(count, 1);
	return pid;
}

static void many_descriptors_are_copied_by_one_reader(void **state)
{
	struct world *w = *state;
	uint64_t position = 0;
	unsigned int copies = 0, questions = 0;
	pid_t reader = 0;

	while (position != BORROW_END) {
		int n = ask(w, NVRM_ASK_COPIES, position);

		assert_in_range(n, 0, NVRM_COPIES);
		position = w->q.words.position;
		for (int i = 0; i < n; i++)
			close(w->q.words.copies[i].fd);
		copies += (unsigned int)n;
		if (questions++ == 0)
			reader = reader_of(w);
	}
	assert_int_equal(copies, COPIES);
	assert_in_range(questions, COPIES / NVRM_COPIES, COPIES / NVRM_COPIES + OTHERS / 512 + 3);
	assert_int_equal(reader_of(w), reader);
}

static void all_kinds_of_questions_are_answered(void **state)
{
	struct world *w = *state;
	uint64_t position = 0;
	uint32_t number;

	while (position != BORROW_END) {
		assert_int_equal(ask(w, NVRM_ASK_PARENT, position), 0);
		assert_int_equal(w->q.words.parent, getpid());
		position = w->q.words.position;
	}
	assert_int_equal(ask(w, NVRM_ASK_SERVERS, 0), 0);
	assert_true(w->q.words.servers == 0);
	assert_true(ask(w, NVRM_ASK_COPIES, 0) > 0);
	number = w->q.words.copies[0].number;
	assert_string_equal(w->q.words.copies[0].link, DEVICE);
	for (uint32_t i = 0; i < w->q.words.n; i++)
		close(w->q.words.copies[i].fd);
	w->q.words = (struct nvrm_words){
		.what = NVRM_ASK_LINKS,
		.pid = w->child,
		.n = 2,
		.copies = { { .number = number }, { .number = 100000 } },
	};
	while (nvrm_ask(&w->n, &w->q) == -EINPROGRESS)
		hear(w);
	assert_string_equal(w->q.words.copies[0].link, DEVICE);
	assert_string_equal(w->q.words.copies[1].link, "");
}

static void a_reader_that_hangs_is_not_waited_for(void **state)
{
	struct world *w = *state;

	assert_int_equal(ask(w, NVRM_ASK_SERVERS, 0), 0);
	assert_int_equal(kill(reader_of(w), SIGSTOP), 0);
	assert_int_equal(ask(w, NVRM_ASK_SERVERS, 0), -ETIMEDOUT);
	w->q.blamed = getpid(); /* that one is left alone for a while, others are not */
	assert_int_equal(ask(w, NVRM_ASK_SERVERS, 0), 0);
}

static bool is_told(struct nvrm_finder *f)
{
	uint64_t until_ms = now_ms() + PATIENCE_MS;

	do {
		assert_true(nvrm_finder_look(f) >= 0);
		if (nvrm_finder_unseen(f) > 0)
			return true;
		poll(NULL, 0, 20);
	} while (now_ms() < until_ms);
	return false;
}

/* Nobody of this machine has a GPU open, or somebody has: both can be found out. */
static void whom_a_reader_hangs_at_is_told_as_unseen(void **state)
{
	struct world *w = *state;
	struct nvrm_finder *f;

	assert_int_equal(nvrm_finder_new(&w->n, &f), 0);
	assert_int_equal(ask(w, NVRM_ASK_SERVERS, 0), 0);
	assert_int_equal(kill(reader_of(w), SIGSTOP), 0);
	assert_true(is_told(f));
	assert_in_range(nvrm_finder_unseen(f), 1, 1);
	nvrm_finder_free(f);
}

/* What comes for nobody is given back. */
static void a_question_may_be_forgotten(void **state)
{
	struct world *w = *state;
	uint64_t until_ms = now_ms() + PATIENCE_MS;
	size_t fds;

	assert_int_equal(ask(w, NVRM_ASK_SERVERS, 0), 0);
	fds = count_fds();
	w->q.words = (struct nvrm_words){
		.what = NVRM_ASK_COPIES, .pid = w->child, .position = OTHERS, .left = 512
	};
	assert_int_equal(nvrm_ask(&w->n, &w->q), -EINPROGRESS);
	nvrm_forget(&w->n, &w->q);
	assert_int_equal(w->q.state, NVRM_UNASKED);
	while (t->hear(w->n.data) != UINT64_MAX) {
		assert_true(now_ms() < until_ms);
		hear(w);
	}
	assert_int_equal(count_fds(), fds);
}

/* Closing it waits until its peer has read everything, and that reads nothing. */
static int make_lingering(int *ret_peer)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static char much[65536];

	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	*ret_peer = accept(listener, NULL, NULL);
	close(listener);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	while (send(fd, much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	return fd;
}

static void the_last_copy_is_closed_by_somebody_else(void **state)
{
	struct world *w = *state;
	uint64_t began_ms = now_ms(), until_ms = began_ms + PATIENCE_MS;
	size_t fds = count_fds();
	int peer, fd = make_lingering(&peer);

	t->drop_fd(w->n.data, fd);
	while (t->hear(w->n.data) < NSEC_PER_SEC) {
		assert_true(now_ms() < until_ms);
		hear(w);
	}
	assert_int_equal(count_fds(), fds + 1); /* the peer's */
	assert_in_range(now_ms() - began_ms, 0, LINGER_S * 1000 / 2);
	close(peer);
	while (t->hear(w->n.data) != UINT64_MAX) { /* until the child is buried */
		assert_true(now_ms() < until_ms);
		hear(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(many_descriptors_are_copied_by_one_reader),
		CASE(all_kinds_of_questions_are_answered),
		CASE(a_reader_that_hangs_is_not_waited_for),
		CASE(whom_a_reader_hangs_at_is_told_as_unseen),
		CASE(a_question_may_be_forgotten),
		CASE(the_last_copy_is_closed_by_somebody_else),
	};
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return 1;
	files.rlim_cur = files.rlim_max;
	if (files.rlim_max < OTHERS + COPIES + 64 || setrlimit(RLIMIT_NOFILE, &files) < 0) {
		printf("1..0 # SKIP too few descriptors are allowed\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
