/* SPDX-License-Identifier: MIT */
/* Where the daemon is found, and the page of hints it shares. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "lib/daemon_internal.h"

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

/* The peer answers before it is asked, with descriptors. */
static struct gpreempt_hint *open_hint_with(struct place *p, const int *fds, size_t n,
					    struct gpreempt_error *ret_error)
{
	union {
		struct cmsghdr h;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control = { 0 };
	struct wire_answer a = {
		.h = wire_header(WIRE_HINT_PAGE, sizeof(a), 1),
	};
	struct iovec iov = { &a, sizeof(a) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = n ? &control : NULL,
		.msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0,
	};
	struct gpreempt_daemon *d = NULL;
	struct gpreempt_hint *hint;
	int peer;

	control.h = (struct cmsghdr){ CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	if (n)
		memcpy(CMSG_DATA(&control.h), fds, n * sizeof(int));
	assert_int_equal(gpreempt_daemon_open(p->path, &d, NULL), 0);
	peer = accept(p->listener, NULL, NULL);
	assert_int_equal(sendmsg(peer, &msg, 0), sizeof(a));
	hint = hint_from(d, ret_error);
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

static void pages_that_could_not_be_written_to_are_refused(void **state)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	_cleanup_close_ int empty = seal(make_page(0, 0));
	_cleanup_close_ int foreign = seal(make_page(4096, 5));
	_cleanup_close_ int shrinks = make_page(4096, WIRE_MAGIC);

	assert_null(open_hint(*state, -1, &e));
	assert_int_equal(e.error, -EPROTO);
	assert_null(open_hint(*state, empty, &e));
	assert_int_equal(e.error, -EPROTO);
	assert_null(open_hint(*state, foreign, &e));
	assert_int_equal(e.error, -EPROTO);
	assert_null(open_hint(*state, shrinks, &e));
	assert_int_equal(e.error, -EPROTO);
}

/* The page of a later daemon may have more fields, which nobody here writes. */
static void a_page_has_a_version_of_its_own(void **state)
{
	_cleanup_close_ int later = seal(make_page_of(4096, WIRE_MAGIC, 9, WIRE_HINT_VERSION));
	_cleanup_close_ int other = seal(make_page_of(4096, WIRE_MAGIC, 9, WIRE_HINT_VERSION + 1));
	_cleanup_close_ int none = seal(make_page_of(4096, WIRE_MAGIC, 0, 0));
	struct wire_hint_page *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, later, 0);
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_hint *hint = open_hint(*state, later, NULL);

	assert_non_null(hint);
	gpreempt_hint_now(hint);
	assert_int_equal(page->calls, 1);
	gpreempt_hint_close(hint);
	munmap(page, 4096);
	assert_null(open_hint(*state, other, &e));
	assert_int_equal(e.error, -EPROTO);
	assert_null(open_hint(*state, none, &e));
	assert_int_equal(e.error, -EPROTO);
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

	assert_non_null(hint); /* by the first of them */
	assert_null(gpreempt_hint_close(hint));
	assert_int_equal(count_fds(), before);
	assert_null(open_hint_with(*state, none, 2, NULL));
	assert_int_equal(count_fds(), before);
}

static void without_a_page_hints_do_nothing(void **state)
{
	struct gpreempt_error e = { .size = sizeof(e) };
	struct gpreempt_hint *hint = gpreempt_hint_open("/nowhere/at/all", &e);

	assert_null(hint);
	assert_int_equal(e.kind, GPREEMPT_ERROR_ABSENT);
	gpreempt_hint_now(hint);
	gpreempt_hint_in(hint, 5);
	gpreempt_hint_for(hint, 5, 5);
	assert_null(gpreempt_hint_close(hint));
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
		cmocka_unit_test(without_a_page_hints_do_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
