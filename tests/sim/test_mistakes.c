/* SPDX-License-Identifier: MIT */
/* Scenario files with one mistake each: where it is, and what is said about it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sim/builtin.h"
#include "sim/scenario.h"
#include "util/units.h"
#include "util/macros.h"

#define HEAD "[scenario]\ntitle = t\n" /* two lines */
#define JOB HEAD "[job j]\nmodel = VGG\n" /* four */

static const struct mistake {
	const char *text;
	unsigned int line, column;
	const char *says, *names; /* names: one of those listed */
} mistakes[] = {
	/* the text */
	{ "", 1, 1, "no [scenario]", "" },
	{ "title = t\n", 1, 1, "a [section] must come first", "" },
	{ HEAD "nonsense\n", 3, 1, "neither '[section]' nor 'key = value'", "" },
	{ HEAD "nonsense\ngpus = x\n", 3, 1, "neither", "" },
	{ HEAD "[model m]\nkernels = x\nnonsense\n", 4, 11, "not a whole number", "" },
	{ HEAD "[job j\n", 3, 1, "without ']'", "" },
	{ HEAD "[policy] linger = 1us\n", 3, 10, "only a comment", "" },
	{ HEAD "  gpus = 2\n", 3, 3, "begin with blanks", "" },
	{ HEAD "gpus = 2\n  3\n", 4, 3, "begin with blanks", "" },
	{ HEAD "gpus = \033[2J\n", 3, 8, "control character", "" },
	{ HEAD " = 2\n", 3, 2, "begin with blanks", "" },
	{ HEAD "= 2\n", 3, 1, "no key ''", "" },
	/* sections */
	{ "[scenarios]\n", 1, 2, "no section 'scenarios': there are scenario, policy, job", "" },
	{ "[]\n", 1, 2, "no section ''", "" },
	{ HEAD "[scenario]\n", 3, 10, "a second [scenario]", "" },
	{ HEAD "[policy x]\n", 3, 9, "has no name", "" },
	{ HEAD "[job]\nmodel = VGG\n", 3, 5, "1 to 47 characters", "" },
	{ HEAD "[job a.b]\nmodel = VGG\n", 3, 7, "names are made of", "" },
	{ JOB "[job j]\n", 5, 6, "there is a job 'j' already", "" },
	{ HEAD "[model VGG]\n", 3, 8, "there is a model 'VGG' already", "" },
	{ HEAD "[job j]\nclass = online\n[policy]\n", 3, 1, "[job j] needs 'model'", "" },
	{ HEAD "[model m]\nkernels = 1\n", 3, 1, "[model m] needs 'kernel'", "" },
	{ "[scenario]\ngpus = 1\n", 1, 1, "[scenario] needs 'title'", "" },
	/* keys */
	{ HEAD "gpu = 2\n", 3, 1, "no key 'gpu' in [scenario]: there are title, chip,", "" },
	{ JOB "rates = 1/s\n", 5, 1, "there are model, class, priority,", "" },
	{ HEAD "gpus = 2\ngpus = 2\n", 4, 1, "'gpus' twice", "" },
	/* names */
	{ HEAD "policy = fair\n", 3, 10, "no policy 'fair'", "rotate" },
	{ HEAD "chip   =   mi999\n", 3, 12, "no chip 'mi999'", "mi308x" },
	{ HEAD "costs = free\n", 3, 9, "no costs 'free'", "kfd-stock" },
	{ HEAD "[job j]\nmodel = vgg\n", 4, 9, "no model 'vgg'", "ResNet152" },
	{ JOB "class = best-effort\n", 5, 9, "no class", "offline" },
	{ JOB "arrival = often\n", 5, 11, "no arrival", "poisson" },
	{ JOB "gang = true\n", 5, 8, "no gang 'true'", "yes" },
	{ HEAD "save-area = disk\n", 3, 13, "no save-area", "host" },
	/* numbers */
	{ HEAD "duration = 5\n", 3, 12, "'5' is not a duration such as 100us", "" },
	{ HEAD "duration = 5 sec\n", 3, 12, "is not a duration", "" },
	{ HEAD "duration = -5s\n", 3, 12, "is not a duration", "" },
	{ HEAD "duration = 1e3s\n", 3, 12, "is not a duration", "" },
	{ HEAD "duration = 5.s\n", 3, 12, "is not a duration", "" },
	{ HEAD "duration =\n", 3, 11, "is not a duration", "" },
	{ HEAD "duration = 0.1ns\n", 3, 12, "too large or too fine", "" },
	{ HEAD "duration = 99999999999999999999s\n", 3, 12, "too large or too fine", "" },
	{ HEAD "duration = 2h\n", 3, 12, "is not a duration", "" },
	{ HEAD "duration = 7200s\n", 3, 12, "duration is 1ms to 3600s, not 7200s", "" },
	{ HEAD "gpus = 9\n", 3, 8, "gpus is 1 to 8, not 9", "" },
	{ HEAD "gpus = 1.5\n", 3, 8, "too large or too fine", "" },
	{ HEAD "kernel-scale = 0\n", 3, 16, "kernel-scale is 0.001 to 1000", "" },
	{ HEAD "online-slots = 101 %\n", 3, 16, "online-slots is 0% to 100%", "" },
	{ HEAD "online-slots = 10\n", 3, 16, "is not a share", "" },
	{ JOB "rate = 20\n", 5, 8, "'20' is not a rate such as 20/s", "" },
	{ JOB "rate = 0/s\n", 5, 8, "rate is 0.001/s to", "" },
	{ JOB "announce = maybe\n", 5, 12, "'maybe' is not a duration", "" },
	{ HEAD "[costs c]\nhost = 64GB\n", 4, 8, "is not a speed", "" },
	{ HEAD "detect = seen\n", 3, 10, "neither watch nor trap, nor as look:5ms", "" },
	{ HEAD "detect = look\n", 3, 10, "neither watch nor trap", "" },
	{ HEAD "detect = look:5\n", 3, 10, "'5' is not a duration", "" },
	{ HEAD "detect = look:1us\n", 3, 10, "detect is 10us to 1s, not 1us", "" },
	{ HEAD "[detection]\nlook-share = 0 %\n", 4, 14, "look-share is 0.1% to 100%", "" },
	{ HEAD "[detection]\n[detection]\n", 4, 11, "a second [detection]", "" },
	/* what does not go together */
	{ JOB "arrival = poisson\n", 3, 1, "needs a 'rate'", "" },
	{ JOB "arrival = continuous\nrate = 1/s\n", 3, 1, "does not follow it", "" },
	{ JOB "announce = submission\n", 3, 1, "offline: it announces nothing", "" },
	{ JOB "arrival = trace\n", 3, 1, "[trace] has none", "" },
	{ JOB "gpu = 1\n", 3, 1, "on GPU 1 of 1", "" },
	{ JOB "copies = 100000\nqueues = 1000\n", 3, 1, "more than 200000 queues", "" },
	{ HEAD "[trace]\nat = 2s\nat = 1s\n", 5, 6, "do not go back", "" },
	{ HEAD "[trace]\nat = 2\n", 4, 6, "is not a duration", "" },
	{ HEAD "[trace]\nlength = 1s\n", 3, 1, "needs length, burst-rate", "" },
	{ HEAD "[trace]\nlength = 3600s\nquiet = 1s\nburst = 1s\nburst-rate = 9999/s\n", 3, 1,
	  "more than 1000000 requests", "" },
	{ HEAD "[trace]\nat = 1s\nlength = 1s\n", 3, 1, "makes some up as well", "" },
	/* sweeps */
	{ HEAD "[sweep]\nkey = x.rate\nvalues = 1/s\n", 4, 7, "no 'name.key' of a job", "" },
	{ HEAD "[sweep]\nkey = speed\nvalues = 1/s\n", 4, 7, "'speed' is no 'key'", "" },
	{ HEAD "[sweep]\nkey = chip\nvalues = a\n", 4, 7, "cannot be swept", "" },
	{ HEAD "[sweep]\nkey = gpus\nvalues = 1 2\n", 4, 7, "cannot be swept", "" },
	{ JOB "[sweep]\nkey = j.gpu\nvalues = 0 1\n", 6, 7, "cannot be swept", "" },
	{ HEAD "[sweep]\nvalues = 1us\nkey = cycle\n", 4, 10, "must come before", "" },
	{ HEAD "[sweep]\nkey = cycle\nvalues = 1us 2us oops 3us\n", 5, 18, "'oops'", "" },
	{ HEAD "[sweep]\nkey = cycle\n", 3, 1, "[sweep] needs 'values'", "" },
	{ JOB "[sweep]\nkey = VGG.kernel\nvalues = 5\n", 7, 10, "is not a duration", "" },
};

static void check(const struct mistake *want, size_t i)
{
	struct sim_scenario *s = NULL;
	struct inifile_mistake m = { 0 };
	int r = sim_scenario_parse("f.ini", want->text, strlen(want->text), &s, &m);

	if (r != -EINVAL || s || strcmp(m.file, "f.ini") || m.line != want->line ||
	    m.column != want->column || !strstr(m.text, want->says) ||
	    !strstr(m.names, want->names))
		fail_msg("case %zu: %d at %u:%u: %s (%s)\n%s", i, r, m.line, m.column, m.text,
			 m.names, want->text);
}

static void every_mistake_has_its_place_and_its_words(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++)
		check(&mistakes[i], i);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
	static const char nul[] = HEAD "gp\0us = 1\n";
	char text[600] = HEAD;
	struct sim_scenario *s = NULL;
	struct inifile_mistake m;

	assert_int_equal(sim_scenario_parse("f", nul, sizeof(nul) - 1, &s, &m), -EINVAL);
	assert_int_equal(m.line, 3);
	assert_non_null(strstr(m.text, "not text"));
	memset(text + strlen(text), 'x', 300);
	assert_int_equal(sim_scenario_parse("f", text, strlen(text), &s, &m), -EINVAL);
	assert_int_equal(m.line, 3);
	assert_non_null(strstr(m.text, "a line of more than"));
}

/* ---- values ---- */

static void values_are_exact_and_come_back_as_written(void **state)
{
	static const struct {
		enum unit_kind unit;
		const char *text;
		uint64_t value;
	} values[] = {
		{ UNIT_COUNT, "0", 0 },
		{ UNIT_COUNT, "18446744073709551615", UINT64_MAX },
		{ UNIT_DURATION, "1ns", 1 },
		{ UNIT_DURATION, "0.001us", 1 },
		{ UNIT_DURATION, "100us", 100000 },
		{ UNIT_DURATION, "1.5ms", 1500000 },
		{ UNIT_DURATION, "3600s", 3600000000000 },
		{ UNIT_RATE, "0.001/s", 1 },
		{ UNIT_RATE, "20 /s", 20000 },
		{ UNIT_SHARE, "2.5 %", 25 },
		{ UNIT_SCALE, "0.5", 500 },
		{ UNIT_BYTES, "48.5MiB", 50855936 },
		{ UNIT_BYTES_PER_S, "1.23TB/s", 1230000000000 },
	};
	char text[UNIT_TEXT];
	uint64_t value, again;

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		assert_null(unit_parse(values[i].unit, values[i].text, &value));
		assert_true(value == values[i].value);
		if (value == UINT64_MAX)
			continue; /* beyond what is ever printed */
		unit_text(values[i].unit, value, text);
		assert_null(unit_parse(values[i].unit, text, &again));
		assert_true(again == value);
	}
	assert_non_null(unit_parse(UNIT_COUNT, "18446744073709551616", &value));
	assert_non_null(unit_parse(UNIT_DURATION, "18446744073709551615s", &value));
}

/* ---- where our own numbers come from ---- */

static const char *const sources[] = {
	"assumed",   "measured",   "arXiv",	    "Linux",
	"PCIe",	     "as there",   "swept",	    "perform_timestep",
	"MB",	     "workgroups", "ring pointers", "UNMAP_QUEUES",
	"RM has no", "not known",  "the daemon's",
};

static bool has_source(const char *line, size_t len)
{
	const char *comment = memchr(line, ';', len);

	for (size_t i = 0; comment && i < ARRAY_SIZE(sources); i++) {
		if (memmem(comment, len - (size_t)(comment - line), sources[i], strlen(sources[i])))
			return true;
	}
	return false;
}

/* Lines of [model], [costs] and [detection] in a file; how many numbers it has. */
static size_t check_sources(const struct sim_builtin *b)
{
	bool table = false;
	size_t n = 0;

	for (const char *line = b->text, *end; *line; line = end + 1) {
		end = strchrnul(line, '\n');
		if (*line == '[')
			table = !strncmp(line, "[model ", 7) || !strncmp(line, "[costs ", 7) ||
				!strncmp(line, "[detection]", 11);
		else if (table && end > line && *line != ';') {
			if (!has_source(line, (size_t)(end - line)))
				fail_msg("%s: no source: %.*s", b->name, (int)(end - line), line);
			n++;
		}
		if (!*end)
			break;
	}
	return n;
}

static void every_number_has_a_source_or_is_called_assumed(void **state)
{
	size_t n = 0;

	assert_false(has_source("kernel = 5us ; because", strlen("kernel = 5us ; because")));
	for (const struct sim_builtin *b = sim_builtins; b->name; b++)
		n += check_sources(b);
	assert_true(n > 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_mistake_has_its_place_and_its_words),
		cmocka_unit_test(bytes_that_are_no_text_are_refused),
		cmocka_unit_test(values_are_exact_and_come_back_as_written),
		cmocka_unit_test(every_number_has_a_source_or_is_called_assumed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
