/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/topology.h"
#include "tests/readers/rig.h"

static void nodes_come_in_order_of_their_number_without_the_cpu(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("mi308x");
	struct gkfd_topology t;

	assert_int_equal(gkfd_topology_read(k, &t), 0);
	assert_int_equal(t.n, 3);
	assert_int_equal(t.forbidden, 0);
	assert_int_equal(t.nodes[0].index, 1);
	assert_int_equal(t.nodes[1].index, 2);
	assert_int_equal(t.nodes[2].index, 10);
	assert_ptr_equal(gkfd_topology_find(&t, 7), &t.nodes[2]);
	assert_null(gkfd_topology_find(&t, 0));
	gkfd_topology_done(&t);
	assert_int_equal(t.n, 0);
}

static void a_node_has_the_properties_of_its_file(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("mi308x");
	const struct gkfd_node *node;
	struct gkfd_topology t;
	char gfx[16];

	assert_int_equal(gkfd_topology_read(k, &t), 0);
	node = gkfd_topology_find(&t, 16458);
	assert_non_null(node);
	assert_string_equal(node->name, "ip discovery");
	assert_int_equal(node->known, (1u << 9) - 1);
	assert_int_equal(node->num_cp_queues, 24);
	assert_int_equal(node->num_xcc, 4);
	assert_int_equal(node->cwsr_size, 12214272);
	assert_int_equal(node->drm_render_minor, 128);
	assert_int_equal(node->fw_version, 177);
	assert_true(node->capability & GKFD_CAPABILITY_TRAP_DEBUG);
	assert_true(node->capability & GKFD_CAPABILITY_DEBUG_FIRMWARE);
	assert_int_equal(gkfd_node_cus(node), 80);
	gkfd_node_gfx_name(node, gfx, sizeof(gfx));
	assert_string_equal(gfx, "gfx942");
	assert_int_equal(gkfd_node_scheduler(node, gkfd_sched_policy(k)), GKFD_SCHED_HWS);
	gkfd_topology_done(&t);
}

static void slots_are_read_not_assumed(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("slots120");
	struct gkfd_topology t;

	assert_int_equal(gkfd_topology_read(k, &t), 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.nodes[0].num_cp_queues, 120);
	assert_int_equal(gkfd_sched_policy(k), -ENOENT);
	assert_int_equal(gkfd_node_scheduler(&t.nodes[0], -ENOENT), GKFD_SCHED_UNKNOWN);
	gkfd_topology_done(&t);
}

static void no_gpu_is_an_empty_list(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("cpu-only");
	struct gkfd_topology t;

	assert_int_equal(gkfd_topology_read(k, &t), 0);
	assert_int_equal(t.n, 0);
	gkfd_topology_done(&t);
}

static void no_driver_is_enoent(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("no-such-tree");
	struct gkfd_topology t;

	assert_int_equal(gkfd_topology_read(k, &t), -ENOENT);
}

static void truncated_and_senseless_trees_are_ebadmsg(void **state)
{
	static const char *const trees[] = { "truncated", "garbage" };

	for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
		_cleanup_gkfd_ struct gkfd *k = tree_open(trees[i]);
		struct gkfd_topology t;

		assert_int_equal(gkfd_topology_read(k, &t), -EBADMSG);
	}
}

static void what_an_old_kernel_does_not_say_is_unknown(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("linux-6.1");
	struct gkfd_topology t;
	char gfx[16];

	assert_int_equal(gkfd_topology_read(k, &t), 0);
	assert_int_equal(t.n, 1);
	assert_false(t.nodes[0].known & GKFD_NODE_NUM_XCC);
	assert_false(t.nodes[0].known & GKFD_NODE_CWSR_SIZE);
	assert_true(t.nodes[0].known & GKFD_NODE_CP_QUEUES);
	gkfd_node_gfx_name(&t.nodes[0], gfx, sizeof(gfx));
	assert_string_equal(gfx, "gfx908");
	gkfd_topology_done(&t);
}

static void a_node_hidden_by_the_device_cgroup_is_counted(void **state)
{
	struct fake *f;
	_cleanup_gkfd_ struct gkfd *k = fake_open(&f);
	struct gkfd_topology t;

	fake_error(f, GKFD_TREE_SYSFS, "topology/nodes/1/gpu_id", -EPERM);
	fake_file(f, GKFD_TREE_SYSFS, "topology/nodes/2/gpu_id", "5\n");
	fake_file(f, GKFD_TREE_SYSFS, "topology/nodes/2/name", "x\033[2J\n");
	fake_file(f, GKFD_TREE_SYSFS, "topology/nodes/2/properties", "num_xcc 1\n");
	assert_int_equal(gkfd_topology_read(k, &t), 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.forbidden, 1);
	assert_string_equal(t.nodes[0].name, "x?[2J");
	gkfd_topology_done(&t);
}

static void a_gpu_without_properties_is_ebadmsg(void **state)
{
	struct fake *f;
	_cleanup_gkfd_ struct gkfd *k = fake_open(&f);
	struct gkfd_topology t;

	fake_file(f, GKFD_TREE_SYSFS, "topology/nodes/2/gpu_id", "5\n");
	fake_file(f, GKFD_TREE_SYSFS, "topology/nodes/2/name", "\n");
	assert_int_equal(gkfd_topology_read(k, &t), -EBADMSG);
}

static void other_errors_of_the_tree_are_passed_on(void **state)
{
	struct fake *f;
	_cleanup_gkfd_ struct gkfd *k = fake_open(&f);
	struct gkfd_topology t;

	fake_error(f, GKFD_TREE_SYSFS, "topology/nodes/1/gpu_id", -EIO);
	assert_int_equal(gkfd_topology_read(k, &t), -EIO);
}

static void bad_properties_leave_the_node_alone(void **state)
{
	static const char *const bad[] = {
		"",
		"simd_count\n",
		"simd_count 1", /* no newline: cut off */
		"simd_count 4294967296\n",
		"simd_count -1\n",
		"simd_count 1 \n",
		"simd_count 0x10\n",
		"fw_version 18446744073709551616\n",
		" simd_count 1\n",
		"num_xcc 4\nsimd_count x\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct gkfd_node node = { .num_xcc = 9 };

		assert_int_equal(gkfd_node_parse(bad[i], strlen(bad[i]), &node), -EBADMSG);
		assert_int_equal(node.num_xcc, 9);
		assert_int_equal(node.known, 0);
	}
}

static void a_nul_is_no_end_of_the_text(void **state)
{
	static const char text[] = "simd_count 1\0\n";
	struct gkfd_node node = { 0 };

	assert_int_equal(gkfd_node_parse(text, sizeof(text) - 1, &node), -EBADMSG);
}

static void extreme_numbers_fit(void **state)
{
	static const char text[] = "simd_count 4294967295\nsimd_per_cu 0\n"
				   "debug_prop 18446744073709551615\nsomething_new 1.5 GHz\n";
	struct gkfd_node node = { 0 };

	assert_int_equal(gkfd_node_parse(text, strlen(text), &node), 0);
	assert_int_equal(node.simd_count, UINT32_MAX);
	assert_int_equal(gkfd_node_cus(&node), 0);
}

static void gfx_names_count_in_hexadecimal(void **state)
{
	static const struct {
		uint32_t version;
		const char *name;
	} cases[] = {
		{ 90010, "gfx90a" },
		{ 90402, "gfx942" },
		{ 110003, "gfx1103" },
		{ 0, "unknown" },
	};
	char name[16];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gkfd_node node = {
			.known = GKFD_NODE_GFX,
			.gfx_target_version = cases[i].version,
		};

		gkfd_node_gfx_name(&node, name, sizeof(name));
		assert_string_equal(name, cases[i].name);
	}
}

static void the_scheduler_follows_policy_then_generation(void **state)
{
	struct gkfd_node gfx11 = { .known = GKFD_NODE_GFX, .gfx_target_version = 110000 };
	struct gkfd_node gfx9 = { .known = GKFD_NODE_GFX, .gfx_target_version = 90402 };
	struct gkfd_node dark = { 0 };

	assert_int_equal(gkfd_node_scheduler(&gfx11, 0), GKFD_SCHED_MES);
	assert_int_equal(gkfd_node_scheduler(&gfx11, -EACCES), GKFD_SCHED_MES);
	assert_int_equal(gkfd_node_scheduler(&gfx9, 1), GKFD_SCHED_HWS);
	assert_int_equal(gkfd_node_scheduler(&gfx9, 2), GKFD_SCHED_NO_HWS);
	assert_int_equal(gkfd_node_scheduler(&dark, 0), GKFD_SCHED_UNKNOWN);
}

static void the_policy_must_be_a_number(void **state)
{
	_cleanup_gkfd_ struct gkfd *none = tree_open("cpu-only"), *bad = tree_open("garbage");

	assert_int_equal(gkfd_sched_policy(none), 2);
	assert_int_equal(gkfd_sched_policy(bad), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_come_in_order_of_their_number_without_the_cpu),
		cmocka_unit_test(a_node_has_the_properties_of_its_file),
		cmocka_unit_test(slots_are_read_not_assumed),
		cmocka_unit_test(no_gpu_is_an_empty_list),
		cmocka_unit_test(no_driver_is_enoent),
		cmocka_unit_test(truncated_and_senseless_trees_are_ebadmsg),
		cmocka_unit_test(what_an_old_kernel_does_not_say_is_unknown),
		cmocka_unit_test(a_node_hidden_by_the_device_cgroup_is_counted),
		cmocka_unit_test(a_gpu_without_properties_is_ebadmsg),
		cmocka_unit_test(other_errors_of_the_tree_are_passed_on),
		cmocka_unit_test(bad_properties_leave_the_node_alone),
		cmocka_unit_test(a_nul_is_no_end_of_the_text),
		cmocka_unit_test(extreme_numbers_fit),
		cmocka_unit_test(gfx_names_count_in_hexadecimal),
		cmocka_unit_test(the_scheduler_follows_policy_then_generation),
		cmocka_unit_test(the_policy_must_be_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
