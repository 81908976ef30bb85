/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "gpu/model/mem.h"
#include "util/macros.h"

static int open_space(void **state)
{
	*state = mem_new();
	return *state ? 0 : -1;
}

static int close_space(void **state)
{
	mem_free(*state);
	return 0;
}

static void regions_are_page_aligned_user_addresses_that_never_touch(void **state)
{
	struct mem_space *s = *state;
	uint64_t end = 0;

	for (size_t i = 0; i < 100; i++) {
		size_t bytes = 1 + i * 1000;
		uint64_t va = mem_map(s, bytes);

		assert_int_equal(va % 4096, 0);
		assert_true(va > end && va + bytes < 1ull << 47);
		assert_true(mem_covers(s, va, bytes));
		assert_false(mem_covers(s, va - 1, 1));
		assert_false(mem_covers(s, va + (bytes + 4095) / 4096 * 4096, 1));
		end = va + bytes;
	}
}

static void what_was_written_is_read_back_and_fresh_memory_is_zero(void **state)
{
	struct mem_space *s = *state;
	uint64_t va = mem_map(s, 8192);
	char buf[16];

	assert_int_equal(mem_read64(s, va + 100), 0);
	assert_int_equal(mem_write(s, va + 4090, "across a page", 14), 0);
	assert_int_equal(mem_read(s, va + 4090, buf, 14), 0);
	assert_string_equal(buf, "across a page");
	mem_write64(s, va, 0x1122334455667788ull);
	assert_true(mem_read64(s, va) == 0x1122334455667788ull);
}

static void a_range_that_leaves_its_region_is_refused(void **state)
{
	struct mem_space *s = *state;
	uint64_t va = mem_map(s, 4096);
	char buf[8] = "untouch";

	assert_int_equal(mem_read(s, va + 4089, buf, 8), -EFAULT);
	assert_string_equal(buf, "untouch");
	assert_int_equal(mem_write(s, va + 4089, buf, 8), -EFAULT);
	assert_int_equal(mem_read(s, 0, buf, 8), -EFAULT);
	assert_int_equal(mem_read(s, UINT64_MAX - 3, buf, 8), -EFAULT);
	assert_false(mem_covers(s, va, SIZE_MAX));
	assert_int_equal(mem_read64(s, va + 4092), 0);
	mem_write64(s, va + 4092, 1);
}

static void a_thousand_save_areas_cost_nothing_until_touched(void **state)
{
	struct mem_space *s = *state;
	uint64_t va[1000];

	for (size_t i = 0; i < 1000; i++) {
		va[i] = mem_map(s, 48857088);
		assert_int_not_equal(va[i], 0);
	}
	for (size_t i = 0; i < 1000; i++)
		mem_write64(s, va[i] + 4096, i);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(mem_read64(s, va[i] + 4096), i);
}

static void impossible_sizes_are_refused(void **state)
{
	struct mem_space *s = *state;

	assert_int_equal(mem_map(s, 0), 0);
	assert_int_equal(mem_map(s, SIZE_MAX), 0);
	assert_int_equal(mem_map(s, 1ull << 45), 0);
	assert_int_not_equal(mem_map(s, 1), 0);
}

struct listener {
	struct mem_watch watch; /* first: found by its address */
	uint64_t va;
	unsigned int calls;
};

static void heard(struct mem_watch *w, uint64_t va, size_t len)
{
	struct listener *l = (struct listener *)w;

	l->va = va;
	l->calls += len == sizeof(uint64_t);
}

static void watchers_hear_of_each_write_until_they_stop(void **state)
{
	struct mem_space *s = *state;
	struct listener a = { .watch.written = heard }, b = { .watch.written = heard };
	uint64_t va = mem_map(s, 4096);

	mem_watch(s, &a.watch);
	mem_watch(s, &b.watch);
	mem_write64(s, va + 8, 1);
	mem_unwatch(&a.watch);
	mem_write64(s, va + 16, 1);
	mem_write64(s, 64, 1);
	assert_int_equal(a.calls, 1);
	assert_true(a.va == va + 8);
	assert_int_equal(b.calls, 2);
	mem_unwatch(&b.watch);
}

#define PAGES_VA 0x7e0000000000ull
#define PAGES 2u

static void adopted_pages_are_taken_first_one_by_one(void **state)
{
	struct mem_space *s = *state;
	uint64_t *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t ring;

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mem_adopt(s, PAGES_VA, pages, PAGES * 4096), 0);
	assert_false(mem_covers(s, PAGES_VA, 1));
	ring = mem_map(s, 4096);
	for (uint64_t va = PAGES_VA; va < PAGES_VA + PAGES * 4096; va += 4096) {
		assert_true(mem_map_page(s) == va);
		assert_true(mem_covers(s, va, 4096));
		assert_false(mem_covers(s, va, 4097));
		mem_write64(s, va + 8, va);
		assert_true(pages[(va + 8 - PAGES_VA) / sizeof(*pages)] == va);
	}
	pages[0] = 5; /* whoever else has them */
	assert_int_equal(mem_read64(s, PAGES_VA), 5);
	assert_true(mem_map_page(s) > ring);
	assert_true(mem_covers(s, ring, 4096));
}

static void pages_are_adopted_before_all_else(void **state)
{
	struct mem_space *s = *state;
	char page[4096];

	assert_int_equal(mem_adopt(s, 0x7f0000000000ull, page, sizeof(page)), -EBUSY);
	assert_int_not_equal(mem_map_page(s), 0);
	assert_int_equal(mem_adopt(s, PAGES_VA, page, sizeof(page)), -EBUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_are_page_aligned_user_addresses_that_never_touch),
		cmocka_unit_test(what_was_written_is_read_back_and_fresh_memory_is_zero),
		cmocka_unit_test(a_range_that_leaves_its_region_is_refused),
		cmocka_unit_test(a_thousand_save_areas_cost_nothing_until_touched),
		cmocka_unit_test(impossible_sizes_are_refused),
		cmocka_unit_test(watchers_hear_of_each_write_until_they_stop),
		cmocka_unit_test_setup_teardown(adopted_pages_are_taken_first_one_by_one,
						open_space, close_space),
		cmocka_unit_test_setup_teardown(pages_are_adopted_before_all_else, open_space,
						close_space),
	};

	return cmocka_run_group_tests(tests, open_space, close_space) != 0;
}
