/* SPDX-License-Identifier: MIT */
/* What scenario files say, and what is said about those that are wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim/sim.h"
#include "util/units.h"
#include "util/macros.h"

#define HEAD "[scenario]\ntitle = t\n"

static struct sim_scenario *parse(const char *text)
{
	struct sim_scenario *s = NULL;
	struct inifile_mistake m;
	int r = sim_scenario_parse("text", text, strlen(text), &s, &m);

	if (r < 0)
		print_message("%u:%u: %s %s\n", m.line, m.column, m.text, m.names);
	assert_int_equal(r, 0);
	return s;
}

/* ---- what is understood ---- */

static void everything_of_a_job_arrives(void **state)
{
	struct sim_scenario *s = parse(HEAD "gpus = 4\n"
					    "[job a-1]\nmodel = mine\nclass = online\ncopies = 3\n"
					    "queues = 2\ngpu = 3\npriority = 7\narrival = poisson\n"
					    "rate = 2.5/s\ntarget = 5ms\nwait-bound = 1s\n"
					    "prepare = 25us\nannounce = 100us\nweight = 9\n"
					    "min-share = 12.5 %\nlatency-critical = yes\n"
					    "lazy = yes\nauto-deactivate = no\ngang = no\n"
					    "[model mine]\nkernels = 3\nkernel = 1.5us\n");
	const struct sim_job *job = &s->jobs[0];

	assert_int_equal(s->n_jobs, 1);
	assert_string_equal(job->name, "a-1");
	assert_string_equal(s->models[job->model].name, "mine");
	assert_int_equal(s->models[job->model].kernel_ns, 1500);
	assert_int_equal(s->models[job->model].occupancy_permille, 1000);
	assert_true(job->online);
	assert_int_equal(job->copies, 3);
	assert_int_equal(job->queues, 2);
	assert_int_equal(job->gpu, 3);
	assert_int_equal(job->priority, 7);
	assert_int_equal(job->arrival, SIM_POISSON);
	assert_int_equal(job->rate_mhz, 2500);
	assert_int_equal(job->target_ns, 5 * NSEC_PER_MSEC);
	assert_int_equal(job->wait_bound_ns, NSEC_PER_SEC);
	assert_int_equal(job->prepare_ns, 25000);
	assert_int_equal(job->announce_ns, 100000);
	assert_int_equal(job->weight, 9);
	assert_int_equal(job->min_permille, 125);
	assert_true(job->latency_critical && job->lazy);
	assert_false(job->auto_deactivate || job->gang);
	sim_scenario_free(s);
}

static void everything_of_the_scenario_arrives(void **state)
{
	struct sim_scenario *s =
		parse("[scenario]\ntitle = two words\nchip = mi308x\npolicy = rotate\n"
		      "costs = mine\ngpus = 8\nduration = 1.5s\nsave-area = host\n"
		      "kernel-scale = 0.5\ncycle = 20us\nonline-slots = 10 %\n"
		      "offline-slots = 80 %\n"
		      "[policy]\nlinger = 1us\nturn = 50ms\nceiling = 3ms\nmargin = 4us\n"
		      "[costs mine]\ncall = 1us\ncycle = 2us\ntrap = 3us\ndisturbs-all = yes\n"
		      "counts-progress = yes\nsave = 1.5KiB\nhost = 32GB/s\n"
		      "change = 4us\nslice = 5us\nshort-slice = 6us\nlong-slice = 7us\n");
	const struct sim_costs *c = &s->cost_tables[s->n_cost_tables - 1];

	assert_string_equal(s->name, "text");
	assert_string_equal(s->title, "two words");
	assert_string_equal(s->chip, "mi308x");
	assert_string_equal(s->policy, "rotate");
	assert_string_equal(s->costs, "mine");
	assert_int_equal(s->gpus, 8);
	assert_int_equal(s->duration_ns, 1500 * NSEC_PER_MSEC);
	assert_true(s->save_in_host_memory);
	assert_int_equal(s->kernel_permille, 500);
	assert_int_equal(s->cycle_ns, 20000);
	assert_int_equal(s->online_permille, 100);
	assert_int_equal(s->offline_permille, 800);
	assert_int_equal(s->params.linger_ns, 1000);
	assert_int_equal(s->params.turn_ns, 50 * NSEC_PER_MSEC);
	assert_int_equal(s->params.ceiling_ns, 3 * NSEC_PER_MSEC);
	assert_int_equal(s->params.margin_ns, 4000);
	assert_string_equal(c->name, "mine");
	assert_int_equal(c->call_ns, 1000);
	assert_int_equal(c->cycle_ns, 2000);
	assert_int_equal(c->trap_ns, 3000);
	assert_true(c->disturbs_all && c->counts_progress);
	assert_int_equal(c->save_bytes, 1536);
	assert_int_equal(c->host_bytes_per_s, 32000000000);
	assert_int_equal(c->change_ns, 4000);
	assert_int_equal(c->slice_ns, 5000);
	assert_int_equal(c->short_slice_ns, 6000);
	assert_int_equal(c->long_slice_ns, 7000);
	sim_scenario_free(s);
}

static void a_rate_means_periodic_and_none_means_continuous(void **state)
{
	struct sim_scenario *s = parse(HEAD "[job a]\nmodel = VGG\nrate = 1/s\n"
					    "[job b]\nmodel = VGG\n");

	assert_int_equal(s->jobs[0].arrival, SIM_PERIODIC);
	assert_int_equal(s->jobs[1].arrival, SIM_CLOSED);
	assert_int_equal(s->jobs[1].copies, 1);
	assert_int_equal(s->jobs[1].queues, 1);
	assert_false(s->jobs[1].online);
	assert_true(s->jobs[1].announce_ns == SIM_NOT_ANNOUNCED);
	sim_scenario_free(s);
}

static void a_scenario_without_jobs_is_fine(void **state)
{
	struct sim_scenario *s = parse(HEAD);

	assert_int_equal(s->n_jobs, 0);
	assert_true(s->n_models > 10);
	assert_true(s->n_cost_tables >= 3);
	sim_scenario_free(s);
	sim_scenario_free(NULL);
}

static void ten_thousand_jobs_are_read(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct sim_scenario *s;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	fprintf(f, HEAD);
	for (int i = 0; i < 10000; i++)
		fprintf(f, "[job j%d]\nmodel = VGG\npriority = %d\n", i, i % 256);
	fclose(f);
	s = parse(text);
	assert_int_equal(s->n_jobs, 10000);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(s->jobs[i].priority, i % 256);
	sim_scenario_free(s);
}

static void text_of_other_systems_is_read(void **state)
{
	struct sim_scenario *s =
		parse("\xef\xbb\xbf[scenario] ; mine\r\ntitle = \xc3\xbc  \r\n\r\n"
		      "\t; a comment may begin anywhere\r\n# or so\r\ngpus: 2 ; two");

	assert_string_equal(s->title, "\xc3\xbc");
	assert_int_equal(s->gpus, 2);
	sim_scenario_free(s);
}

/* ---- traces ---- */

static void a_trace_has_the_times_it_was_given(void **state)
{
	struct sim_scenario *s = parse(HEAD "[trace]\nat = 1ms\nat = 1ms\nat = 2.5ms\n"
					    "[job a]\nmodel = VGG\narrival = trace\n");

	assert_int_equal(s->n_trace, 3);
	assert_int_equal(s->trace_ns[1], NSEC_PER_MSEC);
	assert_int_equal(s->trace_ns[2], 2500000);
	sim_scenario_free(s);
}

#define BURSTS \
	"[trace]\nlength = 100s\nquiet-rate = 20/s\nburst-rate = 200/s\nquiet = 900ms\n" \
	"burst = 100ms\nseed = "

static size_t most_within(const struct sim_scenario *s, uint64_t ns)
{
	size_t most = 0, from = 0;

	for (size_t i = 0; i < s->n_trace; i++) {
		while (s->trace_ns[i] - s->trace_ns[from] > ns)
			from++;
		most = MAX(most, i - from + 1);
	}
	return most;
}

static void a_made_up_trace_is_ascending_bursty_and_follows_its_seed(void **state)
{
	struct sim_scenario *a = parse(HEAD BURSTS "1\n"), *b = parse(HEAD BURSTS "1\n");
	struct sim_scenario *c = parse(HEAD BURSTS "2\n");

	/* 90 s at 20/s and 10 s at 200/s, more or less */
	assert_in_range(a->n_trace, 3000, 4600);
	for (size_t i = 1; i < a->n_trace; i++)
		assert_true(a->trace_ns[i] > a->trace_ns[i - 1]);
	assert_true(a->trace_ns[a->n_trace - 1] < 100 * NSEC_PER_SEC);
	/* 20/s alone has 2 in 100 ms on average, and hardly ever more than 10 */
	assert_true(most_within(a, 100 * NSEC_PER_MSEC) > 15);
	assert_int_equal(a->n_trace, b->n_trace);
	assert_memory_equal(a->trace_ns, b->trace_ns, a->n_trace * sizeof(*a->trace_ns));
	assert_true(a->n_trace != c->n_trace || a->trace_ns[0] != c->trace_ns[0]);
	sim_scenario_free(a);
	sim_scenario_free(b);
	sim_scenario_free(c);
}

/* ---- sweeps and options ---- */

static void a_sweep_changes_its_key_run_by_run(void **state)
{
	struct sim_scenario *s = parse(HEAD "[sweep]\nkey = j.rate\nvalues = 1/s 2.5/s  10/s\n"
					    "[job j]\nmodel = VGG\nrate = 7/s\n");
	char text[32];

	assert_int_equal(s->n_sweep, 3);
	assert_int_equal(s->jobs[0].rate_mhz, 7000);
	assert_int_equal(sim_scenario_sweep(s, 1), 0);
	assert_int_equal(s->jobs[0].rate_mhz, 2500);
	assert_string_equal(sim_scenario_sweep_text(s, 1, text, sizeof(text)), "2.5/s");
	assert_int_equal(sim_scenario_sweep(s, 2), 0);
	assert_int_equal(s->jobs[0].rate_mhz, 10000);
	sim_scenario_free(s);
}

static void a_sweep_cannot_make_more_queues_than_a_file_may(void **state)
{
	struct sim_scenario *s = parse(HEAD "[job j]\nmodel = VGG\nqueues = 1000\n"
					    "[sweep]\nkey = j.copies\nvalues = 200 201\n");

	assert_int_equal(sim_scenario_sweep(s, 0), 0);
	assert_int_equal(sim_scenario_sweep(s, 1), -EINVAL);
	sim_scenario_free(s);
}

static void models_and_settings_can_be_swept(void **state)
{
	struct sim_scenario *s = parse(HEAD "[model m]\nkernels = 1\nkernel = 1us\n"
					    "[sweep]\nkey = m.kernel\nvalues = 3us\n");

	sim_scenario_sweep(s, 0);
	assert_int_equal(s->models[s->n_models - 1].kernel_ns, 3000);
	sim_scenario_free(s);
	s = parse(HEAD "[sweep]\nkey = cycle\nvalues = 20us 500us\n");
	sim_scenario_sweep(s, 1);
	assert_int_equal(s->cycle_ns, 500000);
	sim_scenario_free(s);
	s = parse(HEAD "[sweep]\nkey = turn\nvalues = 20ms\n");
	sim_scenario_sweep(s, 0);
	assert_int_equal(s->params.turn_ns, 20 * NSEC_PER_MSEC);
	sim_scenario_free(s);
}

static void an_option_is_checked_as_the_file_is(void **state)
{
	struct sim_scenario *s = parse(HEAD "[job a]\nmodel = VGG\nclass = online\n"
					    "[job b]\nmodel = VGG\n");
	struct inifile_mistake m;

	assert_int_equal(sim_scenario_set(s, "costs", "kfd-stock", &m), 0);
	assert_string_equal(s->costs, "kfd-stock");
	assert_int_equal(sim_scenario_set(s, "costs", "free", &m), -EINVAL);
	assert_non_null(strstr(m.names, "kfd-extension"));
	assert_string_equal(s->costs, "kfd-stock");
	assert_int_equal(sim_scenario_set(s, "announce", "submission", &m), 0);
	assert_int_equal(s->jobs[0].announce_ns, 0);
	assert_true(s->jobs[1].announce_ns == SIM_NOT_ANNOUNCED);
	assert_int_equal(sim_scenario_set(s, "announce", "soon", &m), -EINVAL);
	assert_int_equal(sim_scenario_set(s, "nonsense", "1", &m), -EINVAL);
	sim_scenario_free(s);
}

static void how_work_is_seen_is_a_key_and_an_option(void **state)
{
	struct sim_scenario *s = parse(HEAD "detect = trap\n"
					    "[detection]\nwatch = 7us\ntrap = 3us\nlook = 30us\n"
					    "look-share = 30 %\nlook-least = 60us\n");
	struct inifile_mistake m;
	char text[UNIT_TEXT], assumes[SIM_ASSUMES];

	assert_int_equal(s->detect, SIM_DETECT_TRAP);
	assert_int_equal(s->detection.watch_ns, 7000);
	assert_int_equal(sim_sight(s).begin_ns, 3000);
	assert_int_equal(sim_sight(s).look_ns, 100000);
	assert_string_equal(sim_detect_text(s->detect, text, sizeof(text)), "trap");
	assert_int_equal(sim_scenario_set(s, "detect", "watch", &m), 0);
	assert_int_equal(sim_sight(s).begin_ns, 7000);
	assert_string_equal(sim_assumes(s, assumes),
			    "costs of kfd-stock; work seen after 7us (watch), its end by looks "
			    "every 100us; nothing announced");
	assert_int_equal(sim_scenario_set(s, "detect", "look:5ms", &m), 0);
	assert_int_equal(sim_sight(s).begin_ns, 5 * NSEC_PER_MSEC);
	assert_string_equal(sim_detect_text(s->detect, text, sizeof(text)), "look:5ms");
	assert_int_equal(sim_scenario_set(s, "costs", "nvrm", &m), 0);
	assert_string_equal(sim_assumes(s, assumes), "costs of nvrm; work not seen, processes take "
						     "turns; nothing announced");
	sim_scenario_free(s);
}

static void who_announces_what_is_said_in_words(void **state)
{
	struct sim_scenario *s = parse(HEAD "[job a]\nmodel = VGG\nclass = online\n"
					    "[job b]\nmodel = VGG\n"
					    "[job c]\nmodel = VGG\nclass = online\n");
	struct inifile_mistake m;
	char text[UNIT_TEXT], assumes[SIM_ASSUMES];

	assert_string_equal(sim_announce_text(s, text, sizeof(text)), "none");
	s->jobs[2].announce_ns = 0;
	assert_string_equal(sim_announce_text(s, text, sizeof(text)), "by job");
	assert_non_null(strstr(sim_assumes(s, assumes), "; announced by some jobs"));
	assert_int_equal(sim_scenario_set(s, "announce", "100us", &m), 0);
	assert_string_equal(sim_announce_text(s, text, sizeof(text)), "100us");
	assert_non_null(strstr(sim_assumes(s, assumes), "; announced 100us ahead"));
	assert_int_equal(sim_scenario_set(s, "announce", "submission", &m), 0);
	assert_non_null(strstr(sim_assumes(s, assumes), "; announced at submission"));
	sim_scenario_free(s);
}

/* ---- built-in ones ---- */

/* The promise: unmodified programs, the stock driver, watchpoints. */
static void unless_told_otherwise_nothing_is_announced_on_a_stock_driver(void **state)
{
	for (const char *const *name = sim_scenario_names; *name; name++) {
		struct sim_scenario *s = NULL;
		struct inifile_mistake m;
		char assumes[SIM_ASSUMES];

		assert_int_equal(sim_scenario_read(*name, &s, &m), 0);
		assert_string_equal(sim_assumes(s, assumes),
				    "costs of kfd-stock; work seen after 20us (watch), its end by "
				    "looks every 200us; nothing announced");
		sim_scenario_free(s);
	}
}

static void every_built_in_scenario_is_sound(void **state)
{
	size_t n = 0;

	for (const char *const *name = sim_scenario_names; *name; name++, n++) {
		struct sim_scenario *s = NULL;
		struct inifile_mistake m = { 0 };

		if (sim_scenario_read(*name, &s, &m) < 0)
			fail_msg("%s:%u:%u: %s %s", m.file, m.line, m.column, m.text, m.names);
		assert_string_equal(s->name, *name);
		assert_string_equal(s->title, sim_scenario_title(*name));
		assert_true(s->n_jobs > 0);
		sim_scenario_free(s);
	}
	assert_true(n >= 15);
	assert_null(sim_scenario_title("nonsense"));
}

static void what_is_neither_built_in_nor_a_file_gets_the_list(void **state)
{
	struct sim_scenario *s = NULL;
	struct inifile_mistake m;

	assert_int_equal(sim_scenario_read("nonsense", &s, &m), -ENOENT);
	assert_null(s);
	for (const char *const *name = sim_scenario_names; *name; name++)
		assert_non_null(strstr(m.names, *name));
	assert_int_equal(sim_scenario_read("models.ini", &s, &m), -ENOENT);
	assert_int_equal(sim_scenario_read("/", &s, &m), -EISDIR);
	assert_int_equal(sim_scenario_read("/dev/zero", &s, &m), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_of_a_job_arrives),
		cmocka_unit_test(everything_of_the_scenario_arrives),
		cmocka_unit_test(a_rate_means_periodic_and_none_means_continuous),
		cmocka_unit_test(a_scenario_without_jobs_is_fine),
		cmocka_unit_test(ten_thousand_jobs_are_read),
		cmocka_unit_test(text_of_other_systems_is_read),
		cmocka_unit_test(a_trace_has_the_times_it_was_given),
		cmocka_unit_test(a_made_up_trace_is_ascending_bursty_and_follows_its_seed),
		cmocka_unit_test(a_sweep_changes_its_key_run_by_run),
		cmocka_unit_test(a_sweep_cannot_make_more_queues_than_a_file_may),
		cmocka_unit_test(models_and_settings_can_be_swept),
		cmocka_unit_test(an_option_is_checked_as_the_file_is),
		cmocka_unit_test(how_work_is_seen_is_a_key_and_an_option),
		cmocka_unit_test(who_announces_what_is_said_in_words),
		cmocka_unit_test(unless_told_otherwise_nothing_is_announced_on_a_stock_driver),
		cmocka_unit_test(every_built_in_scenario_is_sound),
		cmocka_unit_test(what_is_neither_built_in_nor_a_file_gets_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
