/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cmd/gpreemptd/device_jobs_internal.h"
#include "gpu/files.h"
#include "gpu/kfd/procs.h"
#include "util/macros.h"

#define STAT_MAX_BYTES 4096

_Static_assert(DEVICE_MAX_PENDING == 64, "told_mask has a bit for each");

/* An answer that finds no room ends the connection: who asks has to listen. */
static int answer(struct device_job *job, union device_any *packet, enum device_type type,
		  size_t bytes, uint32_t seq)
{
	packet->h = device_header(type, bytes, seq);
	return job_send(job, packet, bytes);
}

static int refuse(struct device_job *job, uint32_t seq, int error, const char *message)
{
	union device_any a = { .error = { .error = -error } };

	snprintf(a.error.message, sizeof(a.error.message), "%s", message);
	return answer(job, &a, DEVICE_ERROR, sizeof(a.error), seq);
}

/* ---- coming and going ---- */

/* 0: nobody can tell. */
static uint64_t start_ticks(pid_t pid)
{
	_cleanup_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	struct gkfd_proc_ident ident = { 0 };
	char path[32];
	size_t len;

	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	if (files_read(proc, path, STAT_MAX_BYTES, &text, &len) < 0 ||
	    gkfd_proc_parse_stat(text, len, &ident) < 0)
		return 0;
	return ident.start_ticks;
}

/* What a program on ROCm has done before its first line runs. */
static int arrive(struct model *m, const struct device_job *job)
{
	struct model_proc_spec spec = {
		.pid = job->pid,
		.uid = job->uid,
		.start_ticks = start_ticks(job->pid),
	};
	struct model_task task = { .pid = job->pid, .tid = job->pid };
	int r;

	r = model_proc_start(m, &spec);
	if (r < 0)
		return r;
	r = model_kfd_open(m, task);
	for (uint32_t i = 0; r >= 0 && i < model_n_gpus(m); i++)
		r = model_vm_acquire(m, job->pid, i);
	if (r >= 0)
		r = model_runtime_enable(m, job->pid);
	if (r == -ENOTTY)
		r = 0; /* a driver from before the debug interface */
	if (r < 0)
		model_proc_exit(m, job->pid);
	return r;
}

static int say_welcome(struct device_job *job, uint32_t seq)
{
	struct model *m;
	union device_any a = { 0 };
	const struct model_chip *chip;
	int r;

	if (job->there)
		return -EBADMSG;
	m = live_lock(job->service->live);
	r = arrive(m, job);
	chip = model_chip_of(m);
	a.welcome = (struct device_welcome){
		.now_ns = model_now_ns(m),
		.gpus = model_n_gpus(m),
		.cus = chip->n_xcc * chip->cu_per_xcc,
	};
	snprintf(a.welcome.chip, sizeof(a.welcome.chip), "%s", chip->name);
	live_unlock(job->service->live);
	if (r == -EEXIST)
		return refuse(job, seq, r, "this process is on the device already");
	if (r < 0)
		return refuse(job, seq, r, "the device has no room for this process");
	job->there = true;
	return answer(job, &a, DEVICE_HELLO, sizeof(a.welcome), seq);
}

void work_leave(struct device_job *job)
{
	struct model *m;

	if (!job->there)
		return;
	m = live_lock(job->service->live);
	model_proc_exit(m, job->pid);
	for (uint32_t i = 0; i < job->n_queues; i++) {
		struct work_queue *q = job->queues[i];

		if (q->has_news)
			TAILQ_REMOVE(&job->service->news, q, link);
		live_expect(job->service->live, -(int64_t)(q->submitted - q->completed));
		free(q);
	}
	live_unlock(job->service->live);
	job->service->n_queues -= job->n_queues;
	job->n_queues = 0;
	job->there = false;
}

/* ---- queues ---- */

static struct work_queue *queue_find(struct device_job *job, uint32_t id)
{
	for (uint32_t i = 0; i < job->n_queues; i++)
		if (job->queues[i]->id == id)
			return job->queues[i];
	return NULL;
}

/* With the lock. */
static void add_news(struct work_queue *q)
{
	if (q->has_news)
		return;
	q->has_news = true;
	TAILQ_INSERT_TAIL(&q->job->service->news, q, link);
}

/* From within the model, whichever thread moved its clock. */
static void completed(void *user, uint64_t index)
{
	struct work_queue *q = user;

	(void)index;
	add_news(q);
	q->completed++;
	live_expect(q->job->service->live, -1);
	live_notify(q->job->service->live);
}

static int make_queue(struct model *m, struct work_queue *q, const struct device_queue *request)
{
	struct model_queue_spec spec = {
		.gpu_index = request->gpu,
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.ring_packets = DEVICE_MAX_PENDING,
		.priority = request->priority,
	};
	int r;

	if (request->gpu >= model_n_gpus(m))
		return -ENODEV;
	r = model_queue_create(m, q->job->pid, &spec, &q->id);
	if (r < 0)
		return r;
	return model_on_complete(m, q->job->pid, q->id, completed, q);
}

static int create_queue(struct device_job *job, const struct device_queue *request)
{
	union device_any a = { .queue = *request };
	struct work_queue *q;
	struct model *m;
	int r;

	if (job->n_queues == DEVICE_MAX_PROCESS_QUEUES ||
	    job->service->n_queues == DEVICE_MAX_QUEUES)
		return refuse(job, request->h.seq, -ENOSPC, "there are too many queues");
	q = calloc(1, sizeof(*q));
	if (!q)
		return refuse(job, request->h.seq, -ENOMEM, "out of memory");
	q->job = job;
	m = live_lock(job->service->live);
	r = make_queue(m, q, request);
	a.queue.gpu_id = model_gpu_id(m, request->gpu);
	live_unlock(job->service->live);
	if (r < 0) {
		free(q);
		return refuse(job, request->h.seq, r,
			      r == -ENODEV ? "there is no such GPU" : "the driver refused it");
	}
	job->queues[job->n_queues++] = q;
	job->service->n_queues++;
	a.queue.queue = q->id;
	return answer(job, &a, DEVICE_QUEUE, sizeof(a.queue), request->h.seq);
}

static int tell_stats(struct device_job *job, const struct device_stats *request)
{
	struct model_queue_stats stats;
	union device_any a;
	int r;

	r = model_queue_stats(live_lock(job->service->live), job->pid, request->queue, &stats);
	live_unlock(job->service->live);
	if (r < 0)
		return refuse(job, request->h.seq, r, "there is no such queue");
	a.stats = (struct device_stats){
		.queue = request->queue,
		.suspended = stats.suspended,
		.completed = stats.completed,
		.resident = stats.resident,
		.saved = stats.saved,
	};
	return answer(job, &a, DEVICE_STATS, sizeof(a.stats), request->h.seq);
}

/* ---- work ---- */

static int submit(struct device_job *job, const struct device_submit *request)
{
	struct work_queue *q = queue_find(job, request->queue);
	struct model_work work = {
		.workgroups = request->workgroups,
		.wg_ns = request->wg_ns,
		.wg_per_cu = MAX(request->per_cu, 1u),
		.barrier = request->flags & DEVICE_WORK_BARRIER,
		.signal = true,
	};
	uint64_t index = 0;
	int r;

	if (!q)
		return refuse(job, request->h.seq, -ENOENT, "there is no such queue");
	if (q->submitted - q->told >= DEVICE_MAX_PENDING)
		return refuse(job, request->h.seq, -ENOSPC, "the queue is full");
	r = model_submit(live_lock(job->service->live), job->pid, q->id, &work, &index);
	if (r >= 0)
		live_expect(job->service->live, 1);
	live_unlock(job->service->live);
	if (r < 0)
		return refuse(job, request->h.seq, r, "the queue takes no work");
	q->seqs[index % DEVICE_MAX_PENDING] = request->h.seq;
	q->submitted = index + 1;
	return 0;
}

/* Finished and not told of: their records, and what nobody asks for any more is dropped. */
static size_t take_finished(struct work_queue *q, struct model_packet *ret)
{
	struct model *m = live_lock(q->job->service->live);
	size_t n, kept = 0;

	model_forget_packets(m, q->job->pid, q->id, q->told);
	n = model_packets(m, q->job->pid, q->id, q->told, ret, DEVICE_MAX_PENDING);
	live_unlock(q->job->service->live);
	for (size_t i = 0; i < n; i++)
		if (ret[i].done_ns && !(q->told_mask >> (ret[i].index - q->told) & 1))
			ret[kept++] = ret[i];
	return kept;
}

static int tell_one(struct work_queue *q, const struct model_packet *p)
{
	union device_any a = {
		.done = {
			.queue = q->id,
			.saves = p->saves,
			.index = p->index,
			.submitted_ns = p->submitted_ns,
			.started_ns = p->started_ns,
			.done_ns = p->done_ns,
			.executed_ns = p->executed_ns,
			.workgroups = p->workgroups,
			.finished = p->finished,
		},
	};

	return answer(q->job, &a, DEVICE_SUBMIT, sizeof(a.done),
		      q->seqs[p->index % DEVICE_MAX_PENDING]);
}

static void mark_told(struct work_queue *q, uint64_t index)
{
	q->told_mask |= 1ull << (index - q->told);
	while (q->told_mask & 1) {
		q->told_mask >>= 1;
		q->told++;
	}
}

int work_tell(struct work_queue *q)
{
	struct model_packet finished[DEVICE_MAX_PENDING];
	size_t n = take_finished(q, finished);

	for (size_t i = 0; i < n && !q->job->full; i++) {
		int r = tell_one(q, &finished[i]);

		if (r == -EAGAIN) {
			job_want_room(q->job);
			return 0;
		}
		if (r < 0)
			return r;
		mark_told(q, finished[i].index);
	}
	return 0;
}

void work_go_on(struct device_job *job)
{
	live_lock(job->service->live);
	for (uint32_t i = 0; i < job->n_queues; i++)
		add_news(job->queues[i]);
	live_notify(job->service->live);
	live_unlock(job->service->live);
}

int work_request(struct device_job *job, const union device_any *request)
{
	if (request->h.type == DEVICE_HELLO)
		return say_welcome(job, request->h.seq);
	if (!job->there)
		return -EBADMSG;
	switch (request->h.type) {
	case DEVICE_QUEUE:
		return create_queue(job, &request->queue);
	case DEVICE_SUBMIT:
		return submit(job, &request->submit);
	default:
		return tell_stats(job, &request->stats);
	}
}
