/* SPDX-License-Identifier: MIT */
/* The extension's device: files, rights, versions. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "abi/kfd_gpreempt.h"
#include "tests/model/test_driver_rig.h"
#include "util/macros.h"

static uint64_t open_ext(struct rig *r, struct model_task who)
{
	uint64_t file = 0;

	assert_int_equal(model_ext_open(r->m, who, &file), 0);
	return file;
}

static void without_the_option_there_is_no_device_and_no_number(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_version v = { 0 };
	uint64_t file;

	assert_int_equal(model_ext_open(r->m, r->daemon, &file), -ENODEV);
	for (unsigned int nr = KFD_GPREEMPT_COMMAND_START; nr < KFD_GPREEMPT_COMMAND_END; nr++)
		assert_int_equal(rig_ioctl(r, r->daemon, KFD_GPREEMPT_IOWR(nr, v), &v), -ENOTTY);
}

static void the_version_tells_what_can_be_done(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_version v = { 0 };
	uint64_t file = open_ext(r, r->daemon);

	assert_int_equal(model_ext_ioctl(r->m, r->daemon, file, KFD_GPREEMPT_GET_VERSION, &v), 0);
	assert_int_equal(v.version, KFD_GPREEMPT_VERSION);
	assert_int_equal(v.abilities, KFD_GPREEMPT_CAN_BATCH | KFD_GPREEMPT_IS_ADMIN);
	assert_int_equal(v.max_entries, KFD_GPREEMPT_MAX_ENTRIES);
	assert_int_equal(v.max_hold_ms, KFD_GPREEMPT_MAX_HOLD_MS);
}

static void victims_only_is_told_where_it_is_allowed(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_version v = { 0 };
	uint64_t file = open_ext(r, r->daemon);

	assert_int_equal(model_ext_ioctl(r->m, r->daemon, file, KFD_GPREEMPT_GET_VERSION, &v), 0);
	assert_true(v.abilities & KFD_GPREEMPT_CAN_VICTIMS_ONLY);
}

static void a_user_is_no_administrator(void **state)
{
	struct rig *r = *state;
	struct model_task user = { OTHER, OTHER };
	struct kfd_gpreempt_version v = { 0 };
	uint64_t file = open_ext(r, user);

	assert_int_equal(model_ext_ioctl(r->m, user, file, KFD_GPREEMPT_GET_VERSION, &v), 0);
	assert_false(v.abilities & KFD_GPREEMPT_IS_ADMIN);
}

static void a_process_can_ask_on_its_own_descriptor(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_version v = { 0 };

	assert_int_equal(rig_ioctl(r, r->daemon, KFD_GPREEMPT_GET_VERSION, &v), 0);
	assert_int_equal(v.version, KFD_GPREEMPT_VERSION);
	assert_int_equal(rig_ioctl(r, r->daemon, KFD_GPREEMPT_IOWR(0xCF, v), &v), -ENOTTY);
}

static void a_bad_pointer_is_refused(void **state)
{
	struct rig *r = *state;
	uint64_t file = open_ext(r, r->daemon);

	assert_int_equal(model_ext_ioctl(r->m, r->daemon, file, KFD_GPREEMPT_GET_VERSION,
					 (void *)(uintptr_t)BAD_POINTER),
			 -EFAULT);
}

static void a_closed_file_takes_no_calls(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_version v = { 0 };
	uint64_t file = open_ext(r, r->daemon);

	model_ext_close(r->m, file);
	assert_int_equal(model_ext_ioctl(r->m, r->daemon, file, KFD_GPREEMPT_GET_VERSION, &v),
			 -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_the_option_there_is_no_device_and_no_number,
						rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(the_version_tells_what_can_be_done, rig_setup_ext,
						rig_teardown),
		cmocka_unit_test_setup_teardown(victims_only_is_told_where_it_is_allowed,
						rig_setup_victims, rig_teardown),
		cmocka_unit_test_setup_teardown(a_user_is_no_administrator, rig_setup_ext,
						rig_teardown),
		cmocka_unit_test_setup_teardown(a_process_can_ask_on_its_own_descriptor,
						rig_setup_ext, rig_teardown),
		cmocka_unit_test_setup_teardown(a_bad_pointer_is_refused, rig_setup_ext,
						rig_teardown),
		cmocka_unit_test_setup_teardown(a_closed_file_takes_no_calls, rig_setup_ext,
						rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
