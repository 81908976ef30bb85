/* SPDX-License-Identifier: MIT */
#include "abi/mqd_v9.h"
#include "gpu/kfd/debugfs.h"
#include "tests/readers/rig.h"

#define RING 0x7f1234500000ull
#define SAVE_AREA 0x7f4400000000ull

struct text { /* being written */
	char *bytes;
	size_t len;
	FILE *out;
};

static void text_begin(struct text *t)
{
	t->out = open_memstream(&t->bytes, &t->len);
	assert_non_null(t->out);
}

static void text_end(struct text *t)
{
	assert_int_equal(fclose(t->out), 0);
}

static void fill_mqd(uint32_t *dwords, uint64_t ring, uint32_t priority)
{
	memset(dwords, 0, MQD9_BYTES);
	dwords[MQD9_ACTIVE] = 1;
	dwords[MQD9_VMID] = 8;
	dwords[MQD9_PIPE_PRIORITY] = 2;
	dwords[MQD9_QUEUE_PRIORITY] = priority;
	dwords[MQD9_RING_BASE_LO] = (uint32_t)(ring >> 8);
	dwords[MQD9_RING_BASE_HI] = (uint32_t)(ring >> 40);
	dwords[MQD9_RPTR_ADDR_LO] = 0x34000080;
	dwords[MQD9_RPTR_ADDR_HI] = 0x7f12;
	dwords[MQD9_WPTR_ADDR_LO] = 0x34000038;
	dwords[MQD9_WPTR_ADDR_HI] = 0x7f12;
	dwords[MQD9_PQ_CONTROL] = 0xd0308900 | 17; /* 2^18 dwords */
	dwords[MQD9_CTX_SAVE_LO] = (uint32_t)SAVE_AREA;
	dwords[MQD9_CTX_SAVE_HI] = (uint32_t)(SAVE_AREA >> 32);
	dwords[MQD9_CTX_SAVE_SIZE] = 12214272;
}

static void print_compute(FILE *out, uint64_t ring, uint32_t priority, int n_xcc)
{
	uint32_t dwords[MQD9_DWORDS];

	fputs("  Compute queue on device 404a\n", out);
	for (int i = 0; i < n_xcc; i++) {
		/* The others' rings must not be taken for the first's. */
		fill_mqd(dwords, ring + (uint64_t)i * 0x100000000, priority);
		print_rows(out, "    ", 0, dwords, MQD9_DWORDS);
	}
}

static void print_sdma(FILE *out, int n_dumps)
{
	static const uint32_t dwords[MQD_SDMA_BYTES / 4];

	fputs("  SDMA queue on device 404a\n", out);
	for (int i = 0; i < n_dumps; i++)
		print_rows(out, "    ", 0, dwords, ARRAY_SIZE(dwords));
}

static void a_compute_queue_tells_priority_and_addresses(void **state)
{
	struct text t;
	struct gkfd_mqds found;
	uint32_t line = 0;

	text_begin(&t);
	fputs("Process 4242 PASID 0x8002:\n", t.out);
	print_compute(t.out, RING, 15, 1);
	text_end(&t);
	assert_int_equal(gkfd_mqds_parse(t.bytes, t.len, &found, &line), 0);
	assert_int_equal(found.n, 1);
	assert_int_equal(found.mqds[0].pid, 4242);
	assert_int_equal(found.mqds[0].gpu_id, 0x404a);
	assert_false(found.mqds[0].sdma);
	assert_int_equal(found.mqds[0].priority, 15);
	assert_true(found.mqds[0].ring_base == RING);
	assert_int_equal(found.mqds[0].ring_bytes, 1 << 20);
	assert_true(found.mqds[0].read_ptr_addr == 0x7f1234000080);
	assert_true(found.mqds[0].write_ptr_addr == 0x7f1234000038);
	assert_true(found.mqds[0].cwsr_base == SAVE_AREA);
	assert_int_equal(found.mqds[0].cwsr_bytes, 12214272);
	gkfd_mqds_done(&found);
	free(t.bytes);
}

/* As Linux 6.12 has it, and as later ones and AMD's packaged driver do. */
static void the_heading_of_a_process_is_read_as_any_driver_prints_it(void **state)
{
	static const char *const headings[] = { "Process 4242 PASID 0x8002:\n",
						"Process 4242 PASID 32770:\n" };

	for (size_t i = 0; i < ARRAY_SIZE(headings); i++) {
		struct gkfd_mqds found;
		uint32_t line = 0;
		struct text t;

		text_begin(&t);
		fputs(headings[i], t.out);
		print_compute(t.out, RING, 15, 1);
		text_end(&t);
		assert_int_equal(gkfd_mqds_parse(t.bytes, t.len, &found, &line), 0);
		assert_int_equal(found.n, 1);
		assert_int_equal(found.mqds[0].pid, 4242);
		assert_true(found.mqds[0].ring_base == RING);
		gkfd_mqds_done(&found);
		free(t.bytes);
	}
}

static void sdma_after_compute_has_as_many_dumps_and_is_one_queue(void **state)
{
	struct text t;
	struct gkfd_mqds found;
	uint32_t line = 0;

	text_begin(&t);
	fputs("Process 4242 PASID 0x8002:\n", t.out);
	print_sdma(t.out, 1);
	print_compute(t.out, RING, 7, 4);
	print_sdma(t.out, 4);
	fputs("Process 977 PASID 0x8003:\n", t.out);
	print_compute(t.out, RING, 1, 4);
	text_end(&t);
	assert_int_equal(gkfd_mqds_parse(t.bytes, t.len, &found, &line), 0);
	assert_int_equal(found.n, 4);
	assert_true(found.mqds[0].sdma);
	assert_true(found.mqds[1].ring_base == RING);
	assert_int_equal(found.mqds[1].priority, 7);
	assert_true(found.mqds[2].sdma);
	assert_int_equal(found.mqds[2].priority, 0);
	assert_int_equal(found.mqds[2].pid, 4242);
	assert_int_equal(found.mqds[3].pid, 977);
	gkfd_mqds_done(&found);
	free(t.bytes);
}

static void queues_without_a_descriptor_we_know_are_passed_over(void **state)
{
	static const char text[] = "Process 1 PASID 0x1:\n"
				   "  Bad user queue type 5 on device ee4d\n"
				   "  Weird: Queue node with neither kernel nor user queue\n"
				   "  DIQ on device ee4d\n"
				   "    00000000: 00000000 00000001\n"
				   "  SDMA queue on device ee4d\n";
	struct gkfd_mqds found;
	uint32_t line = 0;

	assert_int_equal(gkfd_mqds_parse(text, strlen(text), &found, &line), 0);
	assert_int_equal(found.n, 1);
	assert_true(found.mqds[0].sdma);
	gkfd_mqds_done(&found);
}

static void an_empty_mqds_has_no_queues(void **state)
{
	struct gkfd_mqds found;
	uint32_t line = 0;

	assert_int_equal(gkfd_mqds_parse("", 0, &found, &line), 0);
	assert_int_equal(found.n, 0);
	gkfd_mqds_done(&found);
}

static void an_impossible_ring_size_is_unknown(void **state)
{
	struct text t;
	uint32_t dwords[MQD9_DWORDS], line = 0;
	struct gkfd_mqds found;

	text_begin(&t);
	fill_mqd(dwords, RING, 0);
	dwords[MQD9_PQ_CONTROL] = UINT32_MAX; /* what a ring of size 0 makes of it */
	fputs("Process 1 PASID 0x1:\n  Compute queue on device 1\n", t.out);
	print_rows(t.out, "    ", 0, dwords, MQD9_DWORDS);
	text_end(&t);
	assert_int_equal(gkfd_mqds_parse(t.bytes, t.len, &found, &line), 0);
	assert_int_equal(found.mqds[0].ring_bytes, 0);
	gkfd_mqds_done(&found);
	free(t.bytes);
}

#define HEAD "Process 1 PASID 0x1:\n"

static void bad_mqds_name_the_line(void **state)
{
	static const struct {
		const char *text;
		uint32_t line;
	} bad[] = {
		{ "\n", 1 },
		{ "garbage\n", 1 },
		{ "Process x PASID 0x1:\n", 1 },
		{ "Process 1 PASID 0x1", 1 },
		{ "Process 1 PASID :\n", 1 },
		{ "Process 1 PASID 8x1:\n", 1 },
		{ "Process 1 PASID 99999999999:\n", 1 },
		{ "Process 99999999999 PASID 0x1:\n", 1 },
		{ "  SDMA queue on device 1\n", 1 },
		{ HEAD "    00000000: 00000000\n", 2 },
		{ HEAD "  SDMA queue on device\n", 2 },
		{ HEAD "  SDMA queue on device 1 x\n", 2 },
		{ HEAD "  Compute queue on device 1\n", 2 },
		{ HEAD "  Compute queue on device 1\n" HEAD, 3 },
		{ HEAD "  Compute queue on device 1\n    00000000: 00000000\n    00000000: 0\n",
		  4 },
		{ HEAD "  SDMA queue on device 1\n    00000004: 00000000\n", 3 },
		{ HEAD "  SDMA queue on device 1\n    00000000: 00000000\n    00000008: 0\n", 4 },
		{ HEAD "  SDMA queue on device 1\n    00000000: 123456789\n", 3 },
		{ HEAD "  SDMA queue on device 1\n    00000000: 1 2 3 4 5 6 7 8 9\n", 3 },
		{ HEAD "  SDMA queue on device 1\n    00000000:\n", 3 },
		{ HEAD "  SDMA queue on device 1\n    00000000: 0000", 3 },
		{ HEAD "  SDMA queue on device 1\n    00000000: 00000000\n    00000000: 00000000\n"
		       "    00000000: 00000000 0000\n",
		  5 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct gkfd_mqds found = { .n = 99 };
		uint32_t line = 0;

		assert_int_equal(gkfd_mqds_parse(bad[i].text, strlen(bad[i].text), &found, &line),
				 -EBADMSG);
		assert_int_equal(line, bad[i].line);
		assert_int_equal(found.n, 99);
	}
}

static void every_cut_of_mqds_is_parsed_or_refused(void **state)
{
	struct text t;
	struct gkfd_mqds found;
	uint32_t line = 0;

	text_begin(&t);
	fputs(HEAD, t.out);
	print_compute(t.out, RING, 7, 2);
	print_sdma(t.out, 2);
	text_end(&t);
	for (size_t cut = 0; cut < t.len; cut++) {
		int r = gkfd_mqds_parse(t.bytes, cut, &found, &line);

		if (r == 0) {
			assert_true(found.n <= 2);
			assert_true(found.n == 0 || found.mqds[0].ring_base == RING);
			gkfd_mqds_done(&found);
		} else {
			assert_int_equal(r, -EBADMSG);
		}
	}
	free(t.bytes);
}

static void print_slot(FILE *out, const char *heading, bool active, uint64_t ring)
{
	uint32_t regs[56] = { 0 };

	regs[MQD9_ACTIVE - MQD9_HQD_FIRST] = active ? 1 : 0x100; /* only bit 0 counts */
	regs[MQD9_VMID - MQD9_HQD_FIRST] = 9;
	regs[MQD9_RING_BASE_LO - MQD9_HQD_FIRST] = (uint32_t)(ring >> 8);
	regs[MQD9_RING_BASE_HI - MQD9_HQD_FIRST] = (uint32_t)(ring >> 40);
	fputs(heading, out);
	print_rows(out, "    ", 0x3000c914, regs, ARRAY_SIZE(regs));
}

static void slots_are_told_from_the_drivers_own_queue(void **state)
{
	struct text t;
	static const uint32_t sdma[11];
	struct gkfd_hqds found;
	uint32_t line = 0;

	text_begin(&t);
	fputs("Node 1, gpu_id 404a:\n", t.out);
	print_slot(t.out, "   Inst 0, HIQ on MEC 2 Pipe 0 Queue 0\n", true, 0x1000);
	print_slot(t.out, " Inst 0,  CP Pipe 1, Queue 2\n", true, RING);
	print_slot(t.out, " Inst 3,  CP Pipe 1, Queue 2\n", false, 0);
	fputs("  SDMA Engine 0, RLC 0\n", t.out);
	print_rows(t.out, "    ", 0x1200, sdma, ARRAY_SIZE(sdma));
	fputs("Node 2, gpu_id ee4d:\n Device is stopped\n", t.out);
	fputs("Node 10, gpu_id 7:\n", t.out);
	print_slot(t.out, " Inst 0,  CP Pipe 0, Queue 2\n", true, RING);
	text_end(&t);
	assert_int_equal(gkfd_hqds_parse(t.bytes, t.len, &found, &line), 0);
	assert_int_equal(found.n, 4);
	assert_true(found.hqds[0].hiq);
	assert_true(found.hqds[0].active);
	assert_false(found.hqds[1].hiq);
	assert_int_equal(found.hqds[1].pipe, 1);
	assert_int_equal(found.hqds[1].queue, 2);
	assert_int_equal(found.hqds[2].xcc, 3);
	assert_false(found.hqds[2].active);
	assert_int_equal(found.hqds[3].node, 10);
	assert_int_equal(found.hqds[3].gpu_id, 7);
	gkfd_hqds_done(&found);
	free(t.bytes);
}

static void slots_before_multi_xcc_kernels_are_of_xcc_0(void **state)
{
	struct text t;
	struct gkfd_hqds found;
	uint32_t line = 0;

	text_begin(&t);
	fputs("Node 1, gpu_id 404a:\n", t.out);
	print_slot(t.out, "  HIQ on MEC 2 Pipe 0 Queue 0\n", true, 0x1000);
	print_slot(t.out, "  CP Pipe 3, Queue 7\n", true, RING);
	text_end(&t);
	assert_int_equal(gkfd_hqds_parse(t.bytes, t.len, &found, &line), 0);
	assert_int_equal(found.n, 2);
	assert_int_equal(found.hqds[1].xcc, 0);
	assert_int_equal(found.hqds[1].pipe, 3);
	gkfd_hqds_done(&found);
	free(t.bytes);
}

#define NODE "Node 1, gpu_id 1:\n"

static void bad_hqds_name_the_line(void **state)
{
	static const struct {
		const char *text;
		uint32_t line;
	} bad[] = {
		{ "Node 1, gpu_id g:\n", 1 },
		{ " Inst 0,  CP Pipe 0, Queue 2\n", 1 },
		{ NODE "    00001000: 00000000\n", 2 },
		{ NODE " Inst 0,  CP Pipe 0\n", 2 },
		{ NODE " Inst -1,  CP Pipe 0, Queue 2\n", 2 },
		{ NODE " Inst 0,  CP Pipe 0, Queue 2\n", 2 },
		{ NODE " Inst 0,  CP Pipe 0, Queue 2\n    00001000: 0 0 0 0 0 0 0 0\n" NODE, 4 },
		{ NODE " Inst 0,  CP Pipe 0, Queue 2\n    00001000: zz\n", 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct gkfd_hqds found;
		uint32_t line = 0;

		assert_int_equal(gkfd_hqds_parse(bad[i].text, strlen(bad[i].text), &found, &line),
				 -EBADMSG);
		assert_int_equal(line, bad[i].line);
	}
}

static void the_files_are_read_where_the_driver_has_them(void **state)
{
	struct fake *f;
	_cleanup_gkfd_ struct gkfd *k = fake_open(&f);
	struct gkfd_mqds mqds;
	struct gkfd_hqds hqds;
	uint32_t line = 0;

	assert_int_equal(gkfd_mqds_read(k, &mqds), -ENOENT);
	fake_error(f, GKFD_TREE_DEBUGFS, "mqds", -EACCES);
	assert_int_equal(gkfd_mqds_read(k, &mqds), -EACCES);
	fake_file(f, GKFD_TREE_DEBUGFS, "hqds", NODE " Device is stopped\n");
	assert_int_equal(gkfd_hqds_read(k, &hqds), 0);
	assert_int_equal(hqds.n, 0);
	assert_int_equal(line, 0);
	gkfd_hqds_done(&hqds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_compute_queue_tells_priority_and_addresses),
		cmocka_unit_test(the_heading_of_a_process_is_read_as_any_driver_prints_it),
		cmocka_unit_test(sdma_after_compute_has_as_many_dumps_and_is_one_queue),
		cmocka_unit_test(queues_without_a_descriptor_we_know_are_passed_over),
		cmocka_unit_test(an_empty_mqds_has_no_queues),
		cmocka_unit_test(an_impossible_ring_size_is_unknown),
		cmocka_unit_test(bad_mqds_name_the_line),
		cmocka_unit_test(every_cut_of_mqds_is_parsed_or_refused),
		cmocka_unit_test(slots_are_told_from_the_drivers_own_queue),
		cmocka_unit_test(slots_before_multi_xcc_kernels_are_of_xcc_0),
		cmocka_unit_test(bad_hqds_name_the_line),
		cmocka_unit_test(the_files_are_read_where_the_driver_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
