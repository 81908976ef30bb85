/* SPDX-License-Identifier: MIT */
/* The driver's version, and the GPUs there are. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/nvrm/machine.h"
#include "tests/nvrm/rig.h"
#include "util/macros.h"

#define OPEN "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "

/* ---- the version ---- */

struct version_case {
	const char *text;
	int result;
	unsigned int major, minor, patch;
	bool open;
};

static const struct version_case versions[] = {
	{ OPEN "580.159.04  Release Build  (dvs-builder@U22)  Tue Jan 20 18:04:09 UTC 2026\n"
	       "GCC version:  gcc version 13.3.0\n",
	  0, 580, 159, 4, true },
	{ "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC "
	  "2023\n",
	  0, 535, 104, 5, false },
	{ OPEN "515.43.04  Release Build\n", 0, 515, 43, 4, true },
	{ OPEN "595.10  Release Build\n", 0, 595, 10, 0, true },
	{ OPEN "580.159.04", 0, 580, 159, 4, true },
	{ "", -EBADMSG },
	{ "\n", -EBADMSG },
	{ "NVRM version:\n", -EBADMSG },
	{ OPEN "\n580.159.04\n", -EBADMSG },
	{ OPEN "580\n", -EBADMSG },
	{ OPEN "five.hundred.eighty\n", -EBADMSG },
	{ OPEN "99999999999999999999.1.1\n", -EBADMSG },
	{ "Linux version 6.1.0 580.159.04\n", -EBADMSG },
};

static void versions_are_read(void **state)
{
	struct rig *r = *state;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		const struct version_case *c = &versions[i];
		struct nvrm_version v = { .major = 7 };

		fake_rm_set_version(r->fake, c->text);
		assert_int_equal(nvrm_read_version(r->n, &v), c->result);
		if (c->result < 0) {
			assert_int_equal(v.major, 7);
			continue;
		}
		assert_int_equal(v.major, c->major);
		assert_int_equal(v.minor, c->minor);
		assert_int_equal(v.patch, c->patch);
		assert_int_equal(v.open, c->open);
		assert_non_null(strstr(c->text, v.text));
		assert_true(strlen(v.text) >= 6);
	}
}

static void without_a_driver_there_is_no_version(void **state)
{
	struct rig *r = *state;
	struct nvrm_version v;

	fake_rm_set_version(r->fake, NULL);
	assert_int_equal(nvrm_read_version(r->n, &v), -ENOENT);
}

static const struct {
	unsigned int major;
	bool open, good;
} gate[] = {
	{ 0, true, false },   { 470, true, false },  { 514, true, false },  { 515, true, true },
	{ 525, true, true },  { 535, true, true },   { 550, true, true },   { 560, true, true },
	{ 570, true, true },  { 580, true, true },   { 590, true, true },   { 595, true, true },
	{ 596, true, false }, { 9999, true, false }, { 515, false, false }, { 580, false, false },
};

static void only_versions_that_were_compared_are_let_in(void **state)
{
	unsetenv("GPREEMPT_NVRM_ANY_DRIVER");
	for (size_t i = 0; i < ARRAY_SIZE(gate); i++) {
		struct nvrm_version v = { .major = gate[i].major, .open = gate[i].open };
		struct nvrm_failure failure = { 0 };
		int result = nvrm_check_version(&v, &failure);

		assert_int_equal(result == 0, gate[i].good);
		if (gate[i].good)
			continue;
		assert_int_equal(result, -EOPNOTSUPP);
		assert_int_equal(failure.why, NVRM_WHY_DRIVER_UNKNOWN);
	}
}

static void whoever_insists_gets_any_version(void **state)
{
	struct nvrm_failure failure = { 0 };

	setenv("GPREEMPT_NVRM_ANY_DRIVER", "1", 1);
	for (size_t i = 0; i < ARRAY_SIZE(gate); i++) {
		struct nvrm_version v = { .major = gate[i].major, .open = gate[i].open };

		assert_int_equal(nvrm_check_version(&v, &failure), 0);
	}
	unsetenv("GPREEMPT_NVRM_ANY_DRIVER");
}

/* ---- GPUs ---- */

static void a_gpu_has_a_place_a_name_and_a_uuid(void **state)
{
	struct rig *r = *state;
	struct nvrm_gpu gpu = { 0 };

	assert_int_equal(nvrm_list_gpus(r->n, &gpu, 1), 1);
	assert_int_equal(gpu.gpu, FAKE_GPU);
	assert_int_equal(gpu.domain, 0);
	assert_int_equal(gpu.bus, 1);
	assert_int_equal(gpu.slot, 0);
	assert_string_equal(gpu.name, "NVIDIA H200");
	assert_string_equal(gpu.uuid, "GPU-0b3f5a5e-7a1c-4f4e-9a52-000000000100");
	assert_false(gpu.mig);
}

static void gpus_are_listed_in_order_and_all_are_counted(void **state)
{
	struct rig *r = *state;
	struct nvrm_gpu gpus[3] = { 0 };

	fake_rm_add_gpu(r->fake, FAKE_GPU_2, "NVIDIA A");
	fake_rm_add_gpu(r->fake, 0x10, "NVIDIA B");
	assert_int_equal(nvrm_list_gpus(r->n, gpus, 2), 3);
	assert_int_equal(gpus[0].gpu, 0x10);
	assert_string_equal(gpus[0].name, "NVIDIA B");
	assert_int_equal(gpus[1].gpu, FAKE_GPU);
	assert_int_equal(gpus[2].gpu, 0);
	assert_int_equal(nvrm_list_gpus(r->n, NULL, 0), 3);
}

static void a_gpu_that_is_cut_up_is_told(void **state)
{
	struct rig *r = *state;
	struct nvrm_gpu gpus[2] = { 0 };

	fake_rm_add_gpu(r->fake, FAKE_GPU_2, "NVIDIA A100");
	fake_rm_set_mig(r->fake, FAKE_GPU_2);
	assert_int_equal(nvrm_list_gpus(r->n, gpus, 2), 2);
	assert_false(gpus[0].mig);
	assert_true(gpus[1].mig);
}

static void without_a_driver_there_are_no_gpus(void **state)
{
	struct rig *r = *state;
	struct nvrm_gpu gpu;

	fake_rm_set_version(r->fake, NULL);
	assert_int_equal(nvrm_list_gpus(r->n, &gpu, 1), -ENOENT);
}

/* ---- trouble ---- */

static void nothing(struct rig *r)
{
}

static void list_two(struct rig *r)
{
	struct nvrm_gpu gpus[2];

	nvrm_list_gpus(r->n, gpus, 2);
}

static void whatever_fails_while_gpus_are_listed_nothing_is_kept(void **state)
{
	const struct rig_scene scene = { nothing, list_two, NULL };

	rig_try_all(&scene, &(struct fake_fault){ .error = EIO });
}

static void a_gpu_without_a_file_of_its_own_is_listed_too(void **state)
{
	struct rig *r = *state;
	struct nvrm_gpu gpu = { 0 };

	fake_rm_fault(r->fake, &(struct fake_fault){ .op = FAKE_READ, .error = ENOENT });
	assert_int_equal(nvrm_list_gpus(r->n, &gpu, 1), 1);
	assert_int_equal(gpu.gpu, FAKE_GPU);
	assert_true(gpu.name[0] != '\0');
}

static void a_driver_that_refuses_to_list_is_an_error(void **state)
{
	struct rig *r = *state;
	struct nvrm_gpu gpu;

	fake_rm_fault(r->fake, &(struct fake_fault){ .cmd = NVRM_CTRL_GET_PROBED_IDS,
						     .status = NVRM_INSUFFICIENT_PERMISSIONS });
	assert_int_equal(nvrm_list_gpus(r->n, &gpu, 1), -EPERM);
	fake_rm_fault(r->fake, &(struct fake_fault){ .cmd = FAKE_CMD_ALLOC, .status = 0x1a });
	assert_true(nvrm_list_gpus(r->n, &gpu, 1) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
		CASE(versions_are_read),
		CASE(without_a_driver_there_is_no_version),
		CASE(only_versions_that_were_compared_are_let_in),
		CASE(whoever_insists_gets_any_version),
		CASE(a_gpu_has_a_place_a_name_and_a_uuid),
		CASE(gpus_are_listed_in_order_and_all_are_counted),
		CASE(a_gpu_that_is_cut_up_is_told),
		CASE(without_a_driver_there_are_no_gpus),
		CASE(whatever_fails_while_gpus_are_listed_nothing_is_kept),
		CASE(a_gpu_without_a_file_of_its_own_is_listed_too),
		CASE(a_driver_that_refuses_to_list_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
