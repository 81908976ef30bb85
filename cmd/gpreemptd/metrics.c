/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/gpreemptd/prometheus.h"
#include "util/macros.h"
#include "util/stream.h"

static void counter(FILE *out, const char *name, const char *help, uint64_t value)
{
	prom_family(out, name, "counter", help);
	prom_count(out, name, NULL, value);
}

static void gauge(FILE *out, const char *name, const char *help, uint64_t value)
{
	prom_family(out, name, "gauge", help);
	prom_count(out, name, NULL, value);
}

/* ---- the daemon ---- */

static void write_state(FILE *out, const struct wire_status *s)
{
	const struct prom_label info[] = {
		{ "version", GPREEMPT_VERSION },
		{ "backend", s->backend },
		{ "level", s->level },
		{ "policy", s->policy },
		{ 0 },
	};
	static const struct prom_label online[] = { { "class", "online" }, { 0 } };
	static const struct prom_label offline[] = { { "class", "offline" }, { 0 } };

	prom_family(out, "gpreempt_info", "gauge", "What runs: always 1.");
	prom_count(out, "gpreempt_info", info, 1);
	gauge(out, "gpreempt_paused", "1 while every device is let go of on request.",
	      !!(s->flags & WIRE_STATUS_PAUSED));
	gauge(out, "gpreempt_kernel_scheduler",
	      "1 while the scheduler inside the driver decides, and not the daemon.",
	      !!(s->flags & WIRE_STATUS_HANDED_OVER));
	gauge(out, "gpreempt_modelled", "1 where times are a software device's.",
	      !!(s->flags & WIRE_STATUS_MODELLED));
	gauge(out, "gpreempt_blind", "1 while work of some jobs, or of all, goes unseen.",
	      s->blind[0] != '\0');
	gauge(out, "gpreempt_gpus", "GPUs known.", s->gpus);
	prom_family(out, "gpreempt_processes", "gauge", "Processes with a class on the GPUs.");
	prom_count(out, "gpreempt_processes", online, s->online);
	prom_count(out, "gpreempt_processes", offline, s->offline);
	gauge(out, "gpreempt_jobs", "Processes on a GPU, counted once for each GPU.", s->jobs);
	gauge(out, "gpreempt_queues", "Queues known.", s->queues);
	gauge(out, "gpreempt_attached_processes", "Offline processes that could be held now.",
	      s->attached);
	gauge(out, "gpreempt_held_processes", "Processes kept off the GPU now.", s->held);
}

static void write_figures(FILE *out, const struct scheduler_figures *f)
{
	counter(out, "gpreempt_preemptions_total", "Jobs taken off a GPU.", f->preemptions);
	counter(out, "gpreempt_inversions_total",
		"Times that online work was seen waiting behind offline work.", f->inversions);
	counter(out, "gpreempt_inversions_resolved_total",
		"Of these, those in which the offline work was taken off.", f->resolved);
	counter(out, "gpreempt_trips_total",
		"GPUs on which a preemption failed and no more are tried.", f->trips);
	counter(out, "gpreempt_hints_total", "Announcements of work accepted.", f->hints);
	counter(out, "gpreempt_hints_refused_total", "Announcements of work from jobs not online.",
		f->hints_refused);
	counter(out, "gpreempt_steps_total", "Decisions of the engine.", f->steps);
	counter(out, "gpreempt_scans_total", "Looks for new processes.", f->scans);
	prom_histogram(out, "gpreempt_detection_seconds",
		       "From work seen first, or a hint, to the decision.", &f->detection);
	prom_histogram(out, "gpreempt_suspend_seconds", "From the decision until a job was off.",
		       &f->suspend);
	prom_histogram(out, "gpreempt_resume_seconds", "From the decision until a job ran again.",
		       &f->resume);
	prom_histogram(out, "gpreempt_hold_seconds", "How long jobs were kept off.", &f->held);
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

/* ---- everything there is one of for each GPU or job ---- */

static int collect_gpus(struct scheduler *s, struct wire_gpu **ret, size_t *ret_n)
{
	uint32_t total;

	*ret = calloc(GPU_NODES_MAX, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	*ret_n = scheduler_gpus(s, 0, *ret, GPU_NODES_MAX, &total);
	return 0;
}

/* Grows by whole answers; what comes or goes meanwhile cannot: it is one thread. */
#define MANY 64u

static int collect_jobs(struct scheduler *s, struct wire_job **ret, size_t *ret_n)
{
	_cleanup_free_ struct wire_job *jobs = NULL;
	size_t n = 0, got;
	uint32_t total;

	do {
		struct wire_job *grown = reallocarray(jobs, n + MANY, sizeof(*jobs));

		if (!grown)
			return -ENOMEM;
		jobs = grown;
		got = scheduler_jobs(s, n ? jobs[n - 1].key : 0, SCHEDULER_ANYBODY, jobs + n, MANY,
				     &total);
		n += got;
	} while (got == MANY);
	*ret = steal_ptr(&jobs);
	*ret_n = n;
	return 0;
}

enum form { COUNT32, COUNT64, SECONDS, MICROSECONDS, PERMILLE, FLAG };

struct column {
	const char *name, *type, *help;
	enum form form;
	size_t offset;
	uint32_t flag; /* FLAG: of the flags there */
	struct prom_label label; /* one more than its entry has */
	bool of_work; /* of a job whose work is not seen there is none */
};

static void put(FILE *out, const struct column *c, const struct prom_label *labels,
		const void *entry)
{
	const void *field = (const char *)entry + c->offset;

	switch (c->form) {
	case COUNT32:
		prom_count(out, c->name, labels, *(const uint32_t *)field);
		break;
	case COUNT64:
		prom_count(out, c->name, labels, *(const uint64_t *)field);
		break;
	case SECONDS:
		prom_seconds(out, c->name, labels, *(const uint64_t *)field);
		break;
	case MICROSECONDS:
		prom_seconds(out, c->name, labels, *(const uint64_t *)field * NSEC_PER_USEC);
		break;
	case PERMILLE:
		prom_permille(out, c->name, labels, *(const uint16_t *)field);
		break;
	case FLAG:
		prom_count(out, c->name, labels, !!(*(const uint32_t *)field & c->flag));
		break;
	}
}

/* Columns of one name follow each other: they are one family. */
static bool begins_family(const struct column *columns, size_t i)
{
	return i == 0 || strcmp(columns[i].name, columns[i - 1].name) != 0;
}

#define GPU(form, field) form, offsetof(struct wire_gpu, field)
static const struct column gpu_columns[] = {
	{ "gpreempt_gpu_tripped", "gauge", "1: a preemption failed, no more are tried.",
	  GPU(FLAG, flags), WIRE_GPU_TRIPPED },
	{ "gpreempt_gpu_trips_total", "counter", "Preemptions that failed.", GPU(COUNT64, trips) },
	{ "gpreempt_gpu_slots", "gauge", "Hardware queue slots; 0: not known.",
	  GPU(COUNT32, slots) },
	{ "gpreempt_gpu_slots_used",
	  "gauge",
	  "Slots with a queue.",
	  GPU(COUNT32, slots_online),
	  0,
	  { "class", "online" } },
	{ "gpreempt_gpu_slots_used",
	  "gauge",
	  "",
	  GPU(COUNT32, slots_offline),
	  0,
	  { "class", "offline" } },
	{ "gpreempt_gpu_slots_reserved", "gauge", "Slots kept for online queues.",
	  GPU(COUNT32, slots_reserved) },
	{ "gpreempt_gpu_cycles_total", "counter", "Times everybody on it was made to stand still.",
	  GPU(COUNT64, cycles) },
	{ "gpreempt_gpu_denied_total",
	  "counter",
	  "Preemptions wanted and not made.",
	  GPU(COUNT64, denied_by_budget),
	  0,
	  { "reason", "budget" } },
	{ "gpreempt_gpu_denied_total",
	  "counter",
	  "",
	  GPU(COUNT64, denied_by_cost),
	  0,
	  { "reason", "cost" } },
};

static void write_gpus(FILE *out, const struct wire_gpu *gpus, size_t n)
{
	char id[16];

	prom_family(out, "gpreempt_gpu_info", "gauge", "What a GPU is called: always 1.");
	for (size_t i = 0; i < n; i++) {
		const struct prom_label labels[] = { { "gpu", id },
						     { "name", gpus[i].name },
						     { 0 } };

		snprintf(id, sizeof(id), "%u", gpus[i].gpu);
		prom_count(out, "gpreempt_gpu_info", labels, 1);
	}
	for (size_t c = 0; c < ARRAY_SIZE(gpu_columns); c++) {
		const struct column *column = &gpu_columns[c];

		if (begins_family(gpu_columns, c))
			prom_family(out, column->name, column->type, column->help);
		for (size_t i = 0; i < n; i++) {
			const struct prom_label labels[] = { { "gpu", id }, column->label, { 0 } };

			snprintf(id, sizeof(id), "%u", gpus[i].gpu);
			put(out, column, labels, &gpus[i]);
		}
	}
}

#define JOB(form, field) form, offsetof(struct wire_job, field)
static const struct column job_columns[] = {
	{ "gpreempt_job_preemptions_total", "counter", "Times it was taken off the GPU.",
	  JOB(COUNT64, preempted) },
	{ "gpreempt_job_made_room_total", "counter", "Times others were taken off for it.",
	  JOB(COUNT64, made_room) },
	{ "gpreempt_job_held_seconds_total", "counter", "Time kept off the GPU.",
	  JOB(SECONDS, held_ns) },
	{ "gpreempt_job_stolen_seconds_total", "counter", "Of that, time in which it had work.",
	  JOB(SECONDS, stolen_ns), .of_work = true },
	{ "gpreempt_job_run_seconds_total", "counter", "Time on the GPU with work.",
	  JOB(SECONDS, ran_ns), .of_work = true },
	{ "gpreempt_job_longest_wait_seconds", "gauge",
	  "Longest time it had work and did not run, or, online, not without offline work.",
	  JOB(SECONDS, longest_wait_ns) },
	{ "gpreempt_job_detection_seconds", "gauge", "How long its last request went unnoticed.",
	  JOB(SECONDS, detect_ns) },
	{ "gpreempt_job_target_seconds", "gauge", "Within which its work should be done; 0: none.",
	  JOB(MICROSECONDS, target_us) },
	{ "gpreempt_job_share_ratio", "gauge", "Of the last second, on the GPU with work.",
	  JOB(PERMILLE, share_permille), .of_work = true },
	{ "gpreempt_job_queues", "gauge", "Queues it has.", JOB(COUNT32, queues) },
	{ "gpreempt_job_held", "gauge", "1 while it is kept off.", JOB(FLAG, flags),
	  WIRE_JOB_HELD },
	{ "gpreempt_job_blind", "gauge", "1 while its work goes unseen though it could be seen.",
	  JOB(FLAG, flags), WIRE_JOB_BLIND },
	{ "gpreempt_job_waiting", "gauge", "1 while it has work and does not run.",
	  JOB(FLAG, flags), WIRE_JOB_WAITING, .of_work = true },
};

struct job_labels {
	char gpu[16];
	char process[32];
	char container[sizeof(((struct wire_job *)0)->container) + 1];
	struct prom_label labels[5];
};

static void label_job(const struct wire_job *j, struct job_labels *ret)
{
	static const char *const classes[] = { "none", "offline", "online" };
	const char *class_name = j->job_class < ARRAY_SIZE(classes) ? classes[j->job_class] : "";

	snprintf(ret->gpu, sizeof(ret->gpu), "%u", j->gpu);
	snprintf(ret->process, sizeof(ret->process), "%d/%.*s", j->pid, (int)sizeof(j->comm),
		 j->comm);
	snprintf(ret->container, sizeof(ret->container), "%.*s", (int)sizeof(j->container),
		 j->container);
	ret->labels[0] = (struct prom_label){ "gpu", ret->gpu };
	ret->labels[1] = (struct prom_label){ "class", class_name };
	/* "job" and "instance" are Prometheus's own, and would be overwritten when it scrapes. */
	ret->labels[2] = (struct prom_label){ "process", ret->process };
	ret->labels[3] = (struct prom_label){ "container", ret->container };
	ret->labels[4] = (struct prom_label){ 0 };
}

static void write_jobs(FILE *out, const struct wire_job *jobs, size_t n)
{
	for (size_t c = 0; c < ARRAY_SIZE(job_columns); c++) {
		if (begins_family(job_columns, c))
			prom_family(out, job_columns[c].name, job_columns[c].type,
				    job_columns[c].help);
		for (size_t i = 0; i < n; i++) {
			struct job_labels labels;

			if (job_columns[c].of_work && (jobs[i].flags & WIRE_JOB_UNSEEN))
				continue;
			label_job(&jobs[i], &labels);
			put(out, &job_columns[c], labels.labels, &jobs[i]);
		}
	}
}

/* ---- all of it ---- */

int metrics_write(struct scheduler *s, const struct control *control, char **ret_text,
		  size_t *ret_len)
{
	_cleanup_free_ struct wire_gpu *gpus = NULL;
	_cleanup_free_ struct wire_job *jobs = NULL;
	struct wire_status status = { 0 };
	size_t n_gpus, n_jobs;
	struct stream text;
	int r;

	if (collect_gpus(s, &gpus, &n_gpus) < 0 || collect_jobs(s, &jobs, &n_jobs) < 0)
		return -ENOMEM;
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

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A new file each time: one that was left lying there, or is somebody's link, is not written to. */
static int write_beside(const char *path, const char *text, size_t len)
{
	_cleanup_close_ int fd = -1;

	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* Whatever the umask. It tells more of everybody's jobs than strangers may know. */
	if (fchmod(fd, 0640) < 0)
		return -errno;
	return write_all(fd, text, len);
}

int metrics_save(const char *path, const char *text, size_t len)
{
	_cleanup_free_ char *beside = NULL;
	int r;

	if (asprintf(&beside, "%s.new", path) < 0) {
		beside = NULL; /* asprintf leaves it undefined */
		return -ENOMEM;
	}
	r = write_beside(beside, text, len);
	if (r == 0 && rename(beside, path) < 0)
		r = -errno;
	if (r < 0)
		unlink(beside);
	return r;
}
