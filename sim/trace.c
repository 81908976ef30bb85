/* SPDX-License-Identifier: MIT */
/*
 * A run as a file for trace viewers (Trace Event format, JSON).
 *
 * Each GPU is a process of the viewer. A job has a row there with what it did on the GPU and when
 * it was held off it; as it cannot do both, the two share the row. Below are its requests, from
 * submission until done, as many rows as it has queues. A flow leads from where a request was
 * submitted to where the GPU began with it. A counter has the hardware queue slots of the GPU.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#include "sim/sim.h"
#include "util/macros.h"

#define BUFFER_BYTES (256 * 1024)

struct process {
	const struct sim_job *job;
	uint32_t copy; /* of the job */
	uint32_t gpu; /* the first */
	uint32_t first_row; /* rows are numbered throughout the file, from 1 */
	uint32_t lanes; /* rows for requests, on each of its GPUs */
	uint64_t *lane_ends_ns; /* of each GPU the lanes in turn: the end of the last request */
};

struct sim_trace {
	FILE *file;
	const struct sim_scenario *s;
	struct process *processes;
	size_t n_processes;
	uint64_t flows;
	int failed; /* -errno of the first write that failed */
};

/* ---- writing ---- */

static void put(struct sim_trace *t, const char *format, ...) _printf_(2, 3);

static void put(struct sim_trace *t, const char *format, ...)
{
	va_list args;

	if (t->failed)
		return;
	va_start(args, format);
	errno = 0;
	if (vfprintf(t->file, format, args) < 0)
		t->failed = errno ? -errno : -EIO;
	va_end(args);
}

/* Names can come from anybody's file: whatever is not plain ASCII becomes a question mark. */
static void put_text(struct sim_trace *t, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			put(t, "\\%c", *text);
		else
			put(t, "%c", *text >= ' ' && *text <= '~' ? *text : '?');
	}
}

static void put_name(struct sim_trace *t, uint32_t process)
{
	const struct process *p;

	if (process >= t->n_processes) {
		put(t, "nobody");
		return;
	}
	p = &t->processes[process];
	put_text(t, p->job->name);
	if (p->job->copies > 1)
		put(t, "/%" PRIu32, p->copy);
}

/* The format wants microseconds; a fraction keeps our nanoseconds. */
static void put_us(struct sim_trace *t, const char *key, uint64_t ns)
{
	put(t, ",\"%s\":%llu.%03llu", key, ns / NSEC_PER_USEC, ns % NSEC_PER_USEC);
}

static void begin_event(struct sim_trace *t, const char *phase, uint32_t gpu, uint32_t row,
			uint64_t at_ns)
{
	put(t, ",\n{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, phase, gpu + 1, row);
	put_us(t, "ts", at_ns);
}

static void begin_slice(struct sim_trace *t, uint32_t gpu, uint32_t row, uint64_t from_ns,
			uint64_t to_ns)
{
	begin_event(t, "X", gpu, row, from_ns);
	put_us(t, "dur", to_ns - from_ns);
}

static void put_flow(struct sim_trace *t, bool begins, uint32_t gpu, uint32_t row, uint64_t at_ns)
{
	begin_event(t, begins ? "s" : "f", gpu, row, at_ns);
	put(t, ",\"cat\":\"request\",\"name\":\"starts\",\"id\":%" PRIu64 "%s}", t->flows,
	    begins ? "" : ",\"bp\":\"e\"");
}

/* ---- rows ---- */

static uint32_t n_gpus(const struct sim_trace *t, const struct process *p)
{
	return p->job->gang ? t->s->gpus : 1;
}

/* Which of the GPUs of a process it is, from 0. */
static uint32_t nth_gpu(const struct sim_trace *t, const struct process *p, uint32_t gpu)
{
	return p->job->gang ? (gpu + t->s->gpus - p->gpu) % t->s->gpus : 0;
}

static uint32_t work_row(const struct sim_trace *t, const struct process *p, uint32_t gpu)
{
	return p->first_row + nth_gpu(t, p, gpu) * (1 + p->lanes);
}

/*
 * Requests are told of in the order they are done. Whoever puts each where the last one ended
 * latest never needs more lanes than there were requests at a time.
 */
static uint32_t take_lane(const struct sim_trace *t, struct process *p, uint32_t gpu,
			  uint64_t from_ns, uint64_t to_ns)
{
	uint64_t *ends = &p->lane_ends_ns[nth_gpu(t, p, gpu) * p->lanes];
	uint32_t best = p->lanes;

	for (uint32_t i = 0; i < p->lanes; i++) {
		if (ends[i] <= from_ns && (best == p->lanes || ends[i] > ends[best]))
			best = i;
	}
	if (best < p->lanes)
		ends[best] = to_ns;
	return best;
}

static void put_row_name(struct sim_trace *t, uint32_t gpu, uint32_t process, uint32_t row,
			 const char *suffix)
{
	bool online = t->processes[process].job->online;

	put(t, ",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, gpu + 1, row);
	put(t, ",\"name\":\"thread_name\",\"args\":{\"name\":\"");
	put_name(t, process);
	put(t, "%s\",\"class\":\"%s\"}}", suffix, online ? "online" : "offline");
	put(t, ",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, gpu + 1, row);
	put(t, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%" PRIu32 "}}", row);
}

static void put_rows(struct sim_trace *t, uint32_t process)
{
	const struct process *p = &t->processes[process];

	for (uint32_t i = 0; i < n_gpus(t, p); i++) {
		uint32_t gpu = (p->gpu + i) % t->s->gpus;
		uint32_t row = work_row(t, p, gpu);

		put_row_name(t, gpu, process, row, "");
		for (uint32_t lane = 0; lane < p->lanes; lane++)
			put_row_name(t, gpu, process, row + 1 + lane, " requests");
	}
}

/* Whatever may come later has its name here. */
static void put_header(struct sim_trace *t)
{
	char assumes[SIM_ASSUMES];

	put(t, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"scenario\":\"");
	put_text(t, t->s->name);
	put(t, "\",\"chip\":\"");
	put_text(t, t->s->chip);
	put(t, "\",\"policy\":\"");
	put_text(t, t->s->policy);
	put(t, "\",\"assumes\":\"");
	put_text(t, sim_assumes(t->s, assumes));
	put(t, "\",\"modelled\":true,\"duration_ns\":%" PRIu64 "},\n", t->s->duration_ns);
	put(t, "\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":0,\"tid\":0,");
	put(t, "\"name\":\"process_name\",\"args\":{\"name\":\"gpreempt sim\"}}");
	for (uint32_t i = 0; i < t->s->gpus; i++) {
		put(t, ",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":0,", i + 1);
		put(t, "\"name\":\"process_name\",\"args\":{\"name\":\"GPU %" PRIu32 "\"}}", i);
	}
	for (size_t i = 0; i < t->n_processes; i++)
		put_rows(t, (uint32_t)i);
}

/* ---- opening and closing ---- */

static void free_trace(struct sim_trace *t)
{
	for (size_t i = 0; i < t->n_processes; i++)
		free(t->processes[i].lane_ends_ns);
	free(t->processes);
	free(t);
}

static bool add_process(struct sim_trace *t, const struct sim_job *job, uint32_t copy,
			uint32_t *row)
{
	struct process *p = &t->processes[t->n_processes];

	*p = (struct process){
		.job = job,
		.copy = copy,
		.gpu = (job->gpu + copy) % MAX(t->s->gpus, 1u),
		.first_row = *row,
		.lanes = MAX(job->queues, 1u),
	};
	p->lane_ends_ns = calloc((size_t)n_gpus(t, p) * p->lanes, sizeof(*p->lane_ends_ns));
	if (!p->lane_ends_ns)
		return false;
	*row += n_gpus(t, p) * (1 + p->lanes);
	t->n_processes++;
	return true;
}

static bool add_processes(struct sim_trace *t)
{
	uint32_t row = 1;
	size_t n = 0;

	for (size_t i = 0; i < t->s->n_jobs; i++)
		n += t->s->jobs[i].copies;
	t->processes = calloc(n + 1, sizeof(*t->processes));
	if (!t->processes)
		return false;
	for (size_t i = 0; i < t->s->n_jobs; i++) {
		for (uint32_t copy = 0; copy < t->s->jobs[i].copies; copy++) {
			if (!add_process(t, &t->s->jobs[i], copy, &row))
				return false;
		}
	}
	return true;
}

struct sim_trace *sim_trace_open(const char *path, const struct sim_scenario *s)
{
	struct sim_trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->s = s;
	if (!add_processes(t)) {
		free_trace(t);
		errno = ENOMEM;
		return NULL;
	}
	t->file = fopen(path, "we");
	if (!t->file) {
		int error = errno;

		free_trace(t);
		errno = error;
		return NULL;
	}
	setvbuf(t->file, NULL, _IOFBF, BUFFER_BYTES);
	put_header(t);
	return t;
}

int sim_trace_close(struct sim_trace *t)
{
	int r;

	if (!t)
		return 0;
	put(t, "\n]}\n");
	if (fclose(t->file) && !t->failed)
		t->failed = -errno;
	r = t->failed;
	free_trace(t);
	return r;
}

/* ---- what happened ---- */

void sim_trace_work(struct sim_trace *t, uint32_t gpu, uint32_t process, uint64_t from_ns,
		    uint64_t to_ns, uint64_t request)
{
	begin_slice(t, gpu, work_row(t, &t->processes[process], gpu), from_ns, to_ns);
	put(t, ",\"cat\":\"work\",\"name\":\"request %" PRIu64 "\"}", request);
}

void sim_trace_preemption(struct sim_trace *t, uint32_t gpu, uint32_t victim, uint32_t because,
			  uint64_t from_ns, uint64_t to_ns)
{
	begin_slice(t, gpu, work_row(t, &t->processes[victim], gpu), from_ns, to_ns);
	put(t, ",\"cat\":\"preemption\",\"name\":\"held\",\"args\":{\"victim\":\"");
	put_name(t, victim);
	put(t, "\",\"because\":\"");
	put_name(t, because);
	put(t, "\"}}");
}

void sim_trace_request(struct sim_trace *t, uint32_t gpu, uint32_t process, uint64_t request,
		       uint64_t submitted_ns, uint64_t started_ns, uint64_t done_ns)
{
	struct process *p = &t->processes[process];
	uint32_t work = work_row(t, p, gpu);
	uint32_t lane = take_lane(t, p, gpu, submitted_ns, done_ns);
	uint32_t row = work + 1 + lane;

	if (lane == p->lanes)
		return;
	begin_slice(t, gpu, row, submitted_ns, done_ns);
	put(t, ",\"cat\":\"request\",\"name\":\"request %" PRIu64 "\"}", request);
	/* Work of no length was never seen at it. */
	if (started_ns >= done_ns)
		return;
	if (started_ns > submitted_ns) {
		begin_slice(t, gpu, row, submitted_ns, started_ns);
		put(t, ",\"cat\":\"request\",\"name\":\"waits\"}");
	}
	t->flows++;
	put_flow(t, true, gpu, row, submitted_ns);
	put_flow(t, false, gpu, work, started_ns);
}

void sim_trace_slots(struct sim_trace *t, uint32_t gpu, uint64_t at_ns,
		     const struct sim_slots *slots)
{
	begin_event(t, "C", gpu, 0, at_ns);
	put(t, ",\"name\":\"HQD slots\",\"args\":{\"online\":%" PRIu32 ",\"offline\":%" PRIu32,
	    slots->online, slots->offline);
	put(t, ",\"idle\":%" PRIu32 ",\"free\":%" PRIu32 "}}", slots->idle, slots->free);
}
