/* SPDX-License-Identifier: MIT */
/*
 * What gpreempt-top shows, held against the files in golden/. With GOLDEN_WRITE set they are
 * written instead: look at the difference before you keep it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cmd/gpreempt-top/lines.h"
#include "cmd/gpreempt-top/view.h"

static struct gpreempt_daemon_gpu gpus[3];
static struct gpreempt_daemon_job jobs[4];
static struct snapshot snapshot;

static void add_history(struct gpreempt_daemon_job *j, uint8_t from, uint8_t step)
{
	for (size_t i = 0; i < GPREEMPT_JOB_HISTORY; i++)
		j->history[i] = (uint8_t)(from - i * step);
}

static int busy_machine(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(gpus); i++) {
		gpus[i] = (struct gpreempt_daemon_gpu){
			.gpu_id = (uint32_t)(51110 + 100 * i),
			.slots = 24,
			.slots_online = 2,
			.slots_offline = 10,
			.cycles = 246,
			.name = "AMD Instinct MI308X",
		};
	}
	jobs[0] = (struct gpreempt_daemon_job){
		.pid = 1001, .gpu_id = 51210, .job_class = GPREEMPT_CLASS_OFFLINE, .held = true,
		.attached = true, .working = true, .waiting = true, .queues = 10, .comm = "train",
		.detailed = true, .preempted = 123, .held_ns = 4200 * NSEC_PER_MSEC,
		.longest_wait_ns = 12500 * NSEC_PER_USEC, .because = 1002, .share_permille = 830,
		.source = "default",
	};
	add_history(&jobs[0], 250, 18);
	jobs[1] = (struct gpreempt_daemon_job){
		.pid = 1002, .gpu_id = 51210, .job_class = GPREEMPT_CLASS_ONLINE, .priority = 10,
		.critical = true, .working = true, .queues = 2, .comm = "infer", .detailed = true,
		.longest_wait_ns = 310 * NSEC_PER_USEC, .share_permille = 174,
		.source = "rule serving", .container = "4d1f0c2ab98e",
	};
	add_history(&jobs[1], 40, 2);
	jobs[2] = (struct gpreempt_daemon_job){
		.pid = 77, .gpu_id = 51210, .comm = "somebody else's", .queues = 4,
		.job_class = GPREEMPT_CLASS_OFFLINE,
	};
	jobs[3] = (struct gpreempt_daemon_job){
		.pid = 4194304, .gpu_id = 51110, .comm = "b\033[2J\xc3\xbc", .queues = 1,
		.refused = true, .detailed = true,
		.why = "its ROCm runtime is too old for K2", .held_ns = 7200 * NSEC_PER_SEC,
	};
	snapshot = (struct snapshot){
		.seen = true,
		.gpus = gpus,
		.n_gpus = ARRAY_SIZE(gpus),
		.jobs = jobs,
		.n_jobs = ARRAY_SIZE(jobs),
		.status = {
			.privileged = true, .guarded = true, .modelled = true, .online = 1,
			.offline = 2, .held = 1, .attached = 1, .preemptions = 123,
			.detection = { 123, 210 * NSEC_PER_USEC, 1040 * NSEC_PER_USEC, 0 },
			.suspend = { 123, 95 * NSEC_PER_USEC, 400 * NSEC_PER_USEC, 0 },
			.started_ns = NSEC_PER_SEC, .now_ns = 7300 * NSEC_PER_SEC,
			.seen_by_watch = 118, .seen_by_look = 2, .seen_by_hint = 3,
			.policy = "wait", .backend = "model", .version = "0.1.0",
		},
	};
	return 0;
}

static char *read_golden(const char *name)
{
	char path[512], *text = calloc(1, 65536);
	_cleanup_fclose_ FILE *f = NULL;

	assert_non_null(text);
	snprintf(path, sizeof(path), "%s/%s.txt", getenv("GOLDEN"), name);
	f = fopen(path, "r");
	if (f && fread(text, 1, 65535, f) == 0)
		text[0] = '\0';
	return text;
}

static void write_golden(const char *name, const char *text)
{
	char path[512];
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "%s/%s.txt", getenv("GOLDEN"), name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
}

static size_t columns_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* The look of each line stands before it: what would be red can be seen to be. */
static char *as_text(const struct view *v)
{
	static const char marks[] = { [VIEW_PLAIN] = ' ',  [VIEW_TITLE] = 'T', [VIEW_HEADING] = 'H',
				      [VIEW_GPU] = 'G',	   [VIEW_ONLINE] = 'o', [VIEW_HELD] = 'h',
				      [VIEW_DIM] = '.',	   [VIEW_ALARM] = '!', [VIEW_KEYS] = 'K' };
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	for (size_t i = 0; i < v->n; i++)
		fprintf(f, "%c|%s|\n", marks[v->lines[i].look], v->lines[i].text);
	fclose(f);
	return text;
}

static void expect(const char *name, const struct view_options *options)
{
	_cleanup_free_ char *text = NULL, *golden = NULL;
	struct view v;

	assert_int_equal(view_make(&snapshot, options, &v), 0);
	for (size_t i = 0; i < v.n; i++)
		assert_true(columns_of(v.lines[i].text) <= options->width);
	if (options->height)
		assert_int_equal(v.n, options->height);
	text = as_text(&v);
	view_done(&v);
	if (getenv("GOLDEN_WRITE"))
		write_golden(name, text);
	golden = read_golden(name);
	assert_string_equal(text, golden);
}

static void a_terminal_of_eighty_columns_shows_what_matters(void **state)
{
	expect("eighty", &(struct view_options){ .width = 80, .height = 20, .utf8 = true });
}

static void a_wide_one_shows_everything(void **state)
{
	expect("wide", &(struct view_options){ .width = 160, .utf8 = true });
}

static void without_utf8_bars_are_of_ascii(void **state)
{
	expect("ascii", &(struct view_options){ .width = 100 });
}

static void a_very_narrow_one_still_names_the_jobs(void **state)
{
	expect("narrow", &(struct view_options){ .width = 24, .height = 16, .utf8 = true });
}

static void a_list_longer_than_the_screen_scrolls(void **state)
{
	expect("scrolled",
	       &(struct view_options){ .width = 80, .height = 8, .scroll = 2, .utf8 = true });
}

static void scrolling_ends_at_the_end(void **state)
{
	struct view_options far = { .width = 80, .height = 8, .scroll = 1000 };
	struct view v;

	assert_int_equal(view_make(&snapshot, &far, &v), 0);
	assert_int_equal(v.scroll, 5);
	assert_int_equal(v.page, 2);
	view_done(&v);
}

static void a_tripped_gpu_comes_first_and_says_why(void **state)
{
	gpus[2].tripped = true;
	snprintf(gpus[2].tripped_by, sizeof(gpus[2].tripped_by),
		 "queue 3 of process 9 could not be taken off");
	snapshot.status.paused = true;
	snprintf(snapshot.status.unwatched, sizeof(snapshot.status.unwatched),
		 "its debug registers are taken");
	expect("tripped", &(struct view_options){ .width = 100, .utf8 = true });
}

static void what_goes_unseen_is_an_alarm(void **state)
{
	const struct view_options options = { .width = 80, .height = 24, .utf8 = true };
	struct view v = { 0 };
	size_t alarms = 0;

	snprintf(snapshot.status.blind, sizeof(snapshot.status.blind), "there is no list");
	jobs[1].unseen = jobs[1].blind = true;
	assert_int_equal(view_make(&snapshot, &options, &v), 0);
	for (size_t i = 0; i < v.n; i++) {
		alarms += v.lines[i].look == VIEW_ALARM &&
			  strstr(v.lines[i].text, "BLIND: work goes unseen: there is no list");
		if (strstr(v.lines[i].text, " infer"))
			assert_non_null(strstr(v.lines[i].text, "blind"));
	}
	assert_int_equal(alarms, 1);
	view_done(&v);
}

static void a_lost_daemon_is_said_above_what_was_known(void **state)
{
	snapshot.error = (struct gpreempt_error){ .kind = GPREEMPT_ERROR_ABSENT,
						  .message = "gpreemptd is not running",
						  .hint = "start it" };
	snapshot.lost_s = 75;
	expect("lost", &(struct view_options){ .width = 80, .height = 20, .utf8 = true });
	snapshot.seen = false;
	expect("never", &(struct view_options){ .width = 80, .height = 5, .utf8 = true });
}

static void strangers_see_no_figures_of_others(void **state)
{
	snapshot.status.privileged = false;
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
		jobs[i].detailed = false;
	expect("stranger", &(struct view_options){ .width = 100, .utf8 = true });
}

static void what_nobody_can_tell_is_not_made_up(void **state)
{
	const struct view_options options = { .width = 132, .height = 24, .utf8 = true };
	struct view v = { 0 };
	bool found = false;

	jobs[1].unseen = true;
	jobs[1].working = false;
	jobs[1].longest_wait_ns = jobs[1].share_permille = 0;
	assert_int_equal(view_make(&snapshot, &options, &v), 0);
	for (size_t i = 0; i < v.n; i++) {
		if (!strstr(v.lines[i].text, " infer"))
			continue;
		found = true;
		assert_null(strchr(v.lines[i].text, '%'));
		assert_null(strstr(v.lines[i].text, "idle"));
		assert_non_null(strstr(v.lines[i].text, "unknown"));
	}
	assert_true(found);
	view_done(&v);
}

static void help_explains_itself(void **state)
{
	expect("help", &(struct view_options){ .width = 80, .height = 24, .help = true });
}

static void an_idle_machine_says_so(void **state)
{
	snapshot.n_jobs = 0;
	snapshot.status.suspend.count = 0;
	expect("idle", &(struct view_options){ .width = 80, .utf8 = true });
}

static pid_t first_pid(enum view_sort sort)
{
	struct view_options options = { .width = 80, .sort = sort };
	struct view v;
	long pid = 0;

	assert_int_equal(view_make(&snapshot, &options, &v), 0);
	for (size_t i = 0; i + 1 < v.n; i++)
		if (strstr(v.lines[i].text, "GPU 51210"))
			pid = strtol(v.lines[i + 1].text, NULL, 10);
	view_done(&v);
	return (pid_t)pid;
}

static void jobs_are_sorted_as_wanted(void **state)
{
	assert_int_equal(first_pid(SORT_CLASS), 1002);
	assert_int_equal(first_pid(SORT_SHARE), 1001);
	assert_int_equal(first_pid(SORT_WAIT), 1001);
	assert_int_equal(first_pid(SORT_PREEMPTED), 1001);
	assert_int_equal(first_pid(SORT_PID), 77);
}

static void a_job_on_a_gpu_nobody_told_of_is_shown(void **state)
{
	struct view_options options = { .width = 80 };
	struct view v;

	snapshot.n_gpus = 0;
	assert_int_equal(view_make(&snapshot, &options, &v), 0);
	assert_int_equal(v.n, 5 + 1 + ARRAY_SIZE(jobs));
	view_done(&v);
}

static void any_size_is_survived(void **state)
{
	for (unsigned int width = 0; width < 300; width += 7) {
		for (unsigned int height = 0; height < 20; height++) {
			struct view_options options = { .width = width, .height = height,
							.utf8 = true, .scroll = height };
			struct view v;

			assert_int_equal(view_make(&snapshot, &options, &v), 0);
			assert_true(height == 0 || v.n <= height);
			view_done(&v);
		}
	}
}

static void durations_have_at_most_seven_columns(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ 1, "0.00 us" },
		{ 999499, "999 us" },
		{ 999500, "1.00 ms" },
		{ 12345678, "12.3 ms" },
		{ 59 * NSEC_PER_SEC, "59.0 s" },
		{ 959 * NSEC_PER_SEC, "959 s" },
		{ 960 * NSEC_PER_SEC, "16 min" },
		{ 60000 * NSEC_PER_SEC, "16 h" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char buf[UNIT_TEXT_SIZE];

		assert_string_equal(short_duration(cases[i].ns, buf), cases[i].text);
		assert_true(strlen(buf) <= 7);
	}
}

#define VIEW_TEST(f) cmocka_unit_test_setup(f, busy_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		VIEW_TEST(a_terminal_of_eighty_columns_shows_what_matters),
		VIEW_TEST(a_wide_one_shows_everything),
		VIEW_TEST(without_utf8_bars_are_of_ascii),
		VIEW_TEST(a_very_narrow_one_still_names_the_jobs),
		VIEW_TEST(a_list_longer_than_the_screen_scrolls),
		VIEW_TEST(scrolling_ends_at_the_end),
		VIEW_TEST(a_tripped_gpu_comes_first_and_says_why),
		VIEW_TEST(what_goes_unseen_is_an_alarm),
		VIEW_TEST(a_lost_daemon_is_said_above_what_was_known),
		VIEW_TEST(strangers_see_no_figures_of_others),
		VIEW_TEST(what_nobody_can_tell_is_not_made_up),
		VIEW_TEST(help_explains_itself),
		VIEW_TEST(an_idle_machine_says_so),
		VIEW_TEST(jobs_are_sorted_as_wanted),
		VIEW_TEST(a_job_on_a_gpu_nobody_told_of_is_shown),
		VIEW_TEST(any_size_is_survived),
		cmocka_unit_test(durations_have_at_most_seven_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
