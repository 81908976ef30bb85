/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/gpreemptd/metrics.h"
#include "cmd/gpreemptd/run_dir.h"
#include "tests/daemon/fake_figures.h"
#include "util/macros.h"

static char *written(const struct control *control)
{
	char *text = NULL;
	size_t len = 0;

	assert_int_equal(metrics_write(fake_scheduler(), control, &text, &len), 0);
	assert_int_equal(strlen(text), len);
	return text;
}

static void has_line(const char *text, const char *line)
{
	char whole[400];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(text, whole))
		fail_msg("no line %s", line);
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		n++;
	return n;
}

static void figures_are_in_base_units(void **state)
{
	_cleanup_free_ char *text = written(fake_control());

	has_line(text, "gpreempt_preemptions_total 7");
	has_line(text, "gpreempt_info{version=\"" GPREEMPT_VERSION
		       "\",backend=\"model\",level=\"K2\",policy=\"share\"} 1");
	has_line(text, "gpreempt_job_held_seconds_total{gpu=\"1000\",class=\"online\","
		       "process=\"2002/python3\",container=\"pod2\"} 1.23456789");
	has_line(text, "gpreempt_job_stolen_seconds_total{gpu=\"1000\",class=\"online\","
		       "process=\"2002/python3\",container=\"pod2\"} 1");
	has_line(text, "gpreempt_job_target_seconds{gpu=\"1000\",class=\"online\","
		       "process=\"2002/python3\",container=\"pod2\"} 0.02");
	has_line(text, "gpreempt_job_share_ratio{gpu=\"1000\",class=\"online\","
		       "process=\"2002/python3\",container=\"pod2\"} 0.125");
	has_line(text, "gpreempt_gpu_tripped{gpu=\"1001\"} 1");
	has_line(text, "gpreempt_gpu_slots_used{gpu=\"1000\",class=\"offline\"} 0");
	has_line(text, "gpreempt_control_connections_total 12");
}

static void every_job_and_gpu_is_there_once(void **state)
{
	_cleanup_free_ char *text = written(fake_control());

	assert_int_equal(count(text, "\ngpreempt_job_held{"), FAKE_JOBS);
	assert_int_equal(count(text, "\ngpreempt_gpu_info{"), FAKE_GPUS);
	assert_int_equal(count(text, "# TYPE gpreempt_gpu_slots_used "), 1);
	assert_int_equal(count(text, "# TYPE gpreempt_job_held "), 1);
}

static void of_work_that_is_not_seen_there_are_no_figures(void **state)
{
	static const char *const families[] = { "run_seconds_total", "stolen_seconds_total",
						"share_ratio", "waiting" };
	_cleanup_free_ char *text = written(NULL);

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		char part[64];

		snprintf(part, sizeof(part), "\ngpreempt_job_%s{", families[i]);
		assert_int_equal(count(text, part), FAKE_JOBS - 1);
	}
	has_line(text, "gpreempt_job_held_seconds_total{gpu=\"1000\",class=\"none\","
		       "process=\"2003/python3\",container=\"pod3\"} 1.23456789");
}

static void without_a_socket_its_figures_are_left_out(void **state)
{
	_cleanup_free_ char *text = written(NULL);

	assert_int_equal(count(text, "gpreempt_control_"), 0);
	assert_true(count(text, "gpreempt_preemptions_total") > 0);
}

static void names_of_programs_break_no_line(void **state)
{
	_cleanup_free_ char *text = written(NULL);

	has_line(text, "gpreempt_job_held{gpu=\"1000\",class=\"offline\",process=\"2001/"
		       "\\\"\\\\\\n??\xc3\xa4\xe2\x82\xac.....\",container=\"pod1\"} 0");
	has_line(text, "gpreempt_gpu_info{gpu=\"1000\",name=\"AMD \\\"Instinct\\\" \\\\ 0\"} 1");
}

static void buckets_count_all_below_them(void **state)
{
	_cleanup_free_ char *text = written(NULL);

	has_line(text, "gpreempt_suspend_seconds_bucket{le=\"0.000001\"} 0");
	has_line(text, "gpreempt_suspend_seconds_bucket{le=\"0.000002\"} 1");
	has_line(text, "gpreempt_suspend_seconds_bucket{le=\"0.0005\"} 2");
	has_line(text, "gpreempt_suspend_seconds_bucket{le=\"10\"} 2");
	has_line(text, "gpreempt_suspend_seconds_bucket{le=\"+Inf\"} 3");
	has_line(text, "gpreempt_suspend_seconds_sum 20.0003015");
	has_line(text, "gpreempt_suspend_seconds_count 3");
}

/* ---- the file ---- */

static char dir[64], path[96];

static int new_dir(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/gpreempt-metrics-XXXXXX");
	snprintf(path, sizeof(path), "%s/metrics.prom", mkdtemp(dir));
	return 0;
}

static int end_dir(void **state)
{
	unlink(path);
	return rmdir(dir);
}

static void a_reader_keeps_the_file_it_has_open(void **state)
{
	_cleanup_close_ int fd = -1;
	char text[16] = "";
	struct stat st;

	umask(077);
	assert_int_equal(run_dir_replace(path, "old\n", 4), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(run_dir_replace(path, "new\n", 4), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "old\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void a_link_in_its_way_is_not_written_through(void **state)
{
	char beside[120], victim[120];
	struct stat st;

	snprintf(beside, sizeof(beside), "%s.new", path);
	snprintf(victim, sizeof(victim), "%s/victim", dir);
	assert_int_equal(symlink(victim, beside), 0);
	assert_int_equal(run_dir_replace(path, "new\n", 4), 0);
	assert_int_equal(lstat(victim, &st), -1);
	assert_int_equal(lstat(beside, &st), -1);
}

static void what_cannot_be_written_leaves_nothing_behind(void **state)
{
	assert_int_equal(run_dir_replace("/nonexistent/metrics.prom", "x", 1), -ENOENT);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(run_dir_replace(path, "x", 1), -EISDIR);
	assert_int_equal(rmdir(path), 0);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, new_dir, end_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_in_base_units),
		cmocka_unit_test(every_job_and_gpu_is_there_once),
		cmocka_unit_test(of_work_that_is_not_seen_there_are_no_figures),
		cmocka_unit_test(without_a_socket_its_figures_are_left_out),
		cmocka_unit_test(names_of_programs_break_no_line),
		cmocka_unit_test(buckets_count_all_below_them),
		WITH_DIR(a_reader_keeps_the_file_it_has_open),
		WITH_DIR(a_link_in_its_way_is_not_written_through),
		WITH_DIR(what_cannot_be_written_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
