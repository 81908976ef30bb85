/* SPDX-License-Identifier: MIT */
/*
 * The report is written as it goes: should a check bring the machine down, the file still says
 * which one it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/gpreempt/accept.h"

static const char *const result_names[] = { [RESULT_NONE] = "skip",
					    [RESULT_PASS] = "pass",
					    [RESULT_FAIL] = "fail",
					    [RESULT_SKIP] = "skip" };

static void name_report(struct accept *a)
{
	time_t now = time(NULL);
	struct tm tm;
	char stamp[32];

	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	snprintf(a->default_file, sizeof(a->default_file), "gpreempt-accept-%d-%s.txt", (int)a->pid,
		 stamp);
	a->file = a->default_file;
}

int report_open(struct accept *a)
{
	int fd;

	if (!a->file)
		name_report(a);
	/* Never over something else, nor through a link somebody has laid. */
	fd = open(a->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return cli_fail(a->cli, EXIT_FAILED,
				errno == EEXIST ? "move it away, or name another with -o" :
						  "name a file that can be written with -o",
				"cannot make the report '%s': %s", a->file, strerror(errno));
	a->report = fdopen(fd, "w");
	if (!a->report) {
		close(fd);
		report_discard(a);
		return cli_fail(a->cli, EXIT_FAILED, "free some memory", "out of memory");
	}
	return EXIT_DONE;
}

void report_discard(struct accept *a)
{
	if (a->report)
		fclose(steal_ptr(&a->report));
	unlink(a->file);
}

static void say(struct accept *a, const char *fmt, ...) _printf_(2, 3);

static void say(struct accept *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(a->report, fmt, ap);
	va_end(ap);
	if (a->cli->json)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
}

static void settle(struct accept *a)
{
	fflush(stdout);
	if (fflush(a->report) == 0)
		fdatasync(fileno(a->report));
}

void report_begin(struct accept *a)
{
	time_t now = time(NULL);
	struct tm tm;
	char stamp[64];

	strftime(stamp, sizeof(stamp), "%F %T %z", localtime_r(&now, &tm));
	say(a, "gpreempt %s, acceptance of process %d, %s\n", GPREEMPT_VERSION, (int)a->pid, stamp);
	host_print(a, a->report);
	if (!a->cli->json)
		host_print(a, stdout);
	say(a, "process: %zu queues; %llu rounds a series\n\n", a->n_queues,
	    (unsigned long long)a->wanted);
	settle(a);
}

static const char *basis_word(const struct accept *a)
{
	return a->not_hardware ? "modelled" : "measured";
}

void report_check(struct accept *a, const struct check *check, const struct outcome *o)
{
	if (o->result == RESULT_NONE) {
		fprintf(a->report, "%s ...\n", check->name);
		settle(a);
		return;
	}
	say(a, "%s  %s: %s\n", result_names[o->result], check->name, check->claim);
	if (o->has_figure)
		say(a, "      %.*f %s, %s\n", o->figure < 1000 ? 2 : 0, o->figure, check->unit,
		    basis_word(a));
	say(a, "      %s\n", o->detail);
	settle(a);
}

static struct json_object *outcome_to_json(const struct accept *a, const struct check *check,
					   const struct outcome *o)
{
	struct json_object *j = json_object_new_object();

	json_add_string(j, "name", check->name);
	json_add_string(j, "result", result_names[o->result]);
	if (o->has_figure) {
		json_add(j, "figure", json_decimal(o->figure, 3));
		json_add_string(j, "basis", basis_word(a));
	}
	json_add_string(j, "unit", check->unit);
	json_add_string(j, "claim", check->claim);
	json_add_string(j, "detail", o->detail);
	return j;
}

static struct json_object *to_json(struct accept *a, const struct outcome *outcomes)
{
	struct json_object *o = json_object_new_object(), *checks = json_object_new_array();

	for (size_t i = 0; accept_checks[i].name; i++)
		json_object_array_add(checks, outcome_to_json(a, &accept_checks[i], &outcomes[i]));
	json_add(o, "checks", checks);
	json_object_object_add(o, "modelled", json_object_new_boolean(a->not_hardware));
	json_object_object_add(o, "complete", json_object_new_boolean(!a->signal && !a->gone));
	json_add(o, "host", host_to_json(a));
	json_add_string(o, "version", GPREEMPT_VERSION);
	json_add_string(o, "report", a->file);
	return o;
}

static size_t count(const struct outcome *outcomes, enum result result)
{
	size_t n = 0;

	for (size_t i = 0; accept_checks[i].name; i++)
		n += outcomes[i].result == result;
	return n;
}

int report_end(struct accept *a, const struct outcome *outcomes)
{
	struct json_object *json = to_json(a, outcomes);
	size_t failed = count(outcomes, RESULT_FAIL);
	bool broken;

	say(a, "\n%zu passed, %zu failed, %zu skipped; %s\n", count(outcomes, RESULT_PASS), failed,
	    count(outcomes, RESULT_SKIP),
	    a->signal ? signal_word(a->signal) :
	    a->gone   ? "the process could not be asked to the end" :
			"complete");
	fprintf(a->report, "\n%s\n", json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN));
	settle(a);
	broken = ferror(a->report) != 0;
	broken |= fclose(steal_ptr(&a->report)) != 0;
	if (broken) {
		json_object_put(json);
		return cli_fail(a->cli, EXIT_FAILED, "the report there is not whole",
				"cannot write the report '%s'", a->file);
	}
	if (a->cli->json)
		cli_print_json(a->cli, json);
	else
		json_object_put(json);
	if (!a->cli->json)
		printf("the report is in %s\n", a->file);
	return failed || a->signal || a->gone ? EXIT_FAILED : EXIT_DONE;
}
