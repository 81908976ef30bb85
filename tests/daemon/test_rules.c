/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>
#include <string.h>

#include "cmd/gpreemptd/config_internal.h"

#define HEX16 "0123456789abcdef"
#define ID HEX16 HEX16 HEX16 HEX16

static struct identity somebody(void)
{
	return (struct identity){
		.stat = { .pid = 100, .comm = "python3" },
		.uid = 1000,
		.gid = 100,
		.cgroup = (char *)(uintptr_t) "/kubepods.slice/pod7.slice/cri-containerd-" ID
					      ".scope",
		.container = ID,
		.path = (char *)(uintptr_t) "/usr/bin/python3.11",
		.command = (char *)(uintptr_t) "python3 train.py --epochs 3",
		.environment = (char *)(uintptr_t) "HOME=/x\0PARTITION=batch\0",
	};
}

/* What a configuration makes of somebody: the name of the rule, or "default". */
static const char *judged(const char *text, const struct identity *id)
{
	static char source[32];
	struct config_mistake m = { 0 };
	struct verdict v;
	struct config c;

	if (config_parse(text, strlen(text), &c, &m) < 0)
		fail_msg("line %d: %s (%s)", m.line, m.text, m.hint);
	rules_judge(&c.rules, id, &v);
	memcpy(source, v.source, sizeof(source));
	config_done(&c);
	return source;
}

static void globs_match_all_of_a_text(void **state)
{
	assert_true(match_glob("", ""));
	assert_true(match_glob("*", ""));
	assert_true(match_glob("*", "a/b"));
	assert_true(match_glob("a*c", "abbbc"));
	assert_true(match_glob("a*b*c", "a-b-bb-c"));
	assert_true(match_glob("?b", "ab"));
	assert_true(match_glob("a\\*", "a*"));
	assert_true(match_glob("**a**", "a"));
	assert_false(match_glob("", "a"));
	assert_false(match_glob("a", ""));
	assert_false(match_glob("?", ""));
	assert_false(match_glob("a", "ab"));
	assert_false(match_glob("a*c", "abcd"));
	assert_false(match_glob("a\\*", "ab"));
	assert_false(match_glob("a\\?", "ab"));
}

static void a_hostile_text_does_not_take_for_ever(void **state)
{
	static char text[65536];

	memset(text, 'a', sizeof(text) - 1);
	assert_false(match_glob("*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static void a_cgroup_is_matched_by_those_it_is_within(void **state)
{
	assert_true(match_cgroup("/", "/a/b"));
	assert_true(match_cgroup("/a", "/a"));
	assert_true(match_cgroup("/a", "/a/b"));
	assert_true(match_cgroup("/a/", "/a/b"));
	assert_true(match_cgroup("/a*", "/abc/d"));
	assert_true(match_cgroup("/s/job_?", "/s/job_7/step_0"));
	assert_true(match_cgroup("*/b", "/a/b/c"));
	assert_false(match_cgroup("/a", "/ab"));
	assert_false(match_cgroup("/a/b", "/a"));
	assert_false(match_cgroup("b", "/a/b"));
	assert_false(match_cgroup("/s/job_?", "/s/job_77/step_0"));
	assert_false(match_cgroup("", "/a"));
}

static void a_container_is_matched_by_twelve_digits_or_more(void **state)
{
	assert_true(match_container("0123456789ab", ID));
	assert_true(match_container(ID, ID));
	assert_false(match_container("0123456789a", ID));
	assert_false(match_container("1123456789ab", ID));
	assert_false(match_container(ID "0", ID));
	assert_false(match_container("0123456789ab", ""));
}

static void the_first_rule_that_matches_counts(void **state)
{
	struct identity id = somebody();

	assert_string_equal(judged("[rule a]\nuid = 1\nclass = offline\n"
				   "[rule b]\nuid = 1000\nclass = online\n"
				   "[rule c]\ncommand = *\nclass = offline\n",
				   &id),
			    "rule b");
	assert_string_equal(judged("", &id), "default");
}

static void each_thing_asked_for_must_be_so(void **state)
{
	static const char *const conditions[][2] = {
		{ "uid = 1000", "uid = 1001" },
		{ "group = 100", "group = 101" },
		{ "cgroup = /kubepods.slice", "cgroup = /system.slice" },
		{ "container = 0123456789ab", "container = ffffffffffff" },
		{ "command = python?", "command = perl" },
		{ "command = *train.py*", "command = train.py" },
		{ "path = /usr/bin/*", "path = /usr/local/*" },
		{ "environment = PARTITION=bat*", "environment = PARTITION=serving" },
		{ "environment = HOME=*", "environment = HOM=*" },
	};
	struct identity id = somebody();
	char text[200];

	for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
		snprintf(text, sizeof(text), "[rule a]\nclass = offline\n%s\n", conditions[i][0]);
		assert_string_equal(judged(text, &id), "rule a");
		snprintf(text, sizeof(text), "[rule a]\nclass = offline\n%s\n", conditions[i][1]);
		assert_string_equal(judged(text, &id), "default");
	}
	assert_string_equal(judged("[rule a]\nclass = online\nuid = 1000\ncommand = perl\n", &id),
			    "default");
}

static void what_is_not_known_matches_nothing(void **state)
{
	struct identity id = { .stat.pid = 1, .uid = 1000 };

	assert_string_equal(judged("[rule a]\nclass = offline\npath = *\n", &id), "default");
	assert_string_equal(judged("[rule a]\nclass = offline\nenvironment = A=*\n", &id),
			    "default");
	assert_string_equal(judged("[rule a]\nclass = offline\ncgroup = /\n", &id), "default");
	assert_string_equal(judged("[rule a]\nclass = offline\ncontainer = 0123456789ab\n", &id),
			    "default");
}

/* A user may make cgroups of any name below the manager of their session. */
static void nobody_becomes_online_by_naming_a_cgroup_of_their_own(void **state)
{
	static const char rule[] = "[rule a]\nclass = %s\n%s\n";
	struct identity id = somebody();
	char text[300];

	id.cgroup = (char *)(uintptr_t) "/user.slice/user-1000.slice/user@1000.service/"
					"kubepods.slice/cri-containerd-" ID ".scope";
	snprintf(text, sizeof(text), rule, "online", "cgroup = */kubepods.slice/*");
	assert_string_equal(judged(text, &id), "default");
	snprintf(text, sizeof(text), rule, "online", "container = 0123456789ab");
	assert_string_equal(judged(text, &id), "default");
	snprintf(text, sizeof(text), rule, "offline", "cgroup = */kubepods.slice/*");
	assert_string_equal(judged(text, &id), "rule a");
	snprintf(text, sizeof(text), rule, "online", "cgroup = /user.slice/user-1000.slice");
	assert_string_equal(judged(text, &id), "rule a");
	snprintf(text, sizeof(text), rule, "online",
		 "cgroup = /user.slice/user-1000.slice/user@1000.service");
	assert_string_equal(judged(text, &id), "rule a");
	snprintf(text, sizeof(text), rule, "online", "uid = 1000\ncontainer = 0123456789ab");
	assert_string_equal(judged(text, &id), "rule a");
}

/* Even where no reader of configurations has refused it. */
static void a_rule_that_anybody_could_match_raises_nobody(void **state)
{
	char all[] = "*";
	struct rule rule = { .command = all, .verdict = { .job_class = JOB_ONLINE } };
	struct rules rules = { .rules = &rule, .n = 1 };
	struct identity id = somebody();
	struct verdict v = { .job_class = JOB_ONLINE };

	rules_judge(&rules, &id, &v);
	assert_int_equal(v.job_class, JOB_UNMANAGED);
	rule.verdict.job_class = JOB_OFFLINE;
	rules_judge(&rules, &id, &v);
	assert_int_equal(v.job_class, JOB_OFFLINE);
}

static void environments_are_only_wanted_where_a_rule_asks(void **state)
{
	struct config_mistake m;
	static const char without[] = "[rule a]\nuid = 1\nclass = none\n";
	static const char with[] = "[rule a]\nenvironment = A=b\nclass = offline\n";
	struct config c;

	assert_int_equal(config_parse(without, strlen(without), &c, &m), 0);
	assert_false(identity_files(&c.rules) & PROC_BIT(PROC_ENVIRON));
	config_done(&c);
	assert_int_equal(config_parse(with, strlen(with), &c, &m), 0);
	assert_true(identity_files(&c.rules) & PROC_BIT(PROC_ENVIRON));
	config_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(globs_match_all_of_a_text),
		cmocka_unit_test(a_hostile_text_does_not_take_for_ever),
		cmocka_unit_test(a_cgroup_is_matched_by_those_it_is_within),
		cmocka_unit_test(a_container_is_matched_by_twelve_digits_or_more),
		cmocka_unit_test(the_first_rule_that_matches_counts),
		cmocka_unit_test(each_thing_asked_for_must_be_so),
		cmocka_unit_test(what_is_not_known_matches_nothing),
		cmocka_unit_test(nobody_becomes_online_by_naming_a_cgroup_of_their_own),
		cmocka_unit_test(a_rule_that_anybody_could_match_raises_nobody),
		cmocka_unit_test(environments_are_only_wanted_where_a_rule_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
