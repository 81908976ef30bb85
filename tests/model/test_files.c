/* SPDX-License-Identifier: MIT */
/* Files in the driver's exact text. */
#include <errno.h>
#include <string.h>

#include "abi/mqd_v9.h"
#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

static void expect_file(struct rig *r, enum gkfd_tree tree, const char *path, const char *text)
{
	_cleanup_free_ char *got = rig_file(r, tree, path);

	if (!got)
		fail_msg("no file %s", path);
	assert_string_equal(got, text);
}

static void expect_list(struct rig *r, enum gkfd_tree tree, const char *path, const char *names)
{
	_cleanup_free_ char *list = NULL;
	size_t len;

	assert_int_equal(model_read(r->m, tree, path, true, &list, &len), 0);
	for (const char *name = list; *name; name += strlen(name) + 1, names++) {
		assert_memory_equal(names, name, strlen(name));
		names += strlen(name);
		assert_true(*names == ' ' || !*names);
		if (!*names) {
			assert_int_equal(name[strlen(name) + 1], '\0');
			return;
		}
	}
	assert_string_equal(names, "");
}

/* The value of a "name value" line. */
static uint64_t property(struct rig *r, uint32_t node, const char *name)
{
	_cleanup_free_ char *text = NULL;
	char path[64], line[64];
	const char *at;

	snprintf(path, sizeof(path), "topology/nodes/%u/properties", node);
	text = rig_file(r, GKFD_TREE_SYSFS, path);
	assert_non_null(text);
	snprintf(line, sizeof(line), "\n%s ", name);
	at = strstr(text, line);
	if (!at)
		fail_msg("no property %s", name);
	return strtoull(at + strlen(line), NULL, 10);
}

static void gpu_ids_are_distinct_and_of_16_bits(void **state)
{
	struct model_config config = { .chip = model_chip_find("mi308x"), .n_gpus = 8 };
	struct model *m;

	(void)state;
	assert_int_equal(model_new(&config, &m), 0);
	for (uint32_t i = 0; i < 8; i++) {
		assert_in_range(model_gpu_id(m, i), 1, 65535);
		for (uint32_t j = 0; j < i; j++)
			assert_int_not_equal(model_gpu_id(m, i), model_gpu_id(m, j));
	}
	assert_int_equal(model_gpu_id(m, 8), 0);
	model_free(m);
}

static void the_topology_describes_a_cpu_and_the_gpus(void **state)
{
	struct rig *r = *state;

	expect_list(r, GKFD_TREE_SYSFS, "topology/nodes", "0 1 2");
	expect_list(r, GKFD_TREE_SYSFS, "topology/nodes/1", "gpu_id name properties");
	expect_file(r, GKFD_TREE_SYSFS, "topology/nodes/0/gpu_id", "0\n");
	expect_file(r, GKFD_TREE_SYSFS, "topology/nodes/1/gpu_id", "11547\n");
	expect_file(r, GKFD_TREE_SYSFS, "topology/nodes/1/name", "ip discovery\n");
	assert_int_equal(property(r, 0, "simd_count"), 0);
	assert_int_equal(property(r, 1, "simd_count"), 320);
	assert_int_equal(property(r, 1, "simd_per_cu"), 4);
	assert_int_equal(property(r, 1, "num_xcc"), 4);
	assert_int_equal(property(r, 1, "array_count"), 16);
	assert_int_equal(property(r, 1, "num_cp_queues"), 24);
	assert_int_equal(property(r, 1, "cwsr_size"), 12214272);
	assert_int_equal(property(r, 1, "ctl_stack_size"), 8192);
	assert_int_equal(property(r, 1, "gfx_target_version"), 90402);
	assert_int_equal(property(r, 1, "capability") & 0x20078080, 0x20078080);
	assert_int_equal(property(r, 1, "debug_prop") & 0x400, 0x400);
	assert_int_equal(property(r, 2, "drm_render_minor"), 129);
}

static void the_save_area_of_an_mi300x_has_the_driver_s_size(void **state)
{
	struct model_config config = { .chip = model_chip_find("mi300x"), .n_gpus = 1 };
	struct rig r = { 0 };

	(void)state;
	assert_int_equal(model_new(&config, &r.m), 0);
	assert_int_equal(property(&r, 1, "cwsr_size"), 23203840);
	assert_int_equal(property(&r, 1, "ctl_stack_size"), 12288);
	model_free(r.m);
}

static void a_process_has_its_directory_from_open_to_exit(void **state)
{
	struct rig *r = *state;

	assert_null(rig_file(r, GKFD_TREE_SYSFS, "proc/100/pasid"));
	rig_target(r, 0);
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/pasid", "32771\n");
	expect_list(r, GKFD_TREE_SYSFS, "proc", "100 300 200");
	expect_list(
		r, GKFD_TREE_SYSFS, "proc/100",
		"pasid queues sdma_11547 stats_11547 vram_11547 sdma_18256 stats_18256 vram_18256");
	expect_list(r, GKFD_TREE_SYSFS, "proc/100/queues", "");
	model_proc_exit(r->m, TARGET);
	assert_null(rig_file(r, GKFD_TREE_SYSFS, "proc/100/pasid"));
}

static void queue_attributes_have_no_newline_and_the_kernel_s_types(void **state)
{
	struct rig *r = *state;

	rig_target(r, 1);
	rig_queue(r, TARGET, 1, KFD_IOC_QUEUE_TYPE_SDMA);
	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_SDMA_XGMI);
	expect_list(r, GKFD_TREE_SYSFS, "proc/100/queues", "2 1 0");
	expect_list(r, GKFD_TREE_SYSFS, "proc/100/queues/0", "gpuid size type");
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/queues/0/size", "65536");
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/queues/0/type", "0");
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/queues/1/type", "1");
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/queues/2/type", "4");
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/queues/1/gpuid", "18256");
	assert_null(rig_file(r, GKFD_TREE_SYSFS, "proc/100/queues/3/type"));
}

static void occupancy_counts_waves_of_the_first_xcc_for_all(void **state)
{
	struct rig *r = *state;
	uint32_t id = 0;

	rig_attached(r, 1);
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/stats_11547/cu_occupancy", "0\n");
	rig_busy(r, TARGET, 0);
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/stats_11547/cu_occupancy", "80\n");
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/stats_18256/cu_occupancy", "0\n");
	rig_suspend(r, r->daemon, TARGET, &id, 1, 1);
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/stats_11547/cu_occupancy", "0\n");
	model_advance(r->m, NSEC_PER_SEC);
	rig_resume(r, r->daemon, TARGET, &id, 1);
	/* Time in suspension is not eviction. */
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/stats_11547/evicted_ms", "0\n");
	expect_file(r, GKFD_TREE_SYSFS, "proc/100/vram_11547", "0\n");
}

/* ---- debugfs ---- */

/* The k-th word of the n-th block of @text that follows a line with @head. */
static uint32_t dump_word(const char *text, const char *head, uint32_t block, uint32_t k)
{
	const char *at = strstr(text, head);
	char row[16];

	assert_non_null(at);
	for (uint32_t i = 0; i <= block; i++) {
		at = strstr(at, "    00000000: ");
		assert_non_null(at);
		at += 1;
	}
	snprintf(row, sizeof(row), "%08x: ", k / 8 * 32);
	at = strstr(at, row);
	assert_non_null(at);
	return (uint32_t)strtoul(at + strlen(row) + k % 8 * 9, NULL, 16);
}

static void mqds_show_what_the_descriptors_hold(void **state)
{
	struct rig *r = *state;
	struct kfd_queue_snapshot_entry e;
	_cleanup_free_ char *text = NULL;
	static const char head[] = "Process 100 PASID 0x8003:\n  Compute queue on device 2d1b\n";
	uint64_t base;

	rig_attached(r, 1);
	rig_snapshot(r, r->daemon, TARGET, 0, &e);
	text = rig_file(r, GKFD_TREE_DEBUGFS, "mqds");
	assert_non_null(strstr(text, head));
	assert_non_null(strstr(text, "    00000000: c0310800 00000000 00000000 00000000 "
				     "00000000 00000000 00000000 00000000\n    00000020: "));
	for (uint32_t xcc = 0; xcc < 4; xcc++) {
		assert_int_equal(dump_word(text, head, xcc, MQD9_ACTIVE), 1);
		assert_int_equal(dump_word(text, head, xcc, MQD9_QUEUE_PRIORITY), 7);
		assert_int_equal(dump_word(text, head, xcc, MQD9_PIPE_PRIORITY), 1);
		base = dump_word(text, head, xcc, MQD9_RING_BASE_LO) |
		       (uint64_t)dump_word(text, head, xcc, MQD9_RING_BASE_HI) << 32;
		assert_int_equal(base << 8, e.ring_base_address);
		assert_int_equal(dump_word(text, head, xcc, MQD9_PQ_CONTROL) & 0x3f, 13);
		assert_int_equal(dump_word(text, head, xcc, MQD9_CTX_SAVE_SIZE), 12214272);
		assert_int_equal(dump_word(text, head, xcc, MQD9_CTX_SAVE_LO),
				 (uint32_t)(e.ctx_save_restore_address + xcc * 12214272));
		assert_int_equal(dump_word(text, head, xcc, MQD9_WPTR_ADDR_LO),
				 (uint32_t)e.write_pointer_address);
	}
}

static void mqd_pointers_are_those_of_the_last_save(void **state)
{
	struct rig *r = *state;
	struct model_work work = { .workgroups = 4, .wg_ns = 1000, .wg_per_cu = 1 };
	_cleanup_free_ char *before = NULL, *after = NULL;
	uint32_t id = 0;

	rig_attached(r, 1);
	for (int i = 0; i < 3; i++)
		model_submit(r->m, TARGET, 0, &work, NULL);
	model_advance(r->m, NSEC_PER_MSEC);
	before = rig_file(r, GKFD_TREE_DEBUGFS, "mqds");
	assert_int_equal(dump_word(before, "Process 100", 0, MQD9_RPTR), 0);
	rig_suspend(r, r->daemon, TARGET, &id, 1, 1);
	after = rig_file(r, GKFD_TREE_DEBUGFS, "mqds");
	assert_int_equal(dump_word(after, "Process 100", 0, MQD9_RPTR), 3 * 16);
	assert_int_equal(dump_word(after, "Process 100", 0, MQD9_WPTR_LO), 3 * 16);
	assert_int_equal(dump_word(after, "Process 100", 0, MQD9_ACTIVE), 0);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

static void an_sdma_queue_after_a_compute_queue_is_dumped_once_per_xcc(void **state)
{
	struct rig *r = *state;
	_cleanup_free_ char *text = NULL;

	/* Newest first: the compute queue is the younger one. */
	rig_target(r, 0);
	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_SDMA);
	rig_queue(r, TARGET, 0, KFD_IOC_QUEUE_TYPE_COMPUTE);
	text = rig_file(r, GKFD_TREE_DEBUGFS, "mqds");
	assert_int_equal(count(strstr(text, "  SDMA queue on device 2d1b\n"), " 00000000: "), 4);
	assert_int_equal(count(text, "    000007e0: "), 4);
}

static void hqds_list_every_slot_of_every_xcc(void **state)
{
	struct rig *r = *state;
	_cleanup_free_ char *text = NULL;

	rig_target(r, 3);
	text = rig_file(r, GKFD_TREE_DEBUGFS, "hqds");
	assert_int_equal(strncmp(text,
				 "Node 1, gpu_id 2d1b:\n   Inst 0, HIQ on MEC 2 Pipe 0 Queue 0\n"
				 "    0000c914: 00000000 ",
				 81),
			 0);
	assert_int_equal(count(text, "HIQ on MEC 2"), 2 * 4);
	assert_int_equal(count(text, ",  CP Pipe "), 2 * 4 * 24);
	assert_non_null(strstr(text, "\n Inst 0,  CP Pipe 0, Queue 2\n"));
	assert_null(strstr(text, "CP Pipe 0, Queue 1\n"));
	assert_non_null(strstr(text, "\n  SDMA Engine 7, RLC 7\n"));
	assert_int_equal(count(text, "\n    0000c914: 00000000 00000000 00000001 "), 3 * 4);
}

static void rls_shows_the_runlist_or_that_there_is_none(void **state)
{
	struct rig *r = *state;
	_cleanup_free_ char *text = NULL;

	rig_target(r, 2);
	text = rig_file(r, GKFD_TREE_DEBUGFS, "rls");
	assert_non_null(strstr(text, "Node 2, gpu_id 4750:\n  No active runlist\n"));
	assert_int_equal(strncmp(text, "Node 1, gpu_id 2d1b:\n  00000000: c013a100 ", 42), 0);
	assert_int_equal(count(text, "c005a200"), 2);
	assert_int_equal(count(text, "c002a500"), 0);
}

static void more_queues_than_slots_chain_the_runlist(void **state)
{
	struct rig *r = *state;
	_cleanup_free_ char *text = NULL;

	rig_target(r, 25);
	text = rig_file(r, GKFD_TREE_DEBUGFS, "rls");
	assert_int_equal(count(text, "c002a500"), 1);
}

/* ---- proc and parameters ---- */

static void proc_files_read_like_linux(void **state)
{
	struct rig *r = *state;
	_cleanup_free_ char *status = NULL, *stat = NULL;

	model_ptrace_seize(r->m, r->daemon, TARGET);
	status = rig_file(r, GKFD_TREE_PROC, "100/status");
	assert_non_null(strstr(status, "\nTracerPid:\t200\n"));
	assert_non_null(strstr(status, "\nUid:\t1000\t1000\t1000\t1000\n"));
	assert_non_null(strstr(status, "\nNSpid:\t100\n"));
	stat = rig_file(r, GKFD_TREE_PROC, "100/stat");
	assert_int_equal(strncmp(stat, "100 (train) S 1 ", 16), 0);
	assert_int_equal(count(stat, " "), 51);
	expect_file(r, GKFD_TREE_PROC, "100/comm", "train\n");
	expect_file(r, GKFD_TREE_PROC, "100/cgroup", "0::/\n");
	assert_null(rig_file(r, GKFD_TREE_PROC, "101/stat"));
	expect_list(r, GKFD_TREE_PROC, "", "4194303 100 200 300 400");
}

static void parameters_are_the_driver_s_defaults(void **state)
{
	struct rig *r = *state;

	expect_file(r, GKFD_TREE_PARAMS, "sched_policy", "0\n");
	expect_file(r, GKFD_TREE_PARAMS, "queue_preemption_timeout_ms", "9000\n");
	assert_null(rig_file(r, GKFD_TREE_PARAMS, "nonsense"));
}

static void odd_paths_are_refused(void **state)
{
	static const char *const paths[] = {
		"nonsense", "topology/nodes/9/gpu_id", "topology/nodes/01/gpu_id", "proc//pasid",
		"proc/-1/pasid", "proc/99999999999999999999/pasid", "topology/nodes/1/gpu_id/x",
		"../proc", "proc/100/stats_1/cu_occupancy", "proc/100/queues/0/nonsense",
		"proc/100/stats_11547", "proc/100/queues",
	};
	struct rig *r = *state;

	rig_target(r, 1);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_null(rig_file(r, GKFD_TREE_SYSFS, paths[i]));
}

#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpu_ids_are_distinct_and_of_16_bits),
		T(the_topology_describes_a_cpu_and_the_gpus),
		cmocka_unit_test(the_save_area_of_an_mi300x_has_the_driver_s_size),
		T(a_process_has_its_directory_from_open_to_exit),
		T(queue_attributes_have_no_newline_and_the_kernel_s_types),
		T(occupancy_counts_waves_of_the_first_xcc_for_all),
		T(mqds_show_what_the_descriptors_hold),
		T(mqd_pointers_are_those_of_the_last_save),
		T(an_sdma_queue_after_a_compute_queue_is_dumped_once_per_xcc),
		T(hqds_list_every_slot_of_every_xcc),
		T(rls_shows_the_runlist_or_that_there_is_none),
		T(more_queues_than_slots_chain_the_runlist),
		T(proc_files_read_like_linux),
		T(parameters_are_the_driver_s_defaults),
		T(odd_paths_are_refused),
	};

	return cmocka_run_group_tests_name("model/files", tests, NULL, NULL) != 0;
}
