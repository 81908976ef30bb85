/* SPDX-License-Identifier: MIT */
/* Where the daemon is found, and the page of hints it shares. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "lib/daemon_internal.h"
#include "util/clock.h"

struct place {
	char folder[64], path[96];
	int listener;
};

static int make_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const char *base = getenv("TMPDIR");

	if (!p)
		return -1;
	snprintf(p->folder, sizeof(p->folder), "%.40s/gpreemptXXXXXX", base ? base : P_tmpdir);
	if (!mkdtemp(p->folder))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/control", p->folder);
	memcpy(a.sun_path, p->path, strlen(p->path));
	p->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(p->listener, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(p->listener, 4) < 0)
		return -1;
	*state = p;
	return 0;
}

static int drop_place(void **state)
{
	struct place *p = *state;

	close(p->listener);
	unlink(p->path);
	rmdir(p->folder);
	free(p);
	return 0;
}

static void the_environment_names_the_socket(void **state)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_daemon *d = NULL;
	struct place *p = *state;

	assert_int_equal(gpreempt_daemon_open(p->path, &d, &e), 0);
	assert_null(gpreempt_daemon_close(d));
	setenv("GPREEMPT_SOCKET", p->path, 1);
	assert_int_equal(gpreempt_daemon_open(NULL, &d, NULL), 0);
	gpreempt_daemon_close(d);
	unsetenv("GPREEMPT_SOCKET");
	assert_null(gpreempt_daemon_close(NULL));
}

static void no_daemon_is_said_so(void **state)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_daemon *d = NULL;
	struct place *p = *state;
	char longest[200];

	assert_int_equal(gpreempt_daemon_open("/nowhere/at/all", &d, &e), -ENOENT);
	assert_int_equal(e.kind, GPREEMPT_ERROR_ABSENT);
	assert_non_null(strstr(e.message, "/nowhere/at/all"));
	close(p->listener); /* the file stays, as after a crash */
	p->listener = -1;
	assert_int_equal(gpreempt_daemon_open(p->path, &d, &e), -ECONNREFUSED);
	assert_int_equal(e.kind, GPREEMPT_ERROR_ABSENT);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(gpreempt_daemon_open(longest, &d, &e), -EINVAL);
	assert_int_equal(gpreempt_daemon_open("", &d, &e), -EINVAL);
	assert_int_equal(e.kind, GPREEMPT_ERROR_USAGE);
	assert_null(d);
}

/* Answers a request for a page, with descriptors. */
static void answer_with(int peer, uint32_t seq, const int *fds, size_t n)
{
	union {
		struct cmsghdr h;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control = { 0 };
	struct wire_answer a = {
		.h = wire_header(WIRE_HINT_PAGE, sizeof(a), seq),
	};
	struct iovec iov = { &a, sizeof(a) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = n ? &control : NULL,
		.msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0,
	};

	control.h = (struct cmsghdr){ CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	if (n)
		memcpy(CMSG_DATA(&control.h), fds, n * sizeof(int));
	assert_int_equal(sendmsg(peer, &msg, 0), sizeof(a));
}

static void answer(int peer, uint32_t seq, int fd)
{
	answer_with(peer, seq, &fd, 1);
}

static void refuse(int peer, uint32_t seq, int error)
{
	struct wire_error e;

	wire_error_set(&e, seq, error, wire_error_kind_of(error), "hint", "refused");
	assert_int_equal(send(peer, &e, sizeof(e), 0), sizeof(e));
}

/* What a program asks when it opens its hints, or later. */
static struct wire_hint hear(int peer)
{
	struct wire_hint r = { 0 };

	assert_int_equal(recv(peer, &r, sizeof(r), 0), sizeof(r));
	assert_int_equal(r.h.type, WIRE_HINT_PAGE);
	assert_int_equal(r.pid, 0);
	return r;
}

static int let_in(const struct place *p)
{
	int peer = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);

	assert_true(peer >= 0);
	return peer;
}

/* The peer answers before it is asked. */
static struct gpreempt_hint *open_hint_with(struct place *p, const int *fds, size_t n,
					    struct gpreempt_error *ret_error)
{
	struct gpreempt_daemon *d = NULL;
	struct gpreempt_hint *hint;
	int peer;

	assert_int_equal(gpreempt_daemon_open(p->path, &d, NULL), 0);
	peer = let_in(p);
	answer_with(peer, 1, fds, n);
	hint = hint_from(d, p->path, ret_error);
	assert_non_null(hint);
	close(peer);
	return hint;
}

static struct gpreempt_hint *open_hint(struct place *p, int fd, struct gpreempt_error *ret_error)
{
	return open_hint_with(p, &fd, fd >= 0, ret_error);
}

static int make_page_of(size_t bytes, uint32_t magic, uint16_t version, uint16_t since)
{
	struct wire_hint_page page = { .magic = magic, .version = version, .since = since };
	int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (bytes >= sizeof(page))
		assert_int_equal(pwrite(fd, &page, sizeof(page), 0), sizeof(page));
	return fd;
}

static int make_page(size_t bytes, uint32_t magic)
{
	return make_page_of(bytes, magic, WIRE_HINT_VERSION, WIRE_HINT_VERSION);
}

static int seal(int fd)
{
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

static void a_hint_is_a_store_into_the_shared_page(void **state)
{
	_cleanup_close_ int fd = seal(make_page(4096, WIRE_MAGIC));
	struct wire_hint_page *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	struct gpreempt_hint *hint = open_hint(*state, fd, NULL);

	assert_non_null(hint);
	gpreempt_hint_in(hint, 3600 * NSEC_PER_SEC);
	assert_int_equal(page->calls, 1);
	assert_true(page->at_ns > 3600 * NSEC_PER_SEC);
	gpreempt_hint_now(hint);
	assert_int_equal(page->calls, 2);
	assert_int_equal(page->at_ns, 0);
	gpreempt_hint_in(hint, UINT64_MAX); /* for ever, and not in the past */
	assert_int_equal(page->at_ns, UINT64_MAX);
	assert_int_equal(page->for_ns, 0);
	gpreempt_hint_for(hint, 3600 * NSEC_PER_SEC, 7);
	assert_int_equal(page->calls, 4);
	assert_in_range(page->at_ns, 3600 * NSEC_PER_SEC, UINT64_MAX - 1);
	assert_int_equal(page->for_ns, 7);
	gpreempt_hint_now(hint);
	assert_int_equal(page->for_ns, 0);
	assert_null(gpreempt_hint_close(hint));
	munmap(page, 4096);
}

static void is_refused(struct place *p, int fd)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_hint *hint = open_hint(p, fd, &e);

	assert_int_equal(e.error, -EPROTO);
	assert_false(gpreempt_hint_is_active(hint, NULL));
	gpreempt_hint_now(hint);
	gpreempt_hint_close(hint);
}

static void pages_that_could_not_be_written_to_are_refused(void **state)
{
	_cleanup_close_ int empty = seal(make_page(0, 0));
	_cleanup_close_ int foreign = seal(make_page(4096, 5));
	_cleanup_close_ int shrinks = make_page(4096, WIRE_MAGIC);

	is_refused(*state, -1);
	is_refused(*state, empty);
	is_refused(*state, foreign);
	is_refused(*state, shrinks);
}

/* The page of a later daemon may have more fields, which nobody here writes. */
static void a_page_has_a_version_of_its_own(void **state)
{
	_cleanup_close_ int later = seal(make_page_of(4096, WIRE_MAGIC, 9, WIRE_HINT_VERSION));
	_cleanup_close_ int other = seal(make_page_of(4096, WIRE_MAGIC, 9, WIRE_HINT_VERSION + 1));
	_cleanup_close_ int none = seal(make_page_of(4096, WIRE_MAGIC, 0, 0));
	struct wire_hint_page *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, later, 0);
	struct gpreempt_hint *hint = open_hint(*state, later, NULL);

	assert_true(gpreempt_hint_is_active(hint, NULL));
	gpreempt_hint_now(hint);
	assert_int_equal(page->calls, 1);
	gpreempt_hint_close(hint);
	munmap(page, 4096);
	is_refused(*state, other);
	is_refused(*state, none);
}

/* ---- waiting ---- */

/* Until it is active; hints are what sees to it. */
static void hint_until_active(struct gpreempt_hint *hint)
{
	uint64_t until_ns = monotonic_ns() + 20 * NSEC_PER_SEC;

	while (!gpreempt_hint_is_active(hint, NULL)) {
		assert_true(monotonic_ns() < until_ns);
		gpreempt_hint_now(hint);
		poll(NULL, 0, 1);
	}
}

static void a_page_that_comes_later_is_taken_and_nobody_waits_for_it(void **state)
{
	_cleanup_close_ int fd = seal(make_page(4096, WIRE_MAGIC));
	struct wire_hint_page *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_hint *hint = gpreempt_hint_open(((struct place *)*state)->path, &e);
	int peer = let_in(*state);
	struct wire_hint asked = hear(peer);

	assert_true(asked.wait_ns >= NSEC_PER_SEC);
	assert_int_equal(e.kind, GPREEMPT_ERROR_ABSENT);
	assert_int_equal(e.error, -EAGAIN);
	gpreempt_hint_now(hint);
	assert_false(gpreempt_hint_is_active(hint, &e));
	answer(peer, asked.h.seq, fd);
	hint_until_active(hint);
	assert_true(gpreempt_hint_is_active(hint, &e));
	assert_int_equal(e.kind, GPREEMPT_ERROR_NONE);
	assert_int_equal(page->calls, 0); /* what was hinted before is past */
	gpreempt_hint_now(hint);
	assert_int_equal(page->calls, 1);
	assert_int_equal(recv(peer, &asked, sizeof(asked), 0), 0); /* nor is a connection kept */
	gpreempt_hint_close(hint);
	munmap(page, 4096);
	close(peer);
}

/* What it inherits is of its parent: the answer that is waited for, and the wait. */
static void a_child_does_not_take_the_page_of_its_parent(void **state)
{
	_cleanup_close_ int fd = seal(make_page(4096, WIRE_MAGIC));
	struct gpreempt_hint *hint = gpreempt_hint_open(((struct place *)*state)->path, NULL);
	int peer = let_in(*state), to_child[2], status;
	struct wire_hint asked = hear(peer);
	pid_t child;

	assert_int_equal(pipe(to_child), 0);
	child = fork();
	if (child == 0) {
		char byte;

		if (read(to_child[0], &byte, 1) != 1)
			_exit(2);
		for (int i = 0; i < 20; i++, poll(NULL, 0, 1)) /* looks are 5 ms apart */
			gpreempt_hint_now(hint);
		_exit(gpreempt_hint_is_active(hint, NULL));
	}
	answer(peer, asked.h.seq, fd);
	assert_int_equal(write(to_child[1], "", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0); /* it asks for one of its own */
	hint_until_active(hint);
	gpreempt_hint_close(hint);
	close(to_child[0]);
	close(to_child[1]);
	close(peer);
}

static void a_daemon_that_comes_later_is_asked_by_itself(void **state)
{
	_cleanup_close_ int fd = seal(make_page(4096, WIRE_MAGIC));
	struct gpreempt_error e = { .size = sizeof(e) };
	struct place *p = *state, other = { .listener = -1 };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct gpreempt_hint *hint;
	struct pollfd ready;
	int peer;

	snprintf(other.path, sizeof(other.path), "%s/later", p->folder);
	hint = gpreempt_hint_open(other.path, &e);
	assert_non_null(hint);
	assert_int_equal(e.error, -ENOENT);
	assert_int_equal(e.kind, GPREEMPT_ERROR_ABSENT);
	memcpy(a.sun_path, other.path, strlen(other.path));
	other.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(other.listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(other.listener, 4), 0);
	ready = (struct pollfd){ .fd = other.listener, .events = POLLIN };
	while (poll(&ready, 1, 1) == 0)
		gpreempt_hint_now(hint);
	peer = let_in(&other);
	answer(peer, hear(peer).h.seq, fd);
	hint_until_active(hint);
	gpreempt_hint_close(hint);
	unlink(other.path);
	close(other.listener);
	close(peer);
}

/* Who is refused may be online later. */
static void who_was_refused_asks_again(void **state)
{
	_cleanup_close_ int fd = seal(make_page(4096, WIRE_MAGIC));
	struct place *p = *state;
	struct pollfd ready = { .fd = p->listener, .events = POLLIN };
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_daemon *d = NULL;
	struct gpreempt_hint *hint;
	int peer;

	assert_int_equal(gpreempt_daemon_open(p->path, &d, NULL), 0);
	peer = let_in(p);
	refuse(peer, 1, EPERM);
	hint = hint_from(d, p->path, &e);
	assert_int_equal(e.kind, GPREEMPT_ERROR_REFUSED);
	assert_string_equal(e.message, "refused");
	close(peer);
	while (poll(&ready, 1, 1) == 0)
		gpreempt_hint_now(hint);
	peer = let_in(p);
	answer(peer, hear(peer).h.seq, fd);
	hint_until_active(hint);
	gpreempt_hint_close(hint);
	close(peer);
}

/* It refuses what it does not know, as abi/wire.h has it, and answers the rest. */
static void a_daemon_that_knows_no_waiting_is_asked_without(void **state)
{
	_cleanup_close_ int fd = seal(make_page(4096, WIRE_MAGIC));
	struct place *p = *state;
	struct gpreempt_daemon *d = NULL;
	struct gpreempt_hint *hint;
	struct wire_hint asked;
	int peer;

	assert_int_equal(gpreempt_daemon_open(p->path, &d, NULL), 0);
	peer = let_in(p);
	refuse(peer, 1, E2BIG);
	hint = hint_from(d, p->path, NULL);
	close(peer);
	peer = let_in(p);
	asked = hear(peer);
	assert_int_equal(asked.wait_ns, 0);
	answer(peer, asked.h.seq, fd);
	hint_until_active(hint);
	gpreempt_hint_close(hint);
	close(peer);
}

static void a_daemon_that_ends_is_followed_by_the_next(void **state)
{
	_cleanup_close_ int first = seal(make_page(4096, WIRE_MAGIC));
	_cleanup_close_ int second = seal(make_page(4096, WIRE_MAGIC));
	struct wire_hint_page *pages[2];
	struct place *p = *state;
	struct pollfd ready = { .fd = p->listener, .events = POLLIN };
	struct gpreempt_hint *hint = open_hint(p, first, NULL);
	int peer;

	for (int i = 0; i < 2; i++)
		pages[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
				i ? second : first, 0);
	gpreempt_hint_now(hint);
	assert_int_equal(pages[0]->calls, 1);
	pages[0]->version = 0; /* which it says with its last breath */
	assert_false(gpreempt_hint_is_active(hint, NULL));
	while (poll(&ready, 1, 1) == 0)
		gpreempt_hint_now(hint);
	peer = let_in(p);
	answer(peer, hear(peer).h.seq, second);
	hint_until_active(hint);
	gpreempt_hint_now(hint);
	assert_int_equal(pages[0]->calls, 1);
	assert_int_equal(pages[1]->calls, 1);
	gpreempt_hint_close(hint);
	munmap(pages[0], 4096);
	munmap(pages[1], 4096);
	close(peer);
}

/* One whose queue of connections is full, and that takes none of them. */
static void a_daemon_that_hangs_keeps_nobody_waiting(void **state)
{
	struct place *p = *state;
	struct gpreempt_daemon *waiting[16] = { NULL };
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_hint *hint;
	uint64_t began_ns;
	size_t n = 0;

	while (n < ARRAY_SIZE(waiting) && daemon_open(p->path, true, &waiting[n], NULL) >= 0)
		n++;
	assert_in_range(n, 1, ARRAY_SIZE(waiting) - 1);
	began_ns = monotonic_ns();
	hint = gpreempt_hint_open(p->path, &e);
	for (int i = 0; i < 100; i++)
		gpreempt_hint_now(hint);
	assert_in_range(monotonic_ns() - began_ns, 0, NSEC_PER_SEC);
	assert_int_equal(e.error, -ETIMEDOUT);
	gpreempt_hint_close(hint);
	for (size_t i = 0; i < n; i++)
		gpreempt_daemon_close(waiting[i]);
}

struct hinters {
	struct gpreempt_hint *hint;
	bool end; /* atomic */
};

static void *hint_again_and_again(void *arg)
{
	struct hinters *h = arg;

	while (!__atomic_load_n(&h->end, __ATOMIC_ACQUIRE))
		gpreempt_hint_for(h->hint, 0, 1);
	return NULL;
}

/* Pages come and go while others write to them. */
static void any_thread_may_hint_meanwhile(void **state)
{
	struct place *p = *state;
	struct pollfd ready = { .fd = p->listener, .events = POLLIN };
	struct hinters h = { .hint = gpreempt_hint_open(p->path, NULL) };
	pthread_t threads[4];

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hint_again_and_again, &h), 0);
	for (int i = 0; i < 3; i++) {
		_cleanup_close_ int fd = seal(make_page(4096, WIRE_MAGIC)), peer = -1;
		struct wire_hint_page *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
						   fd, 0);

		assert_int_equal(poll(&ready, 1, 20000), 1);
		peer = let_in(p);
		answer(peer, hear(peer).h.seq, fd);
		while (!__atomic_load_n(&page->calls, __ATOMIC_ACQUIRE))
			sched_yield();
		__atomic_store_n(&page->version, 0, __ATOMIC_RELEASE);
		munmap(page, 4096);
	}
	__atomic_store_n(&h.end, true, __ATOMIC_RELEASE);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	gpreempt_hint_close(h.hint);
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void descriptors_nobody_asked_for_are_not_kept(void **state)
{
	_cleanup_close_ int fd = seal(make_page(4096, WIRE_MAGIC));
	_cleanup_close_ int empty = seal(make_page(0, 0));
	const int fds[] = { fd, empty, empty, fd }, none[] = { empty, empty };
	int before = count_fds();
	struct gpreempt_hint *hint = open_hint_with(*state, fds, 4, NULL);

	assert_true(gpreempt_hint_is_active(hint, NULL)); /* by the first of them */
	assert_null(gpreempt_hint_close(hint));
	assert_int_equal(count_fds(), before);
	hint = open_hint_with(*state, none, 2, NULL);
	assert_false(gpreempt_hint_is_active(hint, NULL));
	gpreempt_hint_close(hint);
	assert_int_equal(count_fds(), before);
}

static void without_a_page_hints_do_nothing(void **state)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_hint *hint = gpreempt_hint_open("/nowhere/at/all", &e);

	assert_non_null(hint);
	assert_int_equal(e.kind, GPREEMPT_ERROR_ABSENT);
	gpreempt_hint_now(hint);
	gpreempt_hint_in(hint, 5);
	gpreempt_hint_for(hint, 5, 5);
	assert_null(gpreempt_hint_close(hint));
	gpreempt_hint_now(NULL);
	assert_false(gpreempt_hint_is_active(NULL, &e));
	assert_null(gpreempt_hint_close(NULL));
}

#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, make_place, drop_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(the_environment_names_the_socket),
		PLACE_TEST(no_daemon_is_said_so),
		PLACE_TEST(a_hint_is_a_store_into_the_shared_page),
		PLACE_TEST(pages_that_could_not_be_written_to_are_refused),
		PLACE_TEST(a_page_has_a_version_of_its_own),
		PLACE_TEST(descriptors_nobody_asked_for_are_not_kept),
		PLACE_TEST(a_page_that_comes_later_is_taken_and_nobody_waits_for_it),
		PLACE_TEST(a_child_does_not_take_the_page_of_its_parent),
		PLACE_TEST(a_daemon_that_comes_later_is_asked_by_itself),
		PLACE_TEST(who_was_refused_asks_again),
		PLACE_TEST(a_daemon_that_knows_no_waiting_is_asked_without),
		PLACE_TEST(a_daemon_that_ends_is_followed_by_the_next),
		PLACE_TEST(a_daemon_that_hangs_keeps_nobody_waiting),
		PLACE_TEST(any_thread_may_hint_meanwhile),
		cmocka_unit_test(without_a_page_hints_do_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
