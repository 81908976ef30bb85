/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/macros.h"
#include "util/stream.h"
#include "util/text.h"

/* ---- the text format of Prometheus, version 0.0.4: how figures are written, not which ---- */

/* Up to so many labels of one line, ended by a NULL name. Values may be any bytes. */
#define LABELS_MAX 6
struct label {
	const char *name, *value;
};

/* Once for each name, before its lines. */
static void put_family(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* What is no text becomes a question mark; three characters have to be escaped. */
static void put_value(FILE *out, const char *value)
{
	const unsigned char *at = (const unsigned char *)value;

	while (*at) {
		size_t n = text_utf8_bytes(at);

		if (*at == '\\' || *at == '"')
			fprintf(out, "\\%c", *at);
		else if (*at == '\n')
			fputs("\\n", out);
		else if (n == 0 || *at < ' ' || *at == 0x7f)
			fputc('?', out);
		else
			fwrite(at, 1, n, out);
		at += n ? n : 1;
	}
}

static void put_name(FILE *out, const char *name, const struct label *labels)
{
	fputs(name, out);
	for (size_t i = 0; labels && labels[i].name; i++) {
		fprintf(out, "%c%s=\"", i ? ',' : '{', labels[i].name);
		put_value(out, labels[i].value);
		fputc('"', out);
	}
	fputs(labels && labels[0].name ? "} " : " ", out);
}

/* @value in parts of @one, a power of ten, with no more digits than it takes. */
static void put_decimal(FILE *out, uint64_t value, uint64_t one)
{
	uint64_t rest = value % one;
	int digits = 0;

	fprintf(out, "%" PRIu64, value / one);
	if (rest == 0)
		return;
	for (; rest % 10 == 0; one /= 10)
		rest /= 10;
	for (; one > 1; one /= 10)
		digits++;
	fprintf(out, ".%0*" PRIu64, digits, rest);
}

/* @value counts parts of @one, a power of ten: of nanoseconds, say. @labels may be NULL. */
static void put_number(FILE *out, const char *name, const struct label *labels, uint64_t value,
		       uint64_t one)
{
	put_name(out, name, labels);
	put_decimal(out, value, one);
	fputc('\n', out);
}

/* Buckets count all that are no longer than their bound, so the last has everything. */
static void put_histogram(FILE *out, const char *name, const char *help, const struct histogram *h)
{
	uint64_t below = 0;

	put_family(out, name, "histogram", help);
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t bound_ns = histogram_bound_ns(i);

		below += h->counts[i];
		fprintf(out, "%s_bucket{le=\"", name);
		if (bound_ns == UINT64_MAX)
			fputs("+Inf", out);
		else
			put_decimal(out, bound_ns, NSEC_PER_SEC);
		fprintf(out, "\"} %" PRIu64 "\n", below);
	}
	fprintf(out, "%s_sum ", name);
	put_decimal(out, h->sum_ns, NSEC_PER_SEC);
	fprintf(out, "\n%s_count %" PRIu64 "\n", name, h->count);
}

static void counter(FILE *out, const char *name, const char *help, uint64_t value)
{
	put_family(out, name, "counter", help);
	put_number(out, name, NULL, value, 1);
}

static void gauge(FILE *out, const char *name, const char *help, uint64_t value)
{
	put_family(out, name, "gauge", help);
	put_number(out, name, NULL, value, 1);
}

/* ---- fields of records ---- */

struct labels {
	char gpu[16];
	char process[32];
	struct label all[LABELS_MAX];
};

/* Entries of one record, and what is written of them. */
struct rows {
	const struct wire_record *record;
	const char *entries;
	size_t n;
	size_t (*label)(const void *entry, struct labels *ret); /* how many; NULL: they have none */
	uint64_t done; /* fields, a bit each */
};

/* How many of its parts make one of what is told. */
static uint64_t one_of(const struct wire_field *f)
{
	return f->form == WIRE_FORM_NS	     ? NSEC_PER_SEC :
	       f->form == WIRE_FORM_US	     ? NSEC_PER_SEC / NSEC_PER_USEC :
	       f->form == WIRE_FORM_PERMILLE ? 1000 :
					       1;
}

/* One field of all entries. What has the same name as the field before is of its family. */
static void write_field(FILE *out, struct rows *rows, const struct wire_field *f)
{
	const size_t at = (size_t)(f - rows->record->fields);
	struct labels labels = { 0 };

	if (!f->metric || rows->done & 1ull << at)
		return;
	rows->done |= 1ull << at;
	if (at == 0 || !f[-1].metric || strcmp(f->metric, f[-1].metric) != 0)
		put_family(out, f->metric, f->type, f->help);
	for (size_t i = 0; i < rows->n; i++) {
		const char *entry = rows->entries + i * rows->record->size;
		size_t n = rows->label ? rows->label(entry, &labels) : 0;

		labels.all[n] = (struct label){ f->label, f->value };
		if (!(f->flags & WIRE_SEEN) || !wire_is_unseen(rows->record, f, entry))
			put_number(out, f->metric, labels.all, wire_value(f, entry), one_of(f));
	}
}

/* @names: those that come first, in this order. */
static void write_fields(FILE *out, struct rows *rows, const char *names)
{
	const struct wire_field *f;

	while ((f = wire_pick(rows->record, &names)))
		write_field(out, rows, f);
}

static void write_rest(FILE *out, struct rows *rows)
{
	for (size_t i = 0; i < rows->record->n; i++)
		write_field(out, rows, &rows->record->fields[i]);
}

/* ---- the daemon ---- */

static void write_state(FILE *out, const struct gpreempt_daemon_status *s)
{
	struct rows rows = { &wire_status_record, (const char *)s, 1 };
	const struct label info[] = {
		{ "version", GPREEMPT_VERSION },
		{ "backend", s->backend },
		{ "level", s->level },
		{ "policy", s->policy },
		{ 0 },
	};

	put_family(out, "gpreempt_info", "gauge", "What runs: always 1.");
	put_number(out, "gpreempt_info", info, 1, 1);
	write_fields(out, &rows, "paused kernel modelled");
	gauge(out, "gpreempt_blind", "1 while work of some jobs, or of all, goes unseen.",
	      s->blind[0] != '\0');
	write_fields(out, &rows,
		     "gpus online offline jobs queues attached held preemptions inversions "
		     "resolved trips hints hints_refused steps");
	write_rest(out, &rows);
}

static void write_figures(FILE *out, const struct scheduler_figures *f)
{
	counter(out, "gpreempt_scans_total", "Looks for new processes.", f->scans);
	put_histogram(out, "gpreempt_detection_seconds",
		      "From work seen first, or a hint, to the decision.", &f->detection);
	put_histogram(out, "gpreempt_suspend_seconds", "From the decision until a job was off.",
		      &f->suspend);
	put_histogram(out, "gpreempt_resume_seconds", "From the decision until a job ran again.",
		      &f->resume);
	put_histogram(out, "gpreempt_hold_seconds", "How long jobs were kept off.", &f->held);
}

static void write_control(FILE *out, const struct control_figures *f)
{
	gauge(out, "gpreempt_control_clients", "Connections to the control socket.", f->clients);
	counter(out, "gpreempt_control_connections_total", "Connections accepted.", f->connections);
	counter(out, "gpreempt_control_connections_refused_total",
		"Connections beyond what a user, or all, may have.", f->refused);
	counter(out, "gpreempt_control_requests_total", "Requests answered.", f->requests);
	counter(out, "gpreempt_control_requests_limited_total",
		"Requests refused because their user asks too often.", f->limited);
	counter(out, "gpreempt_control_garbage_total", "Packets that were no request.", f->garbage);
}

/* ---- each GPU and each job ---- */

static size_t label_gpu(const void *entry, struct labels *ret)
{
	const struct gpreempt_daemon_gpu *g = entry;

	snprintf(ret->gpu, sizeof(ret->gpu), "%u", g->gpu_id);
	ret->all[0] = (struct label){ "gpu", ret->gpu };
	return 1;
}

static void write_gpus(FILE *out, const struct gpreempt_daemon_gpu *gpus, size_t n)
{
	struct rows rows = { &wire_gpu_record, (const char *)gpus, n, label_gpu };
	struct labels labels = { 0 };

	put_family(out, "gpreempt_gpu_info", "gauge", "What a GPU is called: always 1.");
	for (size_t i = 0; i < n; i++) {
		labels.all[label_gpu(&gpus[i], &labels)] = (struct label){ "name", gpus[i].name };
		put_number(out, "gpreempt_gpu_info", labels.all, 1, 1);
	}
	write_fields(out, &rows, "tripped trips");
	write_rest(out, &rows);
}

static size_t label_job(const void *entry, struct labels *ret)
{
	const struct gpreempt_daemon_job *j = entry;
	const char *class_name = wire_class_name(j->job_class);

	snprintf(ret->gpu, sizeof(ret->gpu), "%u", j->gpu_id);
	snprintf(ret->process, sizeof(ret->process), "%d/%.*s", j->pid, (int)sizeof(j->comm),
		 j->comm);
	ret->all[0] = (struct label){ "gpu", ret->gpu };
	ret->all[1] = (struct label){ "class", class_name ? class_name : "" };
	/* "job" and "instance" are Prometheus's own, and would be overwritten when it scrapes. */
	ret->all[2] = (struct label){ "process", ret->process };
	ret->all[3] = (struct label){ "container", j->container };
	return 4;
}

static void write_jobs(FILE *out, const struct gpreempt_daemon_job *jobs, size_t n)
{
	struct rows rows = { &wire_job_record, (const char *)jobs, n, label_job };

	write_fields(out, &rows,
		     "preempted made_room held_ns stolen_ns ran_ns longest_wait_ns detect_ns "
		     "target_us share_permille queues held blind waiting");
	write_rest(out, &rows);
}

/* ---- all of it ---- */

int metrics_write(struct scheduler *s, const struct control *control, char **ret_text,
		  size_t *ret_len)
{
	_cleanup_free_ struct gpreempt_daemon_job *jobs = NULL;
	struct gpreempt_daemon_gpu gpus[GPU_NODES_MAX];
	struct gpreempt_daemon_status status = { .size = sizeof(status) };
	uint64_t from = 0;
	uint32_t n_gpus, n_jobs;
	struct stream text;
	int r;

	scheduler_gpus(s, 0, gpus, GPU_NODES_MAX, &n_gpus);
	scheduler_jobs(s, &from, SCHEDULER_ANYBODY, NULL, 0, &n_jobs);
	jobs = calloc(n_jobs + 1, sizeof(*jobs));
	if (!jobs)
		return -ENOMEM;
	scheduler_jobs(s, &from, SCHEDULER_ANYBODY, jobs, n_jobs, &n_jobs);
	r = stream_open(&text);
	if (r < 0)
		return r;
	scheduler_status(s, &status);
	write_state(text.out, &status);
	write_figures(text.out, scheduler_figures(s));
	if (control)
		write_control(text.out, control_figures(control));
	write_gpus(text.out, gpus, n_gpus);
	write_jobs(text.out, jobs, n_jobs);
	return stream_close(&text, ret_text, ret_len);
}
