/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "cmd/gpreempt-softgpu/internal.h"
#include "util/macros.h"

struct work_queue {
	LIST_ENTRY(work_queue) link; /* in its connection's */
	TAILQ_ENTRY(work_queue) news; /* in the device's */
	bool has_news;
	uint64_t completed; /* packets */
	struct connection *c;
	uint32_t id;
	uint64_t submitted, told; /* packets; all before @told are told of */
	uint64_t told_mask; /* of those from @told on, bit 0 the first: done out of order */
	uint32_t seqs[DEVICE_MAX_PENDING]; /* by index modulo their number */
};

_Static_assert(DEVICE_MAX_PENDING == 64, "told_mask has a bit for each");

/* An answer that finds no room ends the connection: who asks has to listen. */
static int answer(struct connection *c, union device_any *packet, enum device_type type,
		  size_t bytes, uint32_t seq)
{
	packet->h = device_header(type, bytes, seq);
	return connection_send(c, packet, bytes, -1);
}

static int refuse(struct connection *c, uint32_t seq, int error, const char *message)
{
	union device_any a = { .error = { .error = -error } };

	snprintf(a.error.message, sizeof(a.error.message), "%s", message);
	return answer(c, &a, DEVICE_ERROR, sizeof(a.error), seq);
}

/* ---- coming and going ---- */

/*
 * Without them its pointers are the device's. Nobody can make the file shorter: using it never
 * faults.
 */
static void make_pages(struct process *p)
{
	_cleanup_close_ int fd = memfd_create("pointers", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *pages;

	if (fd < 0 || ftruncate(fd, DEVICE_PAGES_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return;
	pages = mmap(NULL, DEVICE_PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pages == MAP_FAILED)
		return;
	if (model_mem_adopt(p->s->m, p->pid, DEVICE_PAGES_VA, pages, DEVICE_PAGES_BYTES) < 0)
		munmap(pages, DEVICE_PAGES_BYTES);
	else
		p->pages_fd = steal_fd(&fd);
}

/* What a program on ROCm has done before its first line runs. */
static int arrive(struct process *p)
{
	struct model *m = p->s->m;
	struct model_task task = { .pid = p->pid, .tid = p->pid };
	int r = process_arrive(p);

	if (r >= 0)
		r = model_kfd_open(m, task);
	if (r >= 0)
		softgpu_opened(p->s);
	for (uint32_t i = 0; r >= 0 && i < model_n_gpus(m); i++)
		r = model_vm_acquire(m, p->pid, i);
	if (r < 0)
		return r;
	r = model_not_waiting(m, task, model_runtime_enable(m, p->pid));
	/* A driver from before the debug interface; or it has said HELLO before. */
	return r == -ENOTTY || r == -EBUSY ? 0 : r;
}

static int say_welcome(struct connection *c, uint32_t seq)
{
	const struct model_chip *chip = model_chip_of(c->s->m);
	union device_any a = { 0 };
	int r;

	if (c->is_job)
		return -EBADMSG;
	if (c->p->has_job)
		return refuse(c, seq, -EEXIST, "this process is on the device already");
	r = arrive(c->p);
	if (r < 0)
		return refuse(c, seq, r, "the device has no room for this process");
	c->is_job = c->p->has_job = true;
	if (c->p->pages_fd < 0)
		make_pages(c->p);
	a.welcome = (struct device_welcome){
		.now_ns = model_now_ns(c->s->m),
		.gpus = model_n_gpus(c->s->m),
		.cus = chip->n_xcc * chip->cu_per_xcc,
	};
	snprintf(a.welcome.chip, sizeof(a.welcome.chip), "%s", chip->name);
	a.h = device_header(DEVICE_HELLO, sizeof(a.welcome), seq);
	return connection_send(c, &a, sizeof(a.welcome), c->p->pages_fd);
}

/* The process may stay, for another of its connections. */
static void end_queue(struct work_queue *q)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = q->id };
	struct model_task task = { .pid = q->c->p->pid, .tid = q->c->p->pid };
	struct softgpu *s = q->c->s;

	model_on_complete(s->m, task.pid, q->id, NULL, NULL);
	if (q->c->p->n_connections > 1)
		model_ioctl_now(s->m, task, task.pid, AMDKFD_IOC_DESTROY_QUEUE, &args);
	if (q->has_news)
		TAILQ_REMOVE(&s->news, q, news);
	s->expected -= (int64_t)(q->submitted - q->completed);
	s->n_queues--;
	LIST_REMOVE(q, link);
	free(q);
}

void job_leave(struct connection *c)
{
	while (!LIST_EMPTY(&c->queues))
		end_queue(LIST_FIRST(&c->queues));
	if (c->is_job)
		c->p->has_job = false;
}

/* ---- queues ---- */

static struct work_queue *queue_find(const struct connection *c, uint32_t id)
{
	struct work_queue *q;

	LIST_FOREACH(q, &c->queues, link)
		if (q->id == id)
			break;
	return q;
}

static void add_news(struct work_queue *q)
{
	if (q->has_news)
		return;
	q->has_news = true;
	TAILQ_INSERT_TAIL(&q->c->s->news, q, news);
}

/* From within the model. */
static void completed(void *user, uint64_t index)
{
	struct work_queue *q = user;

	add_news(q);
	q->completed++;
	q->c->s->expected--;
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
	r = model_queue_create(m, q->c->p->pid, &spec, &q->id);
	if (r < 0)
		return r;
	return model_on_complete(m, q->c->p->pid, q->id, completed, q);
}

static int create_queue(struct connection *c, const struct device_queue *request)
{
	union device_any a = { .queue = *request };
	struct work_queue *q;
	uint64_t index;
	int r;

	if (c->n_queues == DEVICE_MAX_PROCESS_QUEUES || c->s->n_queues == DEVICE_MAX_QUEUES ||
	    c->p->n_requests++ >= DEVICE_MAX_PROCESS_REQUESTS)
		return refuse(c, request->h.seq, -ENOSPC, "there are too many queues");
	q = calloc(1, sizeof(*q));
	if (!q)
		return refuse(c, request->h.seq, -ENOMEM, "out of memory");
	q->c = c;
	r = make_queue(softgpu_now(c->s), q, request);
	a.queue.gpu_id = model_gpu_id(c->s->m, request->gpu);
	if (r < 0) {
		free(q);
		return refuse(c, request->h.seq, r,
			      r == -ENODEV ? "there is no such GPU" : "the driver refused it");
	}
	LIST_INSERT_HEAD(&c->queues, q, link);
	c->n_queues++;
	c->s->n_queues++;
	a.queue.queue = q->id;
	model_write_pointer(c->s->m, c->p->pid, q->id, &a.queue.write_ptr, &index);
	return answer(c, &a, DEVICE_QUEUE, sizeof(a.queue), request->h.seq);
}

static int tell_stats(struct connection *c, const struct device_stats *request)
{
	struct model_queue_stats stats;
	union device_any a;
	int r;

	r = model_queue_stats(softgpu_now(c->s), c->p->pid, request->queue, &stats);
	if (r < 0)
		return refuse(c, request->h.seq, r, "there is no such queue");
	a.stats = (struct device_stats){
		.queue = request->queue,
		.suspended = stats.suspended,
		.completed = stats.completed,
		.resident = stats.resident,
		.saved = stats.saved,
	};
	return answer(c, &a, DEVICE_STATS, sizeof(a.stats), request->h.seq);
}

/* ---- work ---- */

/* What it has reserved and will not use would look like work for ever. */
static int refuse_work(struct connection *c, struct work_queue *q, uint32_t seq, bool reserved,
		       int error, const char *message)
{
	if (reserved)
		model_unreserve(c->s->m, c->p->pid, q->id);
	return refuse(c, seq, error, message);
}

static int submit(struct connection *c, const struct device_submit *request)
{
	struct work_queue *q = queue_find(c, request->queue);
	struct model_work work = {
		.workgroups = request->workgroups,
		.wg_ns = request->wg_ns,
		.wg_per_cu = MAX(request->per_cu, 1u),
		.barrier = request->flags & DEVICE_WORK_BARRIER,
		.signal = true,
	};
	uint64_t index = q ? q->submitted : 0, reserved = 0, va;
	int r;

	if (!q)
		return refuse(c, request->h.seq, -ENOENT, "there is no such queue");
	model_write_pointer(softgpu_now(c->s), c->p->pid, q->id, &va, &reserved);
	if (reserved < index || reserved - index > DEVICE_MAX_RESERVED)
		return -EBADMSG; /* it has written nonsense over its pointers */
	if (index - q->told >= DEVICE_MAX_PENDING)
		return refuse_work(c, q, request->h.seq, reserved > index, -ENOSPC,
				   "the queue is full");
	r = reserved > index ? model_submit_reserved(c->s->m, c->p->pid, q->id, &work, index) :
			       model_submit(c->s->m, c->p->pid, q->id, &work, &index);
	if (r < 0)
		return refuse_work(c, q, request->h.seq, reserved > index, r,
				   "the queue takes no work");
	c->s->expected++;
	q->seqs[index % DEVICE_MAX_PENDING] = request->h.seq;
	q->submitted = index + 1;
	return 0;
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

	return answer(q->c, &a, DEVICE_SUBMIT, sizeof(a.done),
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

/* Of what is finished and not told of. The records nobody asks for any more are dropped. */
static int tell(struct work_queue *q)
{
	struct model_packet all[DEVICE_MAX_PENDING];
	struct model *m = q->c->s->m;
	size_t n;

	model_forget_packets(m, q->c->p->pid, q->id, q->told);
	n = model_packets(m, q->c->p->pid, q->id, q->told, all, DEVICE_MAX_PENDING);
	for (size_t i = 0; i < n && !q->c->full; i++) {
		uint64_t index = all[i].index;
		int r;

		if (!all[i].done_ns || index < q->told || q->told_mask >> (index - q->told) & 1)
			continue;
		r = tell_one(q, &all[i]);
		q->c->full = r == -EAGAIN;
		if (r < 0 && !q->c->full)
			return r;
		if (r == 0)
			mark_told(q, index);
	}
	if (q->c->full)
		sd_event_source_set_io_events(q->c->io, EPOLLIN | EPOLLOUT);
	return 0;
}

int job_tell_next(struct softgpu *s, struct connection **ret)
{
	struct work_queue *q = TAILQ_FIRST(&s->news);

	if (!q)
		return 0;
	TAILQ_REMOVE(&s->news, q, news);
	q->has_news = false;
	*ret = q->c;
	return tell(q) < 0 ? -ECONNRESET : 1;
}

void job_go_on(struct connection *c)
{
	struct work_queue *q;

	LIST_FOREACH(q, &c->queues, link)
		add_news(q);
}

int job_request(struct connection *c, const union device_any *request)
{
	softgpu_now(c->s);
	if (request->h.type == DEVICE_HELLO)
		return say_welcome(c, request->h.seq);
	if (!c->is_job)
		return -EBADMSG;
	switch (request->h.type) {
	case DEVICE_QUEUE:
		return create_queue(c, &request->queue);
	case DEVICE_SUBMIT:
		return submit(c, &request->submit);
	default:
		return tell_stats(c, &request->stats);
	}
}
