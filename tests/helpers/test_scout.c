/* SPDX-License-Identifier: MIT */
/* The thread that looks who has come. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/scout.h"
#include "util/clock.h"

#define PATIENCE_MS 20000

struct scene {
	int news, answers;
	_Atomic unsigned int looks, heard;
	_Atomic bool finds; /* somebody */
	uint64_t wait_ns;
	bool leaves; /* what made it readable stays so */
	struct scout *scout;
};

static bool look(void *user, bool heard, uint64_t *ret_wait_ns)
{
	struct scene *c = user;
	eventfd_t count;

	if (!c->leaves)
		eventfd_read(c->news, &count);
	eventfd_read(c->answers, &count);
	c->looks++;
	c->heard += heard;
	*ret_wait_ns = c->wait_ns;
	return c->finds;
}

static void begin(struct scene *c)
{
	const struct scout_options options = {
		.fd = c->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.answers_fd = c->answers = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.look = look,
		.user = c,
	};

	assert_int_equal(scout_start(&options, &c->scout), 0);
	assert_false(scout_told(c->scout));
}

static void end(struct scene *c)
{
	scout_end(c->scout);
	close(c->news);
	close(c->answers);
}

static bool is_told_within(const struct scene *c, int ms)
{
	struct pollfd p = { .fd = scout_fd(c->scout), .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void what_is_heard_is_told_once(void **state)
{
	struct scene c = { .finds = true, .wait_ns = SCOUT_NEVER };

	begin(&c);
	assert_true(is_told_within(&c, PATIENCE_MS)); /* of the first look, which comes by itself */
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(scout_told(c.scout));
		assert_false(scout_told(c.scout));
		assert_false(is_told_within(&c, 0));
		eventfd_write(i % 2 ? c.answers : c.news, 1);
		assert_true(is_told_within(&c, PATIENCE_MS));
	}
	assert_int_equal(c.heard, 3);
	end(&c);
	scout_end(NULL);
}

static void where_nobody_has_come_nobody_is_woken(void **state)
{
	struct scene c = { .wait_ns = SCOUT_NEVER };

	begin(&c);
	eventfd_write(c.news, 1);
	while (!c.heard)
		assert_false(is_told_within(&c, 1));
	assert_false(is_told_within(&c, 50));
	assert_false(scout_told(c.scout));
	end(&c);
}

/* Somebody opens and opens again, or sees to it that there is always something to read. */
static void it_cannot_be_kept_busy(void **state)
{
	struct scene c = { .wait_ns = SCOUT_NEVER, .leaves = true };
	uint64_t began_ns, took_ns;

	begin(&c);
	began_ns = monotonic_ns();
	eventfd_write(c.news, 1);
	assert_false(is_told_within(&c, 500));
	took_ns = monotonic_ns() - began_ns;
	assert_in_range(c.looks, 2, took_ns / SCOUT_BUSY_NS + 2);
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_heard_is_told_once),
		cmocka_unit_test(where_nobody_has_come_nobody_is_woken),
		cmocka_unit_test(it_cannot_be_kept_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
