/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/cli.h"
#include "util/curve.h"

static struct json_object *error_to_json(const struct gpreempt_error *e)
{
	struct json_object *inner = json_object_new_object();

	json_object_object_add(inner, "code", json_object_new_int((int)e->kind));
	json_add_string(inner, "message", e->message);
	if (e->hint[0])
		json_add_string(inner, "hint", e->hint);
	if (e->error && strerrorname_np(-e->error))
		json_add_string(inner, "errno", strerrorname_np(-e->error));
	return json_of("error", inner);
}

int cli_fail_error(struct cli *cli, const struct gpreempt_error *error)
{
	struct gpreempt_error e = *error;

	text_clean(e.message);
	text_clean(e.hint);
	if (cli->json) {
		cli_print_json(cli, error_to_json(&e));
		return (int)e.kind;
	}
	fflush(stdout);
	fprintf(stderr, "%s: %s\n", cli->program, e.message);
	if (e.hint[0])
		fprintf(stderr, "  hint: %s\n", e.hint);
	return (int)e.kind;
}

static int fail_v(struct cli *cli, int status, const char *hint, const char *fmt, va_list ap)
{
	struct gpreempt_error e = { .size = sizeof(e), .kind = (enum gpreempt_error_kind)status };

	vsnprintf(e.message, sizeof(e.message), fmt, ap);
	snprintf(e.hint, sizeof(e.hint), "%s", hint ? hint : "");
	return cli_fail_error(cli, &e);
}

int cli_fail(struct cli *cli, int status, const char *hint, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = fail_v(cli, status, hint, fmt, ap);
	va_end(ap);
	return r;
}

int cli_usage(struct cli *cli, const char *fmt, ...)
{
	char hint[96];
	va_list ap;
	int r;

	snprintf(hint, sizeof(hint), "see: gpreempt%s%s --help", cli->command ? " " : "",
		 cli->command ? cli->command->name : "");
	va_start(ap, fmt);
	r = fail_v(cli, EXIT_USAGE, hint, fmt, ap);
	va_end(ap);
	return r;
}

int cli_fail_ctx(struct cli *cli)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	gpreempt_get_error(cli->ctx, &e);
	if (e.kind == GPREEMPT_ERROR_NONE)
		e.kind = GPREEMPT_ERROR_FAILED;
	if (!e.hint[0])
		snprintf(e.hint, sizeof(e.hint), "see what works here with: gpreempt doctor");
	return cli_fail_error(cli, &e);
}

int cli_open(struct cli *cli)
{
	struct gpreempt_error e = { .size = sizeof(e) };

	if (gpreempt_open(cli->device, &cli->ctx, &e) < 0)
		return cli_fail_error(cli, &e);
	return EXIT_DONE;
}

int cli_read_list(struct cli *cli, list_get_fn get, void *of, size_t size, void *ret, size_t *ret_n)
{
	int n = list_read(get, of, size, ret);

	if (n == -ENOMEM)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	if (n < 0)
		return cli_fail_ctx(cli);
	*ret_n = (size_t)n;
	return EXIT_DONE;
}

int cli_print_json(struct cli *cli, struct json_object *object)
{
	const char *text =
		object ? json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN) : NULL;

	if (!text)
		return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
	puts(text);
	json_object_put(object);
	return EXIT_DONE;
}

int cli_answer(struct cli *cli, struct json_object *object, const char *fmt, ...)
{
	va_list ap;

	if (cli->json)
		return cli_print_json(cli, object);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	json_object_put(object);
	return EXIT_DONE;
}

bool cli_stdout_broken(void)
{
	return fflush(stdout) != 0 || ferror(stdout);
}

bool is_terminal(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

void json_add(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

void json_add_uint(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

/* Help is the one text of several lines; it is ours. */
void json_add_string(struct json_object *object, const char *key, const char *value)
{
	_cleanup_free_ char *clean = strchr(value, '\n') ? NULL : strdup(value);

	if (clean)
		text_clean(clean);
	json_object_object_add(object, key, json_object_new_string(clean ? clean : value));
}

struct json_object *json_of(const char *key, struct json_object *value)
{
	struct json_object *object = json_object_new_object();

	json_add(object, key, value);
	return object;
}

struct json_object *json_decimal(double value, int digits)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*f", digits, value);
	return json_object_new_double_s(value, text);
}

struct json_object *json_us(uint64_t ns)
{
	return json_decimal((double)ns / 1000, 3);
}

struct json_object *json_curve(const uint64_t *ns)
{
	struct json_object *object = json_object_new_object();
	struct json_object *pct = json_object_new_array(), *us = json_object_new_array();

	for (size_t i = 0; i < CURVE_POINTS; i++) {
		uint32_t permille = curve_permille(i);

		json_object_array_add(pct, json_decimal(permille / 10.0, permille % 10 ? 1 : 0));
		json_object_array_add(us, json_us(ns[i]));
	}
	json_add(object, "pct", pct);
	json_add(object, "us", us);
	return object;
}

const char *bold(const struct cli *cli, const char *text, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", cli->colour ? "\033[1m" : "", text,
		 cli->colour ? "\033[0m" : "");
	return buf;
}

bool cli_has(struct cli *cli, enum gpreempt_ability ability)
{
	return gpreempt_abilities(cli->ctx) & ability;
}

const char *cli_unit(struct cli *cli)
{
	return cli_has(cli, GPREEMPT_HAS_QUEUES) ? "queue" : "channel group";
}

bool cli_is_alone(struct cli *cli)
{
	return strcmp(gpreempt_backend(cli->ctx), "model") == 0;
}

bool cli_is_modelled(struct cli *cli)
{
	struct gpreempt_device_info info = { .size = sizeof(info) };

	return gpreempt_is_modelled(cli->ctx) ||
	       (gpreempt_get_device_info(cli->ctx, &info) >= 0 && info.emulated);
}
