/* SPDX-License-Identifier: MIT */
/* How the scheduler in the driver is spoken to: rights, what is refused, and what is told. */
#include <errno.h>
#include <string.h>

#include "core/policy/gpol.h"
#include "gpu/model/ext.h"
#include "tests/model/test_ext_rig.h"
#include "util/macros.h"

#define ANY KFD_GPREEMPT_ANY_GPU
#define STATE "kernel/debug/" KFD_GPREEMPT_DEVICE

static int set(struct rig *r, uint64_t file, uint32_t gpu_id, uint32_t flags, const char *policy)
{
	struct kfd_gpreempt_monitor a = { .gpu_id = gpu_id, .flags = flags };

	memcpy(a.policy, policy, strlen(policy));
	return ext_ioctl(r, file, KFD_GPREEMPT_SET_MONITOR, &a);
}

static int turn_on(struct rig *r, uint64_t file)
{
	return set(r, file, ANY, KFD_GPREEMPT_MONITOR_ON, "");
}

static int reserve(struct rig *r, uint64_t file, uint32_t online, uint32_t offline)
{
	struct kfd_gpreempt_reservation a = {
		.gpu_id = ANY,
		.online_permille = online,
		.offline_permille = offline,
	};

	return ext_ioctl(r, file, KFD_GPREEMPT_SET_HQD_RESERVATION, &a);
}

static struct kfd_gpreempt_class class_of(pid_t pid, uint32_t class)
{
	return (struct kfd_gpreempt_class){
		.pid = (uint32_t)pid,
		.queue_id = ALL,
		.class = class,
	};
}

static int set_class(struct rig *r, uint64_t file, uint32_t class)
{
	struct kfd_gpreempt_class a = class_of(TARGET, class);

	return ext_ioctl(r, file, KFD_GPREEMPT_SET_CLASS, &a);
}

/* By TARGET itself, who is no administrator. */
static int set_own(struct rig *r, uint32_t class)
{
	struct kfd_gpreempt_class a = class_of(0, class);

	return rig_ioctl(r, r->target, KFD_GPREEMPT_SET_CLASS, &a);
}

static void expect_state(struct rig *r, const char *line, bool there)
{
	_cleanup_free_ char *text = rig_file(r, GKFD_TREE_SYS, STATE);

	assert_non_null(text);
	assert_int_equal(strstr(text, line) != NULL, there);
}

static bool is_told_to_schedule(struct rig *r, uint64_t file)
{
	struct kfd_gpreempt_version v = { 0 };

	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_GET_VERSION, &v), 0);
	return v.abilities & KFD_GPREEMPT_SCHEDULES;
}

/* ---- on and off ---- */

static void the_policies_are_those_of_the_core(void **state)
{
	size_t n = 0;

	for (size_t i = 0; gpol_all[i]; i++) {
		bool found = false;

		for (size_t j = 0; model_ext_policies[j]; j++)
			found |= !strcmp(gpol_all[i]->name, model_ext_policies[j]);
		assert_true(found);
		n++;
	}
	for (size_t j = 0; model_ext_policies[j]; j++)
		n--;
	assert_int_equal(n, 0);
}

static void it_is_on_until_it_is_turned_off(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1), second;

	expect_state(r, "scheduler on", false);
	assert_false(is_told_to_schedule(r, file));
	assert_int_equal(set(r, file, ANY, KFD_GPREEMPT_MONITOR_ON, "share"), 0);
	expect_state(r, "scheduler off", false);
	expect_state(r, "policy share", true);
	model_ext_close(r->m, file);
	second = ext_open(r, r->daemon);
	assert_true(is_told_to_schedule(r, second));
	assert_int_equal(set(r, second, ANY, 0, ""), 0);
	expect_state(r, "scheduler on", false);
	assert_int_equal(set(r, second, ANY, 0, ""), 0);
}

static void nonsense_is_refused(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	struct kfd_gpreempt_monitor bad[] = {
		{ .flags = 0x10 },
		{ .flags = KFD_GPREEMPT_MONITOR_ON | KFD_GPREEMPT_MONITOR_KICK },
		{ .flags = KFD_GPREEMPT_MONITOR_ON, .policy = "nobody" },
		{ .flags = KFD_GPREEMPT_MONITOR_ON, .pad = 1 },
		{ .flags = KFD_GPREEMPT_MONITOR_ON, .interval_us = 99 },
		{ .flags = KFD_GPREEMPT_MONITOR_ON, .critical_interval_us = 1000001 },
		{ .flags = KFD_GPREEMPT_MONITOR_ON, .turn_ms = 60001 },
		{ .flags = KFD_GPREEMPT_MONITOR_ON, .hold_max_ms = 60001 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		bad[i].gpu_id = ANY;
		assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SET_MONITOR, &bad[i]), -EINVAL);
	}
	assert_int_equal(set(r, file, 77, KFD_GPREEMPT_MONITOR_ON, ""), -ENODEV);
	assert_int_equal(set(r, file, ANY, KFD_GPREEMPT_MONITOR_KICK, ""), -ENOENT);
	assert_int_equal(set(r, file, ANY, KFD_GPREEMPT_MONITOR_REARM, ""), -ENOENT);
	assert_int_equal(reserve(r, file, 100, 800), -ENOENT);
	assert_int_equal(turn_on(r, file), 0);
	assert_int_equal(set(r, file, ANY, KFD_GPREEMPT_MONITOR_REARM, ""), 0);
	assert_int_equal(reserve(r, file, 501, 500), -EINVAL);
	assert_int_equal(reserve(r, file, 1001, 0), -EINVAL);
}

static void what_is_reserved_outlives_other_settings_but_not_the_scheduler(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);

	assert_int_equal(turn_on(r, file), 0);
	expect_state(r, "online_permille 0\noffline_permille 1000", true);
	assert_int_equal(reserve(r, file, 100, 800), 0);
	assert_int_equal(set(r, file, ANY, KFD_GPREEMPT_MONITOR_ON, "rotate"), 0);
	expect_state(r, "online_permille 100\noffline_permille 800", true);
	assert_int_equal(reserve(r, file, 0, 0), 0);
	expect_state(r, "offline_permille 1000", true);
	assert_int_equal(reserve(r, file, 100, 800), 0);
	assert_int_equal(set(r, file, ANY, 0, ""), 0);
	assert_int_equal(turn_on(r, file), 0);
	expect_state(r, "online_permille 0\noffline_permille 1000", true);
}

static void only_an_administrator_turns_it(void **state)
{
	struct rig *r = *state;
	struct model_task user = { OTHER, OTHER };
	struct kfd_gpreempt_monitor a = { .gpu_id = ANY, .flags = KFD_GPREEMPT_MONITOR_ON };
	struct kfd_gpreempt_reservation b = { .gpu_id = ANY };
	uint64_t file = ext_open(r, user);

	assert_int_equal(model_ext_ioctl(r->m, user, file, KFD_GPREEMPT_SET_MONITOR, &a), -EPERM);
	assert_int_equal(model_ext_ioctl(r->m, user, file, KFD_GPREEMPT_SET_HQD_RESERVATION, &b),
			 -EPERM);
}

/* ---- who is who ---- */

static void anybody_may_make_less_of_himself(void **state)
{
	struct rig *r = *state;
	struct kfd_gpreempt_class more = class_of(0, KFD_GPREEMPT_OFFLINE);

	ext_rig(r, 1);
	assert_int_equal(set_own(r, KFD_GPREEMPT_OFFLINE), 0);
	assert_int_equal(set_own(r, KFD_GPREEMPT_NO_CLASS), 0);
	assert_int_equal(set_own(r, KFD_GPREEMPT_ONLINE), -EPERM);
	assert_int_equal(set_own(r, 3), -EINVAL);
	more.priority = 1;
	assert_int_equal(rig_ioctl(r, r->target, KFD_GPREEMPT_SET_CLASS, &more), -EPERM);
}

static void what_an_administrator_set_the_owner_cannot_clear(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);

	assert_int_equal(set_class(r, file, KFD_GPREEMPT_OFFLINE), 0);
	assert_int_equal(set_own(r, KFD_GPREEMPT_NO_CLASS), -EPERM);
	assert_int_equal(set_class(r, file, KFD_GPREEMPT_NO_CLASS), 0);
	assert_int_equal(set_own(r, KFD_GPREEMPT_OFFLINE), 0);
}

static void a_class_is_of_somebody(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	struct model_task user = { OTHER, OTHER };
	struct kfd_gpreempt_class a = class_of(9999, KFD_GPREEMPT_OFFLINE);

	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SET_CLASS, &a), -ESRCH);
	a = class_of(TARGET, KFD_GPREEMPT_OFFLINE);
	a.start_ticks = 1;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SET_CLASS, &a), -ESRCH);
	a = class_of(TARGET, KFD_GPREEMPT_OFFLINE);
	assert_int_equal(model_ext_ioctl(r->m, user, ext_open(r, user), KFD_GPREEMPT_SET_CLASS, &a),
			 -EPERM);
	a.queue_id = 77;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SET_CLASS, &a), -ENOENT);
}

static void jobs_are_counted_by_their_class(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 2);
	struct kfd_gpreempt_class one = class_of(TARGET, KFD_GPREEMPT_ONLINE);

	assert_int_equal(turn_on(r, file), 0);
	assert_int_equal(set_class(r, file, KFD_GPREEMPT_OFFLINE), 0);
	expect_state(r, "online 0\noffline 1", true);
	one.queue_id = 0;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SET_CLASS, &one), 0);
	expect_state(r, "online 1\noffline 1", true);
}

static void a_hint_is_for_who_is_online(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	struct kfd_gpreempt_hint a = { .pid = TARGET, .gpu_id = ANY };

	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_HINT, &a), -EPERM);
	assert_int_equal(set_class(r, file, KFD_GPREEMPT_ONLINE), 0);
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_HINT, &a), 0);
	a.gpu_id = 77;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_HINT, &a), -ENODEV);
	a.gpu_id = ANY;
	a.ahead_ns = NSEC_PER_SEC + 1;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_HINT, &a), -EINVAL);
	a.ahead_ns = 0;
	a.for_ns = 10 * NSEC_PER_SEC + 1;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_HINT, &a), -EINVAL);
}

static void not_to_be_preempted_is_more_than_others_have(void **state)
{
	struct rig *r = *state;
	uint64_t file = ext_rig(r, 1);
	struct kfd_gpreempt_policy a = { .pid = TARGET, .flags = 0x8 };

	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SET_QUEUE_POLICY, &a), -EINVAL);
	a.flags = KFD_GPREEMPT_LAZY_ACTIVATION;
	assert_int_equal(rig_ioctl(r, r->target, KFD_GPREEMPT_SET_QUEUE_POLICY, &a), -EPERM);
	a.flags |= KFD_GPREEMPT_PREEMPTIBLE;
	assert_int_equal(rig_ioctl(r, r->target, KFD_GPREEMPT_SET_QUEUE_POLICY, &a), 0);
	a.flags = 0;
	assert_int_equal(ext_ioctl(r, file, KFD_GPREEMPT_SET_QUEUE_POLICY, &a), 0);
}

static void without_the_extension_there_is_no_file(void **state)
{
	struct rig *r = *state;

	assert_null(rig_file(r, GKFD_TREE_SYS, STATE));
}

#define EXT_TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup_ext, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_policies_are_those_of_the_core),
		EXT_TEST(it_is_on_until_it_is_turned_off),
		EXT_TEST(nonsense_is_refused),
		EXT_TEST(what_is_reserved_outlives_other_settings_but_not_the_scheduler),
		EXT_TEST(only_an_administrator_turns_it),
		EXT_TEST(anybody_may_make_less_of_himself),
		EXT_TEST(what_an_administrator_set_the_owner_cannot_clear),
		EXT_TEST(a_class_is_of_somebody),
		EXT_TEST(jobs_are_counted_by_their_class),
		EXT_TEST(a_hint_is_for_who_is_online),
		EXT_TEST(not_to_be_preempted_is_more_than_others_have),
		cmocka_unit_test_setup_teardown(without_the_extension_there_is_no_file, rig_setup,
						rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
