/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/gpreemptd/config_internal.h"

#define MS NSEC_PER_MSEC
#define S NSEC_PER_SEC

static struct config parse(const char *text)
{
	struct config_mistake m = { 0 };
	struct config c;
	int r = config_parse(text, strlen(text), &c, &m);

	if (r < 0)
		fail_msg("line %d: %s (%s)", m.line, m.text, m.hint);
	return c;
}

static void without_a_file_there_are_defaults_the_engine_accepts(void **state)
{
	struct config_mistake m;
	struct config c;

	assert_int_equal(config_read(NULL, &c, &m), 0);
	assert_ptr_equal(c.engine.policy, &gpol_priority);
	assert_int_equal(c.engine.hold_max_ns, 10 * S);
	assert_int_equal(c.engine.hint_ns, 10 * MS);
	assert_int_equal(c.attach_age_ns, 5 * S);
	assert_true(c.engine.interval_ns && c.engine.critical_interval_ns &&
		    c.engine.idle_interval_ns);
	assert_false(c.ration_slots);
	assert_string_equal(c.group, "gpreempt");
	assert_int_equal(c.rules.n, 0);
	assert_int_equal(c.rules.fallback.job_class, JOB_UNMANAGED);
	assert_string_equal(c.rules.fallback.source, "default");
	config_done(&c);
}

static void every_section_is_read(void **state)
{
	struct config c = parse("[policy]\nname = share\nturn = 50ms\n"
				"[look]\ninterval = 2ms\nscan = 1s\n"
				"[hold]\nlongest = 3 s\ncycles_per_second = 0\n"
				"[slots]\nration = yes\nonline = 12.5 %\noffline = 50%\n"
				"[hint]\nexpires = 5ms\n"
				"[control]\ngroup = ops\nclients = 30\n"
				"[metrics]\nevery = 60s\n"
				"[default]\nclass = offline\n");

	assert_ptr_equal(c.engine.policy, &gpol_share);
	assert_int_equal(c.engine.params.turn_ns, 50 * MS);
	assert_int_equal(c.engine.interval_ns, 2 * MS);
	assert_int_equal(c.scan_ns, 1 * S);
	assert_int_equal(c.engine.hold_max_ns, 3 * S);
	assert_int_equal(c.engine.cycles_per_s, 0);
	assert_true(c.ration_slots);
	assert_int_equal(c.engine.online_permille, 125);
	assert_int_equal(c.engine.offline_permille, 500);
	assert_int_equal(c.engine.hint_ns, 5 * MS);
	assert_string_equal(c.group, "ops");
	assert_int_equal(c.clients, 30);
	assert_int_equal(c.metrics_ns, 60 * S);
	assert_int_equal(c.rules.fallback.job_class, JOB_OFFLINE);
	config_done(&c);
}

static void rules_are_kept_in_order_with_all_they_say(void **state)
{
	struct config c = parse("[rule serving]\nuser = root\ncgroup = /kubepods.slice/*\n"
				"class = online\npriority = 200\nlatency_critical = yes\n"
				"target = 20ms\n"
				"[rule training]\ncommand = *train*\nclass = offline\ngang = ddp\n"
				"weight = 3\nminimum = 10 %\nlongest_wait = 2s\nlazy = yes\n"
				"auto_deactivate = yes\nenvironment = A=b=*\n");
	const struct rule *serving = &c.rules.rules[0], *training = &c.rules.rules[1];

	assert_int_equal(c.rules.n, 2);
	assert_string_equal(serving->verdict.source, "rule serving");
	assert_true(serving->has_uid);
	assert_int_equal(serving->uid, 0);
	assert_string_equal(serving->cgroup, "/kubepods.slice/*");
	assert_int_equal(serving->verdict.job_class, JOB_ONLINE);
	assert_int_equal(serving->verdict.priority, 200);
	assert_true(serving->verdict.critical);
	assert_int_equal(serving->verdict.target_ns, 20 * MS);
	assert_int_equal(training->verdict.job_class, JOB_OFFLINE);
	assert_string_equal(training->verdict.gang, "ddp");
	assert_int_equal(training->verdict.weight, 3);
	assert_int_equal(training->verdict.min_permille, 100);
	assert_int_equal(training->verdict.wait_bound_ns, 2 * S);
	assert_true(training->verdict.lazy && training->verdict.auto_deactivate);
	assert_string_equal(training->variable, "A");
	assert_string_equal(training->value, "b=*");
	config_done(&c);
}

#define WHOM "user = root\n"
static const struct {
	const char *text;
	int line;
	const char *wrong, *hint; /* parts of what is said */
} mistakes[] = {
	{ "[polcy]\n", 1, "no section [polcy]", "[policy]" },
	{ "[rules x]\n", 1, "no section", "[rule NAME]" },
	{ "[weather]\n", 1, "no section [weather]", "[default]" },
	{ "\n[policy]\n[hold]\n[policy]\n", 4, "two sections [policy]", "" },
	{ "name = share\n", 1, "in no section", "" },
	{ "[look]\ninterval = 5ms\nintervall = 5ms\n", 3, "no key 'intervall'", "'interval'" },
	{ "[look]\nlongest = 5ms\n", 2, "no key 'longest'", "[hold]" },
	{ "[hint]\nzzzzzzzzzzzz = 1\n", 2, "no key", "expires" },
	{ "[hold]\nlongest = 5s\nlongest = 6s\n", 3, "'longest' is there twice", "" },
	{ "[hold]\nlongest = 5\n", 2, "is not a duration", "" },
	{ "[hold]\nlongest = 5 min\n", 2, "is not a duration", "" },
	{ "[hold]\nlongest =\n", 2, "has no value", "" },
	{ "[hold]\nlongest = 0s\n", 2, "out of range", "10ms to 60s" },
	{ "[hold]\nlongest = 61s\n", 2, "out of range", "10ms to 60s" },
	{ "[hold]\nlongest = 99999999999999999999s\n", 2, "too large", "" },
	{ "[look]\ninterval = 0s\n", 2, "out of range", "100us" },
	{ "[slots]\nonline = 101 %\n", 2, "out of range", "100%" },
	{ "[slots]\nration = maybe\n", 2, "neither yes nor no", "" },
	{ "[policy]\nname = best\n", 2, "no policy 'best'", "priority" },
	{ "[control]\nclients = 0\n", 2, "out of range", "1 to 1024" },
	{ "[control]\ngroup = a b\n", 2, "has a blank", "" },
	{ "[default]\nclass = online\n", 2, "nobody is online by default", "[rule NAME]" },
	{ "[default]\nclass = best\n", 2, "no class 'best'", "offline and none" },
	{ "[hold\n", 1, "'[' without ']'", "" },
	{ "[hold]\nlongest 5s\n", 2, "nor 'key = value'", "" },
	{ "[look]\ncritical_interval = 10ms\n", 0, "in no order", "critical_interval <=" },
	{ "[slots]\nonline = 60 %\noffline = 60 %\n", 0, "more than all there are", "<= 100 %" },
	{ "[control]\nclients = 5\nclients_per_user = 6\n", 0, "one user may have more",
	  "clients_per_user <= clients" },
	{ "[rule ]\n", 1, "a rule's name is", "" },
	{ "[rule two words]\n", 1, "a rule's name is", "" },
	{ "[rule aaaaaaaaaaaaaaaaaaaaaaaa]\n", 1, "a rule's name is", "" },
	{ "[rule a]\n" WHOM "class = offline\n[rule a]\n", 4, "two rules 'a'", "" },
	{ "\n[rule a]\n" WHOM "[hold]\n", 2, "gives no class", "class =" },
	{ "\n[rule a]\nclass = offline\n", 2, "matches nobody", "say whom" },
	{ "[rule a]\nclass = online\ncommand = vllm\n", 1, "anybody could make this match", "uid" },
	{ "[rule a]\nclass = online\nenvironment = A=b\npath = /x\n", 1, "anybody could", "user" },
	{ "[rule a]\nclass = fast\n", 2, "no class 'fast'", "online, offline and none" },
	{ "[rule a]\n" WHOM "uid = 5\nclass = none\n", 3, "has one user", "" },
	{ "[rule a]\nuid = x\n", 2, "not the number of a user", "" },
	{ "[rule a]\nuid = 4294967295\n", 2, "not the number of a user", "" },
	{ "[rule a]\nuser = no-such-user-here\n", 2, "no user 'no-such-user-here'", "uid" },
	{ "[rule a]\ngroup = no-such-group-here\n", 2, "no group", "" },
	{ "[rule a]\ncontainer = 0123\n", 2, "not the id of a container", "12" },
	{ "[rule a]\ncontainer = 0123456789AB\n", 2, "not the id of a container", "12" },
	{ "[rule a]\nenvironment = NAME\n", 2, "is not NAME=PATTERN", "SLURM" },
	{ "[rule a]\npriority = 256\n", 2, "out of range", "0 to 255" },
	{ "[rule a]\n" WHOM "class = online\nweight = 2\n", 1, "'weight' says nothing", "" },
	{ "[rule a]\n" WHOM "class = offline\ntarget = 2ms\n", 1, "'target' says nothing", "" },
	{ "[rule a]\nprioriti = 1\n", 2, "no key 'prioriti'", "'priority'" },
};

static void every_mistake_is_told_with_its_line_and_a_way_out(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
		struct config c = { .clients = 77 };
		struct config_mistake m = { 0 };
		const char *text = mistakes[i].text;

		if (config_parse(text, strlen(text), &c, &m) != -EINVAL)
			fail_msg("no mistake in:\n%s", text);
		if (m.line != mistakes[i].line || !strstr(m.text, mistakes[i].wrong) ||
		    !strstr(m.hint, mistakes[i].hint) || (!*mistakes[i].hint && *m.hint))
			fail_msg("line %d: %s (%s) of:\n%s", m.line, m.text, m.hint, text);
		assert_int_equal(c.clients, 77);
	}
}

static void no_more_rules_are_taken_than_there_is_room_for(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct config_mistake m = { 0 };
	struct config c;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	for (int i = 0; i <= CONFIG_MAX_RULES; i++)
		fprintf(out, "[rule r%d]\nuid = 1\nclass = offline\n", i);
	fclose(out);
	assert_int_equal(config_parse(text, len, &c, &m), -EINVAL);
	assert_int_equal(m.line, 3 * CONFIG_MAX_RULES + 1);
}

/* ---- the file itself ---- */

struct file {
	char path[64];
};

static int new_file(void **state)
{
	static const char text[] = "[control]\nclients = 99\n";
	static struct file f;
	int fd;

	snprintf(f.path, sizeof(f.path), "/tmp/gpreempt-config-XXXXXX");
	fd = mkstemp(f.path);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return -1;
	close(fd);
	*state = &f;
	return 0;
}

static int end_file(void **state)
{
	struct file *f = *state;

	return unlink(f->path);
}

static void a_file_is_read(void **state)
{
	struct file *f = *state;
	struct config_mistake m;
	struct config c;

	assert_int_equal(config_read(f->path, &c, &m), 0);
	assert_int_equal(c.clients, 99);
	config_done(&c);
}

static void a_file_that_anybody_may_write_is_refused(void **state)
{
	struct file *f = *state;
	struct config_mistake m = { .line = 7 };
	struct config c;

	assert_int_equal(chmod(f->path, 0646), 0);
	assert_int_equal(config_read(f->path, &c, &m), -EINVAL);
	assert_int_equal(m.line, 0);
	assert_non_null(strstr(m.text, "anybody may write"));
	assert_string_equal(m.hint, "chmod o-w");
}

static void a_file_of_another_user_is_refused(void **state)
{
	struct file *f = *state;
	struct config_mistake m;
	struct config c;

	if (geteuid() != 0)
		return; /* only root can give a file away */
	assert_int_equal(chown(f->path, 12345, 12345), 0);
	assert_int_equal(config_read(f->path, &c, &m), -EINVAL);
	assert_non_null(strstr(m.text, "another user"));
}

static void a_file_too_large_is_refused(void **state)
{
	struct file *f = *state;
	struct config_mistake m;
	struct config c;

	assert_int_equal(truncate(f->path, CONFIG_MAX_BYTES + 1), 0);
	assert_int_equal(config_read(f->path, &c, &m), -EINVAL);
	assert_non_null(strstr(m.text, "larger"));
}

static void no_file_is_no_mistake_but_an_error(void **state)
{
	struct config_mistake m;
	struct config c;

	assert_int_equal(config_read("/nonexistent/gpreempt.conf", &c, &m), -ENOENT);
}

#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, new_file, end_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_file_there_are_defaults_the_engine_accepts),
		cmocka_unit_test(every_section_is_read),
		cmocka_unit_test(rules_are_kept_in_order_with_all_they_say),
		cmocka_unit_test(every_mistake_is_told_with_its_line_and_a_way_out),
		cmocka_unit_test(no_more_rules_are_taken_than_there_is_room_for),
		WITH_FILE(a_file_is_read),
		WITH_FILE(a_file_that_anybody_may_write_is_refused),
		WITH_FILE(a_file_of_another_user_is_refused),
		WITH_FILE(a_file_too_large_is_refused),
		cmocka_unit_test(no_file_is_no_mistake_but_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
