/* SPDX-License-Identifier: MIT */
/* From tables of objects, recorded and made up, to channel groups. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "abi/nvrm.h"
#include "gpu/nvrm/objects.h"
#include "tests/nvrm/rig.h"
#include "util/macros.h"

#define CLIENT 0xc1d00007u
#define CHANNEL 0xc86fu
#define COMPUTE 0xcbc0u
#define COPY 0xc8b5u

struct groups {
	struct nvrm_objects objects;
	struct nvrm_found_group *all;
	size_t n;
};

static void find(struct groups *g)
{
	int n = nvrm_objects_groups(&g->objects, &g->all);

	assert_true(n >= 0);
	g->n = (size_t)n;
}

static void find_in(struct groups *g, const struct nvrm_object *table, size_t n)
{
	*g = (struct groups){ 0 };
	for (size_t i = 0; i < n; i++)
		assert_int_equal(nvrm_objects_add(&g->objects, &table[i]), 0);
	find(g);
}
#define FIND_IN(g, ...) \
	find_in(g, (const struct nvrm_object[]){ __VA_ARGS__ }, \
		ARRAY_SIZE(((const struct nvrm_object[]){ __VA_ARGS__ })))

static void done(struct groups *g)
{
	nvrm_found_free(g->all, g->n);
	nvrm_objects_done(&g->objects);
}

/* ---- the table ---- */

static void objects_are_kept_in_order_whatever_order_they_come_in(void **state)
{
	struct nvrm_objects o = { 0 };

	for (uint32_t i = 0; i < 1000; i++)
		nvrm_objects_add(&o,
				 &(struct nvrm_object){ .handle = 1 + i * 617 % 1000, .class = i });
	assert_int_equal(o.n, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(o.all[i].handle, i + 1);
	assert_int_equal(nvrm_objects_find(&o, 618)->class, 1);
	nvrm_objects_done(&o);
}

static void the_same_handle_again_replaces_what_it_was(void **state)
{
	struct nvrm_objects o = { 0 };

	nvrm_objects_add(&o, &(struct nvrm_object){ 5, 1, 1 });
	nvrm_objects_add(&o, &(struct nvrm_object){ 7, 1, 1 });
	nvrm_objects_add(&o, &(struct nvrm_object){ 5, 2, 3 });
	assert_int_equal(o.n, 2);
	assert_int_equal(nvrm_objects_find(&o, 5)->class, 2);
	assert_int_equal(nvrm_objects_find(&o, 5)->parent, 3);
	assert_int_equal(nvrm_objects_find(&o, 7)->class, 1);
	nvrm_objects_done(&o);
}

static void what_is_not_there_is_not_found(void **state)
{
	struct nvrm_objects o = { 0 };

	assert_null(nvrm_objects_find(&o, 5));
	nvrm_objects_add(&o, &(struct nvrm_object){ 5, 1, 1 });
	assert_null(nvrm_objects_find(&o, 4));
	assert_null(nvrm_objects_find(&o, 6));
	assert_null(nvrm_objects_find(&o, 0));
	nvrm_objects_done(&o);
	nvrm_objects_done(&o);
}

/* ---- tables as libcuda makes them ---- */

static void four_groups(const struct nvrm_found_group *g, uint32_t subdevice, size_t compute,
			size_t copy)
{
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(g[i].compute, i == 0);
		assert_int_equal(g[i].n_channels, i == 0 ? compute : copy);
		assert_int_equal(g[i].subdevice, subdevice);
		assert_true(i == 0 || g[i].handle > g[i - 1].handle);
		for (size_t j = 1; j < g[i].n_channels; j++)
			assert_true(g[i].channels[j] > g[i].channels[j - 1]);
	}
}

static void a_context_has_four_groups(void **state)
{
	struct fake_rm *f = fake_rm_new();
	struct groups g = { 0 };

	fake_rm_table(f, fake_rm_job(f, JOB), &g.objects);
	find(&g);
	assert_int_equal(g.n, 4);
	assert_int_equal(g.all[0].handle, COMPUTE_GROUP);
	four_groups(g.all, SUBDEVICE, 8, 4);
	done(&g);
	fake_rm_free(f);
}

static uint32_t bare_job(struct fake_rm *f)
{
	fake_rm_spawn(f, JOB, 0, "job");
	return fake_rm_client(f, JOB, fake_rm_open_file(f, JOB, "/dev/nvidiactl"));
}

static void thirty_two_connections_make_128_channels(void **state)
{
	struct fake_rm *f = fake_rm_new();
	uint32_t client = bare_job(f);
	struct groups g = { 0 };

	fake_rm_context(f, client, FAKE_GPU, 32);
	fake_rm_table(f, client, &g.objects);
	find(&g);
	assert_int_equal(g.n, 4);
	four_groups(g.all, SUBDEVICE, 32, 32);
	done(&g);
	fake_rm_free(f);
}

static void groups_on_two_gpus_have_each_their_own_subdevice(void **state)
{
	struct fake_rm *f = fake_rm_new();
	uint32_t client = bare_job(f);
	struct groups g = { 0 };

	fake_rm_add_gpu(f, FAKE_GPU_2, "NVIDIA H200");
	fake_rm_context(f, client, FAKE_GPU, FAKE_CONNECTIONS);
	fake_rm_context(f, client, FAKE_GPU_2, FAKE_CONNECTIONS);
	fake_rm_table(f, client, &g.objects);
	find(&g);
	assert_int_equal(g.n, 8);
	four_groups(g.all, SUBDEVICE, 8, 4);
	assert_int_not_equal(g.all[4].subdevice, SUBDEVICE);
	assert_int_equal(nvrm_objects_find(&g.objects, g.all[4].subdevice)->class,
			 NVRM_CLASS_SUBDEVICE);
	four_groups(g.all + 4, g.all[4].subdevice, 8, 4);
	done(&g);
	fake_rm_free(f);
}

static void a_context_behind_thousands_of_buffers_is_found_too(void **state)
{
	struct fake_rm *f = fake_rm_new();
	uint32_t client = fake_rm_job(f, JOB);
	struct groups g = { 0 };

	fake_rm_memory(f, client, 5000);
	fake_rm_context(f, client, FAKE_GPU, FAKE_CONNECTIONS);
	fake_rm_table(f, client, &g.objects);
	find(&g);
	assert_int_equal(g.n, 8);
	four_groups(g.all, SUBDEVICE, 8, 4);
	four_groups(g.all + 4, SUBDEVICE, 8, 4);
	done(&g);
	fake_rm_free(f);
}

/* ---- tables that nobody should make ---- */

static void an_empty_table_has_no_groups(void **state)
{
	struct groups g = { 0 };

	find(&g);
	assert_int_equal(g.n, 0);
	done(&g);
}

static void a_group_without_channels_is_left_out(void **state)
{
	struct groups g;

	FIND_IN(&g, { 2, NVRM_CLASS_DEVICE, CLIENT }, { 3, NVRM_CLASS_SUBDEVICE, 2 },
		{ 4, NVRM_CLASS_CHANNEL_GROUP, 2 }, { 5, NVRM_CLASS_CHANNEL_GROUP, 2 },
		{ 6, CHANNEL, 5 });
	assert_int_equal(g.n, 1);
	assert_int_equal(g.all[0].handle, 5);
	assert_int_equal(g.all[0].subdevice, 3);
	assert_false(g.all[0].compute);
	done(&g);
}

static void channels_without_a_group_belong_to_nothing(void **state)
{
	struct groups g;

	FIND_IN(&g, { 2, NVRM_CLASS_DEVICE, CLIENT }, { 3, NVRM_CLASS_SUBDEVICE, 2 },
		{ 4, CHANNEL, 2 }, { 5, CHANNEL, 99 }, { 6, COMPUTE, 5 }, { 7, CHANNEL, CLIENT });
	assert_int_equal(g.n, 0);
	done(&g);
}

static void a_group_without_a_device_is_told_by_no_subdevice_or_left_out(void **state)
{
	struct groups g;

	FIND_IN(&g, { 3, NVRM_CLASS_SUBDEVICE, 2 }, { 4, NVRM_CLASS_CHANNEL_GROUP, 2 },
		{ 5, CHANNEL, 4 });
	for (size_t i = 0; i < g.n; i++)
		assert_int_equal(g.all[i].subdevice, 0);
	done(&g);
}

static void a_device_without_a_subdevice_gives_none(void **state)
{
	struct groups g;

	FIND_IN(&g, { 2, NVRM_CLASS_DEVICE, CLIENT }, { 4, NVRM_CLASS_CHANNEL_GROUP, 2 },
		{ 5, CHANNEL, 4 }, { 8, NVRM_CLASS_DEVICE, CLIENT },
		{ 9, NVRM_CLASS_SUBDEVICE, 8 });
	assert_int_equal(g.n, 1);
	assert_int_equal(g.all[0].subdevice, 0);
	done(&g);
}

static void parents_that_go_round_in_a_circle_end(void **state)
{
	struct groups g;

	FIND_IN(&g, { 2, NVRM_CLASS_DEVICE, 4 }, { 3, NVRM_CLASS_SUBDEVICE, 3 },
		{ 4, NVRM_CLASS_CHANNEL_GROUP, 4 }, { 5, CHANNEL, 6 }, { 6, COMPUTE, 5 },
		{ 7, CHANNEL, 7 }, { 8, NVRM_CLASS_CHANNEL_GROUP, 9 }, { 9, CHANNEL, 8 });
	for (size_t i = 0; i < g.n; i++)
		assert_int_equal(g.all[i].subdevice, 0);
	done(&g);
}

static void only_a_compute_object_on_a_channel_makes_a_group_compute(void **state)
{
	struct groups g;

	FIND_IN(&g, { 2, NVRM_CLASS_DEVICE, CLIENT }, { 3, NVRM_CLASS_SUBDEVICE, 2 },
		{ 4, NVRM_CLASS_CHANNEL_GROUP, 2 }, { 5, CHANNEL, 4 }, { 6, COPY, 5 },
		{ 7, COMPUTE, 2 }, { 8, NVRM_CLASS_CHANNEL_GROUP, 2 }, { 9, CHANNEL, 8 },
		{ 10, CHANNEL, 8 }, { 11, COMPUTE, 10 });
	assert_int_equal(g.n, 2);
	assert_false(g.all[0].compute);
	assert_true(g.all[1].compute);
	done(&g);
}

static void every_generation_of_gpus_is_understood(void **state)
{
	static const struct {
		uint32_t channel, compute;
	} classes[] = { { 0xc46f, 0xc5c0 },
			{ 0xc56f, 0xc6c0 },
			{ 0xc56f, 0xc7c0 },
			{ 0xc86f, 0xcbc0 },
			{ 0xc96f, 0xcdc0 } };

	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		struct groups g;

		FIND_IN(&g, { 2, NVRM_CLASS_DEVICE, CLIENT }, { 3, NVRM_CLASS_SUBDEVICE, 2 },
			{ 4, NVRM_CLASS_CHANNEL_GROUP, 2 }, { 5, classes[i].channel, 4 },
			{ 6, classes[i].compute, 5 });
		assert_int_equal(g.n, 1);
		assert_true(g.all[0].compute);
		done(&g);
	}
}

static void the_first_subdevice_of_the_device_is_taken(void **state)
{
	struct groups g;

	FIND_IN(&g, { 2, NVRM_CLASS_DEVICE, CLIENT }, { 9, NVRM_CLASS_SUBDEVICE, 2 },
		{ 3, NVRM_CLASS_SUBDEVICE, 1 }, { 7, NVRM_CLASS_SUBDEVICE, 2 },
		{ 4, NVRM_CLASS_CHANNEL_GROUP, 2 }, { 5, CHANNEL, 4 });
	assert_int_equal(g.n, 1);
	assert_int_equal(g.all[0].subdevice, 7);
	done(&g);
}

/* ---- more than anybody's contexts have ---- */

static int count_made_up(uint32_t n_groups, uint32_t n_channels)
{
	struct nvrm_objects o = { 0 };
	struct nvrm_found_group *groups = NULL;
	int n;

	for (uint32_t i = 0; i < n_groups; i++)
		nvrm_objects_add(&o, &(struct nvrm_object){ 1 + i, NVRM_CLASS_CHANNEL_GROUP, 0 });
	for (uint32_t i = 0; i < n_channels; i++)
		nvrm_objects_add(&o, &(struct nvrm_object){ 10000 + i, CHANNEL, 1 + i % n_groups });
	n = nvrm_objects_groups(&o, &groups);
	nvrm_found_free(groups, (size_t)MAX(n, 0));
	nvrm_objects_done(&o);
	return n;
}

static void too_many_groups_or_channels_are_not_gone_through(void **state)
{
	assert_int_equal(count_made_up(NVRM_GROUPS, NVRM_CHANNELS), NVRM_GROUPS);
	assert_int_equal(count_made_up(NVRM_GROUPS + 1, NVRM_CHANNELS), -ENOSPC);
	assert_int_equal(count_made_up(1, NVRM_CHANNELS + 1), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_are_kept_in_order_whatever_order_they_come_in),
		cmocka_unit_test(the_same_handle_again_replaces_what_it_was),
		cmocka_unit_test(what_is_not_there_is_not_found),
		cmocka_unit_test(a_context_has_four_groups),
		cmocka_unit_test(thirty_two_connections_make_128_channels),
		cmocka_unit_test(groups_on_two_gpus_have_each_their_own_subdevice),
		cmocka_unit_test(a_context_behind_thousands_of_buffers_is_found_too),
		cmocka_unit_test(an_empty_table_has_no_groups),
		cmocka_unit_test(a_group_without_channels_is_left_out),
		cmocka_unit_test(channels_without_a_group_belong_to_nothing),
		cmocka_unit_test(a_group_without_a_device_is_told_by_no_subdevice_or_left_out),
		cmocka_unit_test(a_device_without_a_subdevice_gives_none),
		cmocka_unit_test(parents_that_go_round_in_a_circle_end),
		cmocka_unit_test(only_a_compute_object_on_a_channel_makes_a_group_compute),
		cmocka_unit_test(every_generation_of_gpus_is_understood),
		cmocka_unit_test(the_first_subdevice_of_the_device_is_taken),
		cmocka_unit_test(too_many_groups_or_channels_are_not_gone_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
