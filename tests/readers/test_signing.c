/* SPDX-License-Identifier: MIT */
/* Whether modules must be signed, as the machine's files tell. */
#include "tests/readers/rig.h"

#include "gpu/kfd/signing.h"

#define LOCKDOWN "kernel/security/lockdown"
#define ENFORCED "module/module/parameters/sig_enforce"
#define SECURE_BOOT "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

static bool is_needed(struct gkfd *k)
{
	struct gkfd_signing s;

	gkfd_signing_read(k, &s);
	return gkfd_signing_is_needed(&s);
}

static void secure_boot_and_lockdown_are_told(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("secure-boot");
	struct gkfd_signing s;

	gkfd_signing_read(k, &s);
	assert_int_equal(s.known, GKFD_SIGNING_SECURE_BOOT | GKFD_SIGNING_LOCKDOWN);
	assert_true(s.secure_boot);
	assert_string_equal(s.lockdown, "integrity");
	assert_true(gkfd_signing_is_needed(&s));
}

static void a_machine_that_tells_nothing_asks_for_nothing(void **state)
{
	_cleanup_gkfd_ struct gkfd *k = tree_open("cpu-only");
	struct gkfd_signing s;

	gkfd_signing_read(k, &s);
	assert_int_equal(s.known, 0);
	assert_false(gkfd_signing_is_needed(&s));
}

static void what_is_in_brackets_is_in_force(void **state)
{
	struct fake *f;
	_cleanup_gkfd_ struct gkfd *k = fake_open(&f);

	fake_file(f, GKFD_TREE_SYS, LOCKDOWN, "[none] integrity confidentiality\n");
	assert_false(is_needed(k));
	fake_file(f, GKFD_TREE_SYS, ENFORCED, "Y\n");
	assert_true(is_needed(k));
}

static void nonsense_is_not_known(void **state)
{
	static const char *const texts[] = {
		"", "none", "[", "[]", "]none[", "[none", "[a-word-that-is-longer-than-any]"
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct fake *f;
		_cleanup_gkfd_ struct gkfd *k = fake_open(&f);
		struct gkfd_signing s;

		fake_file(f, GKFD_TREE_SYS, LOCKDOWN, texts[i]);
		fake_file(f, GKFD_TREE_SYS, SECURE_BOOT, "no");
		fake_file(f, GKFD_TREE_SYS, ENFORCED, "");
		gkfd_signing_read(k, &s);
		assert_int_equal(s.known, 0);
		assert_false(gkfd_signing_is_needed(&s));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secure_boot_and_lockdown_are_told),
		cmocka_unit_test(a_machine_that_tells_nothing_asks_for_nothing),
		cmocka_unit_test(what_is_in_brackets_is_in_force),
		cmocka_unit_test(nonsense_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
