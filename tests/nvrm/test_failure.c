/* SPDX-License-Identifier: MIT */
/* What people are told when something could not be done. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "abi/nvrm.h"
#include "gpu/nvrm/failure.h"
#include "util/macros.h"

#define PID 4711
#define GPU 0x4100u

static void statuses_stand_for_errnos(void **state)
{
	static const struct {
		int status, error;
	} table[] = {
		{ NVRM_GPU_IS_LOST, ENODEV },	    { NVRM_INSUFFICIENT_PERMISSIONS, EPERM },
		{ NVRM_INVALID_ARGUMENT, EINVAL },  { NVRM_INVALID_CLIENT, ENOENT },
		{ NVRM_OBJECT_NOT_FOUND, ENOENT },  { NVRM_INVALID_OBJECT_HANDLE, ENOENT },
		{ NVRM_NOT_SUPPORTED, EOPNOTSUPP }, { NVRM_TIMEOUT, ETIMEDOUT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		assert_int_equal(nvrm_status_errno(table[i].status), -table[i].error);
	assert_int_equal(nvrm_status_errno(NVRM_OK), 0);
	assert_int_equal(nvrm_status_errno(-EPERM), -EPERM);
	for (int status = 1; status < 0x100; status++)
		assert_in_range(-nvrm_status_errno(status), 1, 4095);
}

static void describe(int r, struct nvrm_failure f, struct gpu_why *ret)
{
	memset(ret, 'x', sizeof(*ret));
	nvrm_failure_describe(r, PID, &f, ret);
	assert_non_null(memchr(ret->message, '\0', sizeof(ret->message)));
	assert_non_null(memchr(ret->hint, '\0', sizeof(ret->hint)));
	assert_true(ret->message[0] != '\0');
	assert_null(strchr(ret->message, '\n'));
	assert_null(strchr(ret->hint, '\n'));
	assert_null(strstr(ret->message, "(null)"));
}

static void every_reason_is_one_line_and_another(void **state)
{
	struct gpu_why text[NVRM_WHY_GUARD_DIED + 1];

	for (int why = NVRM_WHY_NONE; why <= NVRM_WHY_GUARD_DIED; why++) {
		describe(-EIO, (struct nvrm_failure){ .why = (enum nvrm_why)why }, &text[why]);
		for (int other = NVRM_WHY_SYSTEM; other < why; other++)
			assert_string_not_equal(text[why].message, text[other].message);
	}
}

static void the_process_and_the_step_are_named(void **state)
{
	struct gpu_why text;

	describe(-EOPNOTSUPP, (struct nvrm_failure){ .why = NVRM_WHY_SHARED }, &text);
	assert_non_null(strstr(text.message, "4711"));
	assert_non_null(strstr(text.message, "MPS"));
	describe(-EPERM, (struct nvrm_failure){ .why = NVRM_WHY_NO_RIGHT }, &text);
	assert_non_null(strstr(text.message, "4711"));
	assert_true(text.hint[0] != '\0');
	describe(-ENOMEM, (struct nvrm_failure){ .why = NVRM_WHY_SYSTEM, .step = "counting sheep" },
		 &text);
	assert_non_null(strstr(text.message, "counting sheep"));
	assert_non_null(strstr(text.message, strerror(ENOMEM)));
}

static void what_the_driver_said_is_told(void **state)
{
	struct gpu_why text;
	struct nvrm_failure f = { NVRM_WHY_REFUSED, "suspending its channels", 0x40, GPU };

	describe(-EBUSY, f, &text);
	assert_non_null(strstr(text.message, "suspending its channels"));
	assert_non_null(strstr(text.message, "INVALID_STATE (0x40)"));
	assert_non_null(strstr(text.message, "0x4100"));
	f.status = 0xee;
	describe(-EIO, f, &text);
	assert_non_null(strstr(text.message, "status 0xee"));
	f.status = NVRM_INVALID_CLIENT;
	describe(-ENOENT, f, &text);
	assert_non_null(strstr(text.message, "INVALID_CLIENT (0x23)"));
	f.why = NVRM_WHY_TIMEOUT;
	describe(-ETIMEDOUT, f, &text);
	assert_non_null(strstr(text.message, "0x4100"));
}

static void a_process_that_is_not_there_is_told_as_such(void **state)
{
	struct gpu_why text;

	describe(-ESRCH, (struct nvrm_failure){ .why = NVRM_WHY_SYSTEM }, &text);
	assert_non_null(strstr(text.message, "no process 4711"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statuses_stand_for_errnos),
		cmocka_unit_test(every_reason_is_one_line_and_another),
		cmocka_unit_test(the_process_and_the_step_are_named),
		cmocka_unit_test(what_the_driver_said_is_told),
		cmocka_unit_test(a_process_that_is_not_there_is_told_as_such),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
