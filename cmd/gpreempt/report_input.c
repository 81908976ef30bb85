/* SPDX-License-Identifier: MIT */
/*
 * Files into recordings. A file is one JSON value after the other: an answer of a command, several
 * of them, or the lines of `events`; or a trace, which is read event by event, as it may be long.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cmd/gpreempt/report.h"

#define CHUNK (1u << 16)
#define HEAD_MAX 65536 /* bytes before the events of a trace */

struct input {
	struct cli *cli;
	const char *file;
	char *text;
	size_t len, at;
	struct json_tokener *tokener;
};

static const char recordings_hint[] =
	"recordings are what these write: gpreempt --json sim, bench, events or status, and sim "
	"--trace";

/* ---- what is wrong ---- */

static unsigned int line_of(const struct input *in)
{
	unsigned int line = 1;

	for (size_t i = 0; i < in->at; i++)
		line += in->text[i] == '\n';
	return line;
}

static int fail(const struct input *in, int status, const char *what)
{
	return cli_fail(in->cli, status, recordings_hint, "%s:%u: %s", in->file, line_of(in), what);
}

static int fail_errno(const struct input *in, int error)
{
	if (error == -ENOMEM)
		return cli_fail(in->cli, EXIT_FAILED, "free some memory", "%s: out of memory",
				in->file);
	if (error == -E2BIG)
		return cli_fail(in->cli, EXIT_USAGE, "record less at a time",
				"%s:%u: too many jobs, GPUs or holds for one page", in->file,
				line_of(in));
	return fail(in, EXIT_USAGE, "an event of a kind that gpreempt does not write");
}

/* ---- bytes ---- */

static int read_all(struct input *in, int fd)
{
	size_t room = 0;
	ssize_t n;

	do {
		if (in->len + CHUNK + 1 > room) {
			char *bigger;

			room = MAX(2 * room, (size_t)4 * CHUNK);
			bigger = realloc(in->text, room);
			if (!bigger)
				return fail_errno(in, -ENOMEM);
			in->text = bigger;
		}
		n = read(fd, in->text + in->len, CHUNK);
		if (n < 0 && errno != EINTR)
			return cli_fail(in->cli, EXIT_FAILED, "look at the file",
					"cannot read '%s': %s", in->file, strerror(errno));
		in->len += n > 0 ? (size_t)n : 0;
	} while (n != 0 && in->len <= REPORT_FILE_MAX);
	in->text[in->len] = '\0';
	return EXIT_DONE;
}

static int read_file(struct input *in)
{
	_cleanup_close_ int fd = open(in->file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int status;

	if (fd < 0)
		return cli_fail(in->cli, EXIT_FAILED, "look at the name", "cannot read '%s': %s",
				in->file, strerror(errno));
	status = read_all(in, fd);
	if (status != EXIT_DONE)
		return status;
	if (in->len > REPORT_FILE_MAX)
		return cli_fail(in->cli, EXIT_USAGE, "record less at a time",
				"'%s' is larger than %u MiB", in->file, REPORT_FILE_MAX >> 20);
	return EXIT_DONE;
}

static void skip_space(struct input *in)
{
	while (in->at < in->len && strchr(" \t\r\n", in->text[in->at]))
		in->at++;
}

/* ---- values ---- */

/* The value that begins here; NULL: an exit status says why, and it was told. */
static struct json_object *take_value(struct input *in, int *ret_status)
{
	size_t len = MIN(in->len - in->at, (size_t)REPORT_VALUE_MAX);
	struct json_object *value;
	enum json_tokener_error error;

	json_tokener_reset(in->tokener);
	value = json_tokener_parse_ex(in->tokener, in->text + in->at, (int)len);
	error = json_tokener_get_error(in->tokener);
	if (error == json_tokener_success && value) {
		in->at += json_tokener_get_parse_end(in->tokener);
		return value;
	}
	json_object_put(value);
	if (error == json_tokener_continue && len == REPORT_VALUE_MAX)
		*ret_status = fail(in, EXIT_USAGE, "a value larger than any that gpreempt writes");
	else if (error == json_tokener_continue)
		*ret_status = fail(in, EXIT_USAGE, "it ends in the middle");
	else
		*ret_status = fail(in, EXIT_USAGE, "it is not JSON");
	return NULL;
}

static struct recording *add(struct recordings *r, const char *file, enum recording_kind kind)
{
	struct recording *bigger = reallocarray(r->of, r->n + 1, sizeof(*bigger));

	if (!bigger)
		return NULL;
	r->of = bigger;
	r->of[r->n] = (struct recording){ .file = file, .kind = kind };
	return &r->of[r->n++];
}

/* Which of those that are kept as they are. */
static bool recognise(struct json_object *v, enum recording_kind *ret)
{
	if (field_text(v, "scenario")[0] && field_object(v, "online") &&
	    field_object(v, "baselines"))
		*ret = RECORDING_SIM;
	else if (field_object(v, "suspend_us") && field(v, "rounds"))
		*ret = RECORDING_BENCH;
	else if (field_array(v, "figures") && field_object(v, "machine"))
		*ret = RECORDING_COSTS;
	else if (field_array(v, "modes") && field_object(v, "alone") && field_object(v, "machine"))
		*ret = RECORDING_HARDWARE;
	else
		return false;
	return true;
}

static int keep(struct input *in, struct recordings *r, struct json_object *value)
{
	const char *error = field_text(field_object(value, "error"), "message");
	enum recording_kind kind;
	struct recording *rec;
	char text[240];

	if (error[0]) {
		snprintf(text, sizeof(text), "nothing was recorded, the command failed: %.160s",
			 error);
		return fail(in, EXIT_USAGE, text);
	}
	if (!recognise(value, &kind))
		return fail(in, EXIT_USAGE, "not a recording of gpreempt");
	rec = add(r, in->file, kind);
	if (!rec)
		return fail_errno(in, -ENOMEM);
	rec->root = json_object_get(value);
	return EXIT_DONE;
}

/* All events and statuses of a file are one recording. */
static int keep_daemon(struct input *in, struct recordings *r, struct json_object *value)
{
	struct recording *last = r->n ? &r->of[r->n - 1] : NULL;
	int error;

	if (!last || last->kind != RECORDING_DAEMON || last->file != in->file) {
		last = add(r, in->file, RECORDING_DAEMON);
		if (last)
			last->daemon = daemon_record_new();
		if (!last || !last->daemon)
			return fail_errno(in, -ENOMEM);
	}
	error = daemon_record_add(last->daemon, value);
	return error ? fail_errno(in, error) : EXIT_DONE;
}

static int take_values(struct input *in, struct recordings *r)
{
	int status = EXIT_DONE;

	for (skip_space(in); in->at < in->len; skip_space(in)) {
		size_t began = in->at, after;
		struct json_object *value = take_value(in, &status);

		if (!value)
			return status;
		after = in->at;
		in->at = began; /* for what is said of it */
		status = daemon_record_is(value) ? keep_daemon(in, r, value) : keep(in, r, value);
		in->at = after;
		json_object_put(value);
		if (status != EXIT_DONE)
			return status;
		if (r->n > REPORT_MAX_FILES)
			return fail(in, EXIT_USAGE, "too many recordings for one page");
	}
	return EXIT_DONE;
}

/* ---- traces ---- */

/* Where the list of events begins, in a file that has one; 0: none. */
static size_t find_events(const struct input *in)
{
	static const char key[] = "\"traceEvents\"";
	size_t len = MIN(in->len, (size_t)HEAD_MAX);
	const char *found = memmem(in->text, len, key, strlen(key));
	size_t at;

	if (!found || in->text[in->at] != '{')
		return 0;
	at = (size_t)(found - in->text) + strlen(key);
	at += strspn(in->text + at, " \t\r\n:");
	return in->text[at] == '[' ? at + 1 : 0;
}

/* @before or what is after, with something in place of the events, is JSON by itself. */
static struct json_object *parse_around(struct input *in, const char *head, size_t head_len,
					const char *tail)
{
	_cleanup_free_ char *text = NULL;
	struct json_object *value;
	enum json_tokener_error error;

	if (asprintf(&text, "%.*s%s", (int)head_len, head, tail) < 0)
		return NULL;
	json_tokener_reset(in->tokener);
	value = json_tokener_parse_ex(in->tokener, text, (int)strlen(text));
	error = json_tokener_get_error(in->tokener);
	if (error == json_tokener_success &&
	    strspn(text + json_tokener_get_parse_end(in->tokener), " \t\r\n") ==
		    strlen(text) - json_tokener_get_parse_end(in->tokener))
		return value;
	json_object_put(value);
	return NULL;
}

static int take_trace_events(struct input *in, struct trace *t)
{
	int status = EXIT_DONE;

	for (skip_space(in); in->at < in->len && in->text[in->at] != ']'; skip_space(in)) {
		struct json_object *event = take_value(in, &status);
		int error;

		if (!event)
			return status;
		error = trace_add(t, event);
		json_object_put(event);
		if (error)
			return fail_errno(in, error);
		skip_space(in);
		if (in->at < in->len && in->text[in->at] == ',')
			in->at++;
		else if (in->at == in->len || in->text[in->at] != ']')
			return fail(in, EXIT_USAGE,
				    in->at == in->len ? "it ends in the middle" : "it is not JSON");
	}
	return in->at < in->len ? EXIT_DONE : fail(in, EXIT_USAGE, "it ends in the middle");
}

static int take_trace(struct input *in, struct recordings *r, size_t events_at)
{
	struct json_object *head = parse_around(in, in->text, events_at, "]}"), *tail;
	struct recording *rec;
	int status;

	if (!head)
		return fail(in, EXIT_USAGE, "it is not JSON");
	rec = add(r, in->file, RECORDING_TRACE);
	if (rec)
		rec->trace = trace_new(head);
	json_object_put(head);
	if (!rec || !rec->trace)
		return fail_errno(in, -ENOMEM);
	in->at = events_at;
	status = take_trace_events(in, rec->trace);
	if (status != EXIT_DONE)
		return status;
	if (in->len - in->at > HEAD_MAX)
		return fail(in, EXIT_USAGE, "more follows the events than gpreempt writes");
	tail = parse_around(in, "{\"traceEvents\":[", strlen("{\"traceEvents\":["),
			    in->text + in->at);
	if (!tail)
		return fail(in, EXIT_USAGE, "it is not JSON");
	json_object_put(tail);
	return trace_complete(rec->trace) ? fail_errno(in, -ENOMEM) : EXIT_DONE;
}

/* ---- all of it ---- */

static int take_all(struct input *in, struct recordings *r)
{
	size_t before = r->n, events_at;
	int status;

	skip_space(in);
	if (in->at == in->len)
		return fail(in, EXIT_USAGE, "it is empty");
	events_at = find_events(in);
	status = events_at ? take_trace(in, r, events_at) : take_values(in, r);
	for (size_t i = before; status == EXIT_DONE && i < r->n; i++) {
		if (r->of[i].daemon && daemon_record_complete(r->of[i].daemon))
			status = fail_errno(in, -ENOMEM);
	}
	return status;
}

static int parse(struct input *in, struct recordings *r)
{
	int status;

	if (memchr(in->text, '\0', in->len))
		return cli_fail(in->cli, EXIT_USAGE, recordings_hint, "'%s' is not text", in->file);
	in->tokener = json_tokener_new_ex(REPORT_DEPTH_MAX);
	if (!in->tokener)
		return fail_errno(in, -ENOMEM);
	json_tokener_set_flags(in->tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8 |
						    JSON_TOKENER_ALLOW_TRAILING_CHARS);
	status = take_all(in, r);
	json_tokener_free(in->tokener);
	return status;
}

int recordings_parse(struct cli *cli, struct recordings *r, const char *file, char *text,
		     size_t len)
{
	struct input in = { .cli = cli, .file = file, .text = text, .len = len };

	return parse(&in, r);
}

int recordings_read(struct cli *cli, struct recordings *r, const char *file)
{
	struct input in = { .cli = cli, .file = file };
	int status = read_file(&in);

	if (status == EXIT_DONE)
		status = parse(&in, r);
	free(in.text);
	return status;
}

void recordings_done(struct recordings *r)
{
	for (size_t i = 0; i < r->n; i++) {
		json_object_put(r->of[i].root);
		trace_free(r->of[i].trace);
		daemon_record_free(r->of[i].daemon);
	}
	free(r->of);
	*r = (struct recordings){ 0 };
}

const char *recording_word(const struct recording *r)
{
	static const char *const words[] = {
		[RECORDING_SIM] = "a simulation",
		[RECORDING_TRACE] = "a simulation over time",
		[RECORDING_BENCH] = "suspends and resumes",
		[RECORDING_COSTS] = "costs of our own code",
		[RECORDING_HARDWARE] = "a benchmark on a GPU",
		[RECORDING_DAEMON] = "what a daemon did",
	};

	return words[r->kind];
}

enum ground recording_ground(const struct recording *r)
{
	switch (r->kind) {
	case RECORDING_SIM:
		return GROUND_MODELLED;
	case RECORDING_TRACE:
		return trace_ground(r->trace);
	case RECORDING_BENCH:
		return field_ground(r->root);
	case RECORDING_HARDWARE:
		return GROUND_MEASURED;
	case RECORDING_DAEMON:
		return daemon_record_ground(r->daemon);
	default:
		return GROUND_UNKNOWN;
	}
}
