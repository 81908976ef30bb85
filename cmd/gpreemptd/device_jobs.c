/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/device_jobs.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "cmd/gpreemptd/device_jobs_internal.h"
#include "util/macros.h"

#define BACKLOG 64
#define REQUESTS_A_TURN 32 /* of one connection, before others have theirs */

static void job_end(struct device_job *job)
{
	struct device_jobs *s = job->service;

	sd_event_source_disable_unref(job->io);
	sd_event_source_disable_unref(job->exit);
	work_leave(job);
	closep(&job->fd);
	closep(&job->pid_fd);
	LIST_REMOVE(job, link);
	s->n_jobs--;
	free(job);
	sd_event_source_set_enabled(s->accept, SD_EVENT_ON);
}

int job_send(struct device_job *job, const void *packet, size_t len)
{
	ssize_t r;

	do {
		r = send(job->fd, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

void job_want_room(struct device_job *job)
{
	job->full = true;
	sd_event_source_set_io_events(job->io, EPOLLIN | EPOLLOUT);
}

/* 1: there may be more. */
static int take_request(struct device_job *job)
{
	union device_any packet;
	ssize_t len = recv(job->fd, &packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
	int r;

	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (len == 0)
		return -ECONNRESET;
	if ((size_t)len > sizeof(packet) || !device_is_request(&packet, (size_t)len))
		return -EBADMSG;
	r = work_request(job, &packet);
	return r < 0 ? r : 1;
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct device_job *job = user;
	int r = 1;

	if (events & EPOLLOUT && job->full) {
		job->full = false;
		sd_event_source_set_io_events(job->io, EPOLLIN);
		work_go_on(job);
	}
	for (int i = 0; i < REQUESTS_A_TURN && r > 0; i++)
		r = take_request(job);
	if (r < 0)
		job_end(job);
	return 0;
}

static int on_exit_of(sd_event_source *source, int fd, uint32_t events, void *user)
{
	job_end(user);
	return 0;
}

/* ---- connecting ---- */

static int job_watch(struct device_job *job)
{
	sd_event *loop = job->service->loop;
	int r = sd_event_add_io(loop, &job->io, job->fd, EPOLLIN, on_io, job);

	if (r < 0)
		return r;
	job->pid_fd = gkfd_trace_syscall.pidfd(NULL, job->pid);
	if (job->pid_fd == -ENOSYS)
		return 0; /* then only the end of its connection tells */
	if (job->pid_fd < 0)
		return job->pid_fd;
	return sd_event_add_io(loop, &job->exit, job->pid_fd, EPOLLIN, on_exit_of, job);
}

static void refuse_connection(int fd)
{
	struct device_error e = {
		.h = device_header(DEVICE_ERROR, sizeof(e), 0),
		.error = EUSERS,
		.message = "there are too many processes on the device",
	};

	(void)send(fd, &e, sizeof(e), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take_connection(struct device_jobs *s, int *fd)
{
	struct device_job *job;
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (s->n_jobs == DEVICE_MAX_PROCESSES) {
		refuse_connection(*fd);
		return;
	}
	/* pid 0: of a namespace that is not below ours */
	if (getsockopt(*fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid <= 0)
		return;
	job = calloc(1, sizeof(*job));
	if (!job)
		return;
	job->service = s;
	job->pid = peer.pid;
	job->uid = peer.uid;
	job->fd = steal_fd(fd);
	job->pid_fd = -1;
	LIST_INSERT_HEAD(&s->jobs, job, link);
	s->n_jobs++;
	if (job_watch(job) < 0)
		job_end(job);
}

static int on_accept(sd_event_source *source, int listening, uint32_t events, void *user)
{
	_cleanup_close_ int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct device_jobs *s = user;

	if (fd >= 0)
		take_connection(s, &fd);
	else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
		sd_event_source_set_enabled(s->accept, SD_EVENT_OFF); /* until somebody leaves */
	return 0;
}

/* ---- what is done ---- */

static struct work_queue *next_news(struct device_jobs *s)
{
	struct work_queue *q;

	live_lock(s->live);
	q = TAILQ_FIRST(&s->news);
	if (q) {
		TAILQ_REMOVE(&s->news, q, link);
		q->has_news = false;
	}
	live_unlock(s->live);
	return q;
}

static int on_turn(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct device_jobs *s = user;
	struct work_queue *q;

	live_lock(s->live);
	live_hush(s->live);
	live_unlock(s->live);
	while ((q = next_news(s)))
		if (work_tell(q) < 0)
			job_end(q->job);
	return 0;
}

/* ---- its life ---- */

static int make_socket(struct device_jobs *s)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (strlen(s->path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, s->path, strlen(s->path));
	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return -errno;
	if (unlink(s->path) < 0 && errno != ENOENT)
		return -errno;
	if (bind(s->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || chmod(s->path, 0666) < 0 ||
	    listen(s->fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

static int begin(struct device_jobs *s)
{
	int r = make_socket(s);

	if (r < 0)
		return r;
	r = sd_event_add_io(s->loop, &s->accept, s->fd, EPOLLIN, on_accept, s);
	if (r < 0)
		return r;
	return sd_event_add_io(s->loop, &s->turn, live_fd(s->live), EPOLLIN, on_turn, s);
}

int device_jobs_new(struct live *live, sd_event *loop, const char *path, struct device_jobs **ret)
{
	struct device_jobs *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->live = live;
	s->loop = sd_event_ref(loop);
	s->fd = -1;
	LIST_INIT(&s->jobs);
	TAILQ_INIT(&s->news);
	s->path = strdup(path);
	r = s->path ? begin(s) : -ENOMEM;
	if (r < 0) {
		device_jobs_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void device_jobs_free(struct device_jobs *s)
{
	if (!s)
		return;
	while (!LIST_EMPTY(&s->jobs))
		job_end(LIST_FIRST(&s->jobs));
	sd_event_source_disable_unref(s->turn);
	sd_event_source_disable_unref(s->accept);
	if (s->fd >= 0)
		unlink(s->path);
	closep(&s->fd);
	sd_event_unref(s->loop);
	free(s->path);
	free(s);
}
