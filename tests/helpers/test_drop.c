/* SPDX-License-Identifier: MIT */
/* Descriptors of users whose closing may wait, and of users who wait for nobody. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/helpers/drop.h"
#include "util/macros.h"

#define FREELY 8u /* children of a user before those have to be worth it */
#define MANY 16u /* that go at once */
#define FEW 7u
#define PATIENCE_MS 10000
#define ROUNDS 60

enum { HOSTILE = 1001, OTHER = 1002, THIRD = 1000 };

struct pile {
	struct drops drops;
};

static int set_up(void **state)
{
	struct pile *p = calloc(1, sizeof(*p));

	*state = p;
	return p ? 0 : -1;
}

static int tear_down(void **state)
{
	struct pile *p = *state;

	for (uint32_t i = 0; i < p->drops.n; i++)
		close(p->drops.all[i].fd);
	for (uint32_t i = 0; i < p->drops.n_children; i++) {
		kill(p->drops.children[i].pid, SIGKILL);
		waitpid(p->drops.children[i].pid, NULL, __WALL);
	}
	free(p->drops.all);
	free(p);
	return 0;
}

/* Children that are at it and do not come to an end. */
static void hang(struct pile *p, uid_t user, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			for (;;)
				pause();
		p->drops.children[p->drops.n_children++] = (struct drop_child){ pid, user };
	}
}

/* The reading end; it tells when the other one, which is dropped, is closed. */
static int drop_one(struct pile *p, uid_t user)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	drop_later(&p->drops, ends[1], user);
	return ends[0];
}

static bool is_closed(int end, int within_ms)
{
	struct pollfd other = { .fd = end };

	return poll(&other, 1, within_ms) == 1 && other.revents == POLLHUP;
}

static void what_is_dropped_is_closed_by_a_child(void **state)
{
	struct pile *p = *state;
	int a = drop_one(p, OTHER), b = drop_one(p, HOSTILE), c = drop_one(p, THIRD);

	assert_false(is_closed(a, 0));
	drop_now(&p->drops);
	assert_int_equal(p->drops.n, 0);
	assert_int_equal(p->drops.n_children, 3);
	assert_true(is_closed(a, PATIENCE_MS) && is_closed(b, PATIENCE_MS) &&
		    is_closed(c, PATIENCE_MS));
	close(a);
	close(b);
	close(c);
}

static void those_of_one_user_go_together(void **state)
{
	struct pile *p = *state;
	int ends[2 * FEW];

	for (uint32_t i = 0; i < 2 * FEW; i++)
		ends[i] = drop_one(p, i % 2 ? OTHER : HOSTILE);
	assert_int_equal(drop_count(&p->drops, OTHER), FEW);
	drop_now(&p->drops);
	assert_int_equal(p->drops.n_children, 2);
	for (uint32_t i = 0; i < 2 * FEW; i++) {
		assert_true(is_closed(ends[i], PATIENCE_MS));
		close(ends[i]);
	}
}

static void all_go_when_there_are_many_of_all_users(void **state)
{
	struct pile *p = *state;
	int ends[MANY];

	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(p->drops.n, i);
		ends[i] = drop_one(p, i);
	}
	assert_int_equal(p->drops.n, 0);
	for (uint32_t i = 0; i < MANY; i++)
		close(ends[i]);
}

static void who_has_many_hang_waits_and_nobody_else_does(void **state)
{
	struct pile *p = *state;
	int ends[MANY], other;

	hang(p, HOSTILE, FREELY);
	for (uint32_t i = 0; i < MANY - 1; i++)
		ends[i] = drop_one(p, HOSTILE);
	other = drop_one(p, OTHER);
	drop_now(&p->drops);
	assert_true(is_closed(other, PATIENCE_MS));
	assert_int_equal(drop_count(&p->drops, OTHER), 0);
	assert_int_equal(drop_count(&p->drops, HOSTILE), MANY - 1);
	ends[MANY - 1] = drop_one(p, HOSTILE);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_true(is_closed(ends[i], PATIENCE_MS));
		close(ends[i]);
	}
	close(other);
}

static void each_child_beyond_that_has_twice_as_many(void **state)
{
	struct pile *p = *state;
	int ends[2 * MANY];

	hang(p, HOSTILE, FREELY + 1);
	for (uint32_t i = 0; i < 2 * MANY; i++) {
		assert_int_equal(drop_count(&p->drops, HOSTILE), i);
		ends[i] = drop_one(p, HOSTILE);
	}
	assert_int_equal(p->drops.n, 0);
	for (uint32_t i = 0; i < 2 * MANY; i++)
		close(ends[i]);
}

/* One end of a connection whose close waits for the other end, which does not read. */
static int open_lingering(int *ret_other)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 2 * PATIENCE_MS / 1000 };
	struct sockaddr_in at = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char full[1 << 16];
	socklen_t len = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	*ret_other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	while (send(fd, full, sizeof(full), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

/* The first child has a copy of what the second one drops. */
static void nobody_closes_what_another_one_drops(void **state)
{
	struct pile *p = *state;

	for (int i = 0; i < ROUNDS; i++) {
		int end = drop_one(p, THIRD), other;

		drop_later(&p->drops, open_lingering(&other), HOSTILE);
		drop_now(&p->drops);
		assert_int_equal(p->drops.n, 0);
		assert_true(is_closed(end, PATIENCE_MS));
		close(end);
		close(other);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		CASE(what_is_dropped_is_closed_by_a_child),
		CASE(those_of_one_user_go_together),
		CASE(who_has_many_hang_waits_and_nobody_else_does),
		CASE(each_child_beyond_that_has_twice_as_many),
		CASE(nobody_closes_what_another_one_drops),
		CASE(all_go_when_there_are_many_of_all_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
