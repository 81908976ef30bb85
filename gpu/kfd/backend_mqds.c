/* SPDX-License-Identifier: MIT */
/*
 * Reading debugfs "mqds" takes the lock of every process in turn (Linux 6.12
 * kfd_debugfs_mqds_by_process), which a suspend keeps for as long as the hardware takes to answer;
 * so does asking the extension. The owner must not wait for that, so a thread does.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "gpu/kfd/backend_internal.h"
#include "gpu/kfd/ext.h"
#include "util/macros.h"

/*
 * Reading may take longer than anybody waits: then it is taken when somebody asks again, which is
 * within RETRY_MAX_NS of a watch that lacks something.
 */
#define KEPT_NS (15 * NSEC_PER_SEC)

struct mqds_reader {
	struct gkfd *k;
	bool by_ext;
	pid_t own_pid;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool leaving;
	bool asked; /* until it is read */
	bool done; /* what was read waits to be taken */
	uint64_t done_ns;
	struct gkfd_mqds mqds;
};

static void read_one(struct mqds_reader *r)
{
	struct gkfd_mqds mqds = { 0 };
	uint32_t line;

	/* Not for everybody to read, nor there under lockdown: then nothing can be looked at. */
	if ((r->by_ext ? gkfd_ext_mqds(r->k, r->own_pid, &mqds) :
			 gkfd_mqds_read(r->k, &mqds, &line)) < 0)
		mqds = (struct gkfd_mqds){ 0 };
	pthread_mutex_lock(&r->lock);
	gkfd_mqds_done(&r->mqds);
	r->mqds = mqds;
	r->asked = false;
	r->done = true;
	r->done_ns = gkfd_now_ns(r->k);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static bool await_question(struct mqds_reader *r)
{
	bool leaving;

	pthread_mutex_lock(&r->lock);
	while (!r->asked && !r->leaving)
		pthread_cond_wait(&r->changed, &r->lock);
	leaving = r->leaving;
	pthread_mutex_unlock(&r->lock);
	return !leaving;
}

static void *reader_main(void *arg)
{
	struct mqds_reader *r = arg;

	while (await_question(r))
		read_one(r);
	return NULL;
}

/* Signals are for the host program's own threads. */
static int create_thread(struct mqds_reader *r)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&r->thread, NULL, reader_main, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -error;
}

static void reader_done(struct mqds_reader *r)
{
	gkfd_mqds_done(&r->mqds);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

int mqds_reader_new(const struct backend *b, struct mqds_reader **ret)
{
	struct mqds_reader *r = calloc(1, sizeof(*r));
	pthread_condattr_t attr;
	int error;

	if (!r)
		return -ENOMEM;
	r->k = b->k;
	r->by_ext = b->ext;
	r->own_pid = b->own_pid;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attr);
	pthread_condattr_destroy(&attr);
	error = create_thread(r);
	if (error < 0) {
		reader_done(r);
		return error;
	}
	*ret = r;
	return 0;
}

void mqds_reader_free(struct mqds_reader *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->leaving = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	reader_done(r);
}

static void await_answer(struct mqds_reader *r, uint64_t patience_ns)
{
	struct timespec until;
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns = (uint64_t)until.tv_nsec + patience_ns;
	until.tv_sec += (time_t)(ns / NSEC_PER_SEC);
	until.tv_nsec = (long)(ns % NSEC_PER_SEC);
	while (!r->done && pthread_cond_timedwait(&r->changed, &r->lock, &until) == 0)
		;
}

bool mqds_reader_get(struct mqds_reader *r, uint64_t patience_ns, struct gkfd_mqds *ret)
{
	bool got;

	pthread_mutex_lock(&r->lock);
	if (r->done && gkfd_now_ns(r->k) - r->done_ns >= KEPT_NS)
		r->done = false; /* nobody came for it in time */
	if (!r->done && !r->asked) {
		r->asked = true;
		pthread_cond_broadcast(&r->changed);
		await_answer(r, patience_ns);
	}
	got = r->done;
	gkfd_mqds_done(ret);
	if (got) {
		*ret = r->mqds;
		r->mqds = (struct gkfd_mqds){ 0 };
		r->done = false;
	}
	pthread_mutex_unlock(&r->lock);
	return got;
}
