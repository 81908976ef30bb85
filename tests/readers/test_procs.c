/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/procs.h"
#include "tests/readers/rig.h"

static void queues_and_gpus_of_a_process_are_read(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("mi308x");
	static const uint32_t types[] = {
		KFD_IOC_QUEUE_TYPE_COMPUTE,	   KFD_IOC_QUEUE_TYPE_COMPUTE,
		KFD_IOC_QUEUE_TYPE_SDMA,	   KFD_IOC_QUEUE_TYPE_SDMA_XGMI,
		KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID, GKFD_QUEUE_TYPE_OTHER,
	};
	struct gkfd_proc p;

	assert_int_equal(gkfd_proc_read(k, 4242, &p), 0);
	assert_int_equal(p.pid, 4242);
	assert_int_equal(p.n_queues, ARRAY_SIZE(types));
	for (size_t i = 0; i < p.n_queues; i++)
		assert_int_equal(p.queues[i].type, types[i]);
	assert_int_equal(p.queues[5].queue_id, 10);
	assert_int_equal(p.queues[2].ring_bytes, 16777216);
	assert_int_equal(p.queues[2].gpu_id, 16458);
	assert_int_equal(p.n_gpus, 2);
	assert_int_equal(p.gpus[0].gpu_id, 16458);
	assert_true(p.gpus[0].has_vram);
	assert_int_equal(p.gpus[0].vram_bytes, 34359738368);
	assert_true(p.gpus[0].has_occupancy);
	assert_int_equal(p.gpus[0].cu_occupancy, 80);
	gkfd_proc_done(&p);
	assert_null(p.queues);
}

static void a_process_without_queues_has_none(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("mi308x");
	struct gkfd_proc p;

	assert_int_equal(gkfd_proc_read(k, 977, &p), 0);
	assert_int_equal(p.n_queues, 0);
	assert_int_equal(p.n_gpus, 1);
	assert_true(p.gpus[0].has_vram);
	assert_false(p.gpus[0].has_occupancy);
	gkfd_proc_done(&p);
}

static void a_process_kfd_does_not_know_is_esrch(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("mi308x");
	struct gkfd_proc p;

	assert_int_equal(gkfd_proc_read(k, 1, &p), -ESRCH);
	assert_int_equal(gkfd_proc_read(k, -1, &p), -ESRCH);
}

static void a_process_missing_half_its_files_is_ebadmsg(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("truncated"), *g = tree_open("garbage");
	struct gkfd_proc p;

	assert_int_equal(gkfd_proc_read(k, 4242, &p), -EBADMSG);
	assert_int_equal(gkfd_proc_read(k, 4243, &p), -EBADMSG);
	assert_int_equal(gkfd_proc_read(g, 5, &p), -EBADMSG);
	assert_int_equal(gkfd_proc_read(g, 6, &p), -EBADMSG);
}

static void a_queue_that_goes_meanwhile_is_left_out(void **state)
{
	struct fake *f;
	_cleanup_gkfd_ struct gkfd *k = fake_open(&f);
	struct gkfd_proc p;

	fake_file(f, GKFD_TREE_SYSFS, "proc/9/queues/3/size", "4096");
	fake_error(f, GKFD_TREE_SYSFS, "proc/9/queues/3/type", -ENODEV);
	fake_file(f, GKFD_TREE_SYSFS, "proc/9/queues/1/size", "4096");
	fake_file(f, GKFD_TREE_SYSFS, "proc/9/queues/1/type", "0");
	fake_file(f, GKFD_TREE_SYSFS, "proc/9/queues/1/gpuid", "5");
	assert_int_equal(gkfd_proc_read(k, 9, &p), 0);
	assert_int_equal(p.n_queues, 1);
	assert_int_equal(p.queues[0].queue_id, 1);
	gkfd_proc_done(&p);
}

static void a_counter_the_driver_refuses_is_unknown(void **state)
{
	struct fake *f;
	_cleanup_gkfd_ struct gkfd *k = fake_open(&f);
	struct gkfd_proc p;

	fake_file(f, GKFD_TREE_SYSFS, "proc/9/queues/none", "");
	fake_file(f, GKFD_TREE_SYSFS, "proc/9/vram_5", "1\n");
	fake_error(f, GKFD_TREE_SYSFS, "proc/9/stats_5/cu_occupancy", -EINVAL);
	assert_int_equal(gkfd_proc_read(k, 9, &p), 0);
	assert_int_equal(p.n_gpus, 1);
	assert_false(p.gpus[0].has_occupancy);
	gkfd_proc_done(&p);
}

static void processes_are_listed_by_number(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("mi308x"), *g = tree_open("garbage");
	pid_t *pids;
	size_t n;

	assert_int_equal(gkfd_proc_list(k, &pids, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(pids[0], 977);
	assert_int_equal(pids[1], 4242);
	free(pids);
	assert_int_equal(gkfd_proc_list(g, &pids, &n), 0);
	assert_int_equal(n, 2); /* not "7x" */
	free(pids);
}

static void without_the_driver_the_list_is_enoent(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("cpu-only");
	pid_t *pids = NULL;
	size_t n = 7;

	assert_int_equal(gkfd_proc_list(k, &pids, &n), -ENOENT);
	assert_null(pids);
	assert_int_equal(n, 7);
}

static void a_process_is_identified_whatever_its_command(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("mi308x");
	struct gkfd_proc_ident ident;

	assert_int_equal(gkfd_proc_identify(k, 4242, &ident), 0);
	assert_int_equal(ident.pid, 4242);
	assert_int_equal(ident.tgid, 4242);
	assert_int_equal(ident.uid, 1001);
	assert_int_equal(ident.tracer_pid, 0);
	assert_int_equal(ident.state, 'S');
	assert_int_equal(ident.start_ticks, 881263);
	assert_string_equal(ident.comm, "train :) 7 (x");
}

static void a_process_that_is_gone_is_esrch(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("mi308x"), *real = NULL;
	struct gkfd_proc_ident ident;
	struct fake *f;
	_cleanup_gkfd_ struct gkfd *dying = fake_open(&f);

	assert_int_equal(gkfd_proc_identify(k, 999999, &ident), -ESRCH);
	assert_int_equal(gkfd_proc_identify(k, 978, &ident), -ESRCH); /* no stat any more */
	fake_error(f, GKFD_TREE_PROC, "5/stat", -ESRCH);
	assert_int_equal(gkfd_proc_identify(dying, 5, &ident), -ESRCH);
	assert_int_equal(gkfd_new(&gkfd_transport_syscall, gkfd_syscall_new(NULL), &real), 0);
	assert_int_equal(gkfd_proc_identify(real, 0, &ident), -ESRCH);
}

static void the_caller_can_identify_itself(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = NULL;
	struct gkfd_proc_ident ident;

	assert_int_equal(gkfd_new(&gkfd_transport_syscall, gkfd_syscall_new(""), &k), 0);
	assert_int_equal(gkfd_proc_identify(k, getpid(), &ident), 0);
	assert_int_equal(ident.uid, geteuid());
	assert_int_equal(ident.state, 'R');
	assert_true(ident.start_ticks > 0);
}

static void cut_off_proc_files_are_ebadmsg(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("truncated");
	static const char *const stats[] = {
		"",
		"1",
		"1 (a) S",
		"1 (a S 0 0\n",
		"x (a) S 1\n",
		"1 (a) S 1 2 3\n",
		"99999999999 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n",
		"1 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 -5\n",
		"1 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 18446744073709551616\n",
	};
	struct gkfd_proc_ident ident = { .pid = 3 };

	assert_int_equal(gkfd_proc_identify(k, 4242, &ident), -EBADMSG);
	for (size_t i = 0; i < ARRAY_SIZE(stats); i++)
		assert_int_equal(gkfd_proc_parse_stat(stats[i], strlen(stats[i]), &ident),
				 -EBADMSG);
	assert_int_equal(ident.pid, 3);
}

static void a_status_without_its_lines_is_ebadmsg(void **state)
{
	static const char *const bad[] = {
		"",
		"Tgid:\t1\nTracerPid:\t0\n",
		"TracerPid:\t0\nUid:\t0\t0\n",
		"Tgid:\t1\nTracerPid:\t0\nUid:\t0\n",
		"Tgid:\t1\nTracerPid:\t-1\nUid:\t0\t0\n",
		"Tgid:\t1\nTracerPid:\t0\nUid:\t0\t4294967296\n",
		"Tgid:\t1\nTracerPid:\t0\nUid:\t0\t0",
	};
	struct gkfd_proc_ident ident = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(gkfd_proc_parse_status(bad[i], strlen(bad[i]), &ident), -EBADMSG);
}

static void a_command_cannot_drive_the_terminal(void **state)
{
	static const char text[] = "1 (\033[2J\tlonger than fifteen) R 1 1 1 1 1 1 1 1 1 1 1 1 1 1 "
				   "1 1 1 1 7\n";
	struct gkfd_proc_ident ident = { 0 };

	assert_int_equal(gkfd_proc_parse_stat(text, strlen(text), &ident), 0);
	assert_string_equal(ident.comm, "?[2J?longer tha");
	assert_int_equal(ident.start_ticks, 7);
}

static void pids_are_global_unless_the_namespace_says_otherwise(void **state)
{
	_cleanup_gkfd_ struct gkfd *copied = tree_open("mi308x"), *inside = tree_open("slots120");
	struct fake *f;
	_cleanup_gkfd_ struct gkfd *k = fake_open(&f);

	assert_true(gkfd_pids_are_global(copied));
	assert_false(gkfd_pids_are_global(inside));
	fake_file(f, GKFD_TREE_PROC, "self/ns/pid", "pid:[4026531836]");
	assert_true(gkfd_pids_are_global(k));
	f->files[0].error = -EACCES;
	assert_false(gkfd_pids_are_global(k));
}

static void a_containers_pid_is_found_by_its_inner_names(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("mi308x");

	assert_int_equal(gkfd_pid_from_container(k, 18), 977);
	assert_int_equal(gkfd_pid_from_container(k, 17), 4242); /* not the process called 17 here */
	assert_int_equal(gkfd_pid_from_container(k, 3), 0); /* two have it */
	assert_int_equal(gkfd_pid_from_container(k, 4242), 0); /* the outer name */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_and_gpus_of_a_process_are_read),
		cmocka_unit_test(a_process_without_queues_has_none),
		cmocka_unit_test(a_process_kfd_does_not_know_is_esrch),
		cmocka_unit_test(a_process_missing_half_its_files_is_ebadmsg),
		cmocka_unit_test(a_queue_that_goes_meanwhile_is_left_out),
		cmocka_unit_test(a_counter_the_driver_refuses_is_unknown),
		cmocka_unit_test(processes_are_listed_by_number),
		cmocka_unit_test(without_the_driver_the_list_is_enoent),
		cmocka_unit_test(a_process_is_identified_whatever_its_command),
		cmocka_unit_test(a_process_that_is_gone_is_esrch),
		cmocka_unit_test(the_caller_can_identify_itself),
		cmocka_unit_test(cut_off_proc_files_are_ebadmsg),
		cmocka_unit_test(a_status_without_its_lines_is_ebadmsg),
		cmocka_unit_test(a_command_cannot_drive_the_terminal),
		cmocka_unit_test(pids_are_global_unless_the_namespace_says_otherwise),
		cmocka_unit_test(a_containers_pid_is_found_by_its_inner_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
