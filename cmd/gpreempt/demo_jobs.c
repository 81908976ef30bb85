/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

#include "cmd/gpreempt/demo.h"

#define MAX_ARGS 24
#define OUTPUT_BYTES 8192

struct args {
	char text[MAX_ARGS][128];
	char *argv[MAX_ARGS + 1];
	int n;
};

static void add(struct args *a, const char *fmt, ...) _printf_(2, 3);
static void add(struct args *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->text[a->n], sizeof(a->text[0]), fmt, ap);
	va_end(ap);
	a->argv[a->n] = a->text[a->n];
	a->argv[++a->n] = NULL;
}

static void common_args(const struct demo *d, struct args *a, const char *name, int gpu,
			unsigned int kernel_us)
{
	add(a, "gpreempt");
	add(a, "--json");
	add(a, "load");
	add(a, "--socket=%s", d->control);
	add(a, "--name=%s", name);
	add(a, "--gpu=%d", gpu);
	add(a, "--kernel-us=%u", kernel_us);
}

/* Starts it and tells the daemon what it is. */
static int start_job(struct demo *d, struct args *a, enum gpreempt_class job_class,
		     struct demo_child *ret)
{
	struct gpreempt_class_request request = {
		.size = sizeof(request),
		.job_class = job_class,
		.priority = -1,
	};
	struct demo_start how = {
		.program = "/proc/self/exe",
		.argv = a->argv,
		.capture = true,
		.err_fd = -1,
		.keep_fd = -1,
		.death = SIGKILL,
	};
	char selector[16];
	int r = demo_start(d, &how, ret);

	if (r < 0)
		return cli_fail(d->cli, EXIT_FAILED, "look at free memory and processes",
				"no process for a job: %s", strerror(-r));
	snprintf(selector, sizeof(selector), "%d", (int)ret->pid);
	if (gpreempt_daemon_set_class(d->asking, selector, &request) < 0)
		return daemon_failed(d->cli, d->asking);
	return EXIT_DONE;
}

/* ---- what they say at their end ---- */

static double number(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) ? json_object_get_double(value) : 0;
}

static uint64_t count(struct json_object *o, const char *key)
{
	return (uint64_t)number(o, key);
}

static void take_figures(struct json_object *o, struct demo_job *ret)
{
	struct json_object *latency, *order;

	ret->requests = count(o, "requests");
	ret->kernels = count(o, "kernels");
	ret->complete = count(o, "complete");
	ret->unfinished = count(o, "unfinished");
	ret->saves = count(o, "saves");
	ret->goodput_pct = number(o, "goodput_pct");
	ret->in_order =
		json_object_object_get_ex(o, "in_order", &order) && json_object_get_boolean(order);
	if (!json_object_object_get_ex(o, "latency_us", &latency))
		return;
	ret->mean_us = number(latency, "avg");
	ret->p50_us = number(latency, "p50");
	ret->p99_us = number(latency, "p99");
	ret->max_us = number(latency, "max");
}

/* Asks it to end and reads what it says: less than a pipe holds. */
static int finish_job(struct demo *d, struct demo_child *c, struct demo_job *ret)
{
	char text[OUTPUT_BYTES];
	size_t len = 0;
	struct json_object *o;
	ssize_t r;

	*ret = (struct demo_job){ .pid = c->pid };
	kill(c->pid, SIGTERM);
	while ((r = read(c->out_fd, text + len, sizeof(text) - 1 - len)) != 0 &&
	       (r > 0 || errno == EINTR))
		len += r > 0 ? (size_t)r : 0;
	text[len] = '\0';
	demo_stop(c, SIGTERM);
	o = json_tokener_parse(text);
	if (!o || !json_object_is_type(o, json_type_object) ||
	    !json_object_object_get_ex(o, "kernels", NULL)) {
		json_object_put(o);
		text_clean(text); /* one object with its error, if anything */
		return cli_fail(d->cli, EXIT_FAILED, "please report it",
				"a job of the demonstration failed: %s", text);
	}
	take_figures(o, ret);
	json_object_put(o);
	return EXIT_DONE;
}

int demo_run_part(struct demo *d, unsigned int requests, struct demo_part *part)
{
	struct demo_child train = { .out_fd = -1 }, infer = { .out_fd = -1 };
	struct args train_args = { 0 }, infer_args = { 0 };
	int status;

	common_args(d, &train_args, "train", part->train_gpu, DEMO_KERNEL_US);
	add(&train_args, "--queues=%u", DEMO_TRAIN_QUEUES);
	add(&train_args, "--priority=0");
	common_args(d, &infer_args, "infer", part->infer_gpu, DEMO_REQUEST_US);
	add(&infer_args, "--online");
	add(&infer_args, "--every-ms=%u", DEMO_EVERY_MS);
	add(&infer_args, "--requests=%u", requests);
	add(&infer_args, "--priority=11");

	if (gpreempt_daemon_set_policy(d->asking, part->policy) < 0)
		return daemon_failed(d->cli, d->asking);
	status = start_job(d, &train_args, GPREEMPT_CLASS_OFFLINE, &train);
	if (status == EXIT_DONE)
		status = start_job(d, &infer_args, GPREEMPT_CLASS_ONLINE, &infer);
	if (status == EXIT_DONE)
		status = demo_wait(d, &infer, &train); /* who ends first is the service */
	if (status == EXIT_DONE)
		status = finish_job(d, &infer, &part->infer);
	if (status == EXIT_DONE)
		status = finish_job(d, &train, &part->train);
	demo_take_events(d);
	demo_stop(&infer, SIGKILL);
	demo_stop(&train, SIGKILL);
	return status;
}
