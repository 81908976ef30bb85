/* SPDX-License-Identifier: MIT */
#include "bench/daemon_rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "abi/device_wire.h"
#include "util/macros.h"

static const char configuration[] = "[default]\nclass = offline\n"
				    "[hold]\nattach_age = 0s\ncycles_per_second = 0\nmin_run = 0s\n"
				    "[hint]\nexpires = 2ms\n"
				    "[control]\nrequests_per_second = 100000\n";

bool place_make(struct place *p)
{
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(p->dir, sizeof(p->dir), "%s/gpreempt-XXXXXX", P_tmpdir);
	if (!mkdtemp(p->dir))
		return false;
	snprintf(p->config, sizeof(p->config), "%s/conf", p->dir);
	snprintf(p->run_dir, sizeof(p->run_dir), "%s/run", p->dir);
	snprintf(p->notify, sizeof(p->notify), "%s/notify", p->dir);
	snprintf(p->socket, sizeof(p->socket), "%s/control.sock", p->run_dir);
	snprintf(p->device, sizeof(p->device), "%s/%s", p->run_dir, DEVICE_SOCKET);
	f = fopen(p->config, "w");
	return f && fputs(configuration, f) >= 0;
}

void place_remove(const struct place *p)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/journal", p->run_dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/metrics.prom", p->run_dir);
	unlink(path);
	rmdir(p->run_dir);
	unlink(p->notify);
	unlink(p->config);
	rmdir(p->dir);
}

static void *run_daemon(void *user)
{
	const struct place *p = user;
	const struct daemon_options options = {
		.device = "model",
		.config_file = p->config,
		.run_dir = p->run_dir,
	};

	return (void *)(intptr_t)daemon_run(&options);
}

static int unix_socket(const char *path, int type, bool make)
{
	const struct timeval patience = { .tv_sec = 10 }; /* what takes longer has failed */
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (fd >= 0 && (make ? bind : connect)(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool wait_for_ready(int notify)
{
	char text[256];
	ssize_t n;

	do {
		n = recv(notify, text, sizeof(text) - 1, 0);
		if (n < 0)
			return false;
		text[n] = 0;
	} while (!strstr(text, "READY=1"));
	return true;
}

bool rig_start(struct rig_daemon *d, const struct place *p)
{
	d->place = p;
	d->notify = unix_socket(p->notify, SOCK_DGRAM, true);
	setenv("NOTIFY_SOCKET", p->notify, 1);
	return d->notify >= 0 && pthread_create(&d->thread, NULL, run_daemon, (void *)p) == 0 &&
	       wait_for_ready(d->notify);
}

void rig_stop(struct rig_daemon *d)
{
	kill(getpid(), SIGTERM);
	pthread_join(d->thread, NULL);
	close(d->notify);
}

/* ---- asking ---- */

int rig_connect(const struct place *p)
{
	return unix_socket(p->socket, SOCK_SEQPACKET, false);
}

bool rig_take_answer(int fd, uint32_t type)
{
	static union wire_packet a;

	return recv(fd, &a, sizeof(a), 0) >= (ssize_t)sizeof(a.h) && a.h.type == type;
}

bool rig_make_online(int fd, pid_t pid)
{
	struct wire_class c = {
		.h = wire_header(WIRE_CLASS, sizeof(c), 1),
		.selector = WIRE_BY_PID,
		.pid = pid,
		.job_class = GPREEMPT_CLASS_ONLINE,
		.priority = WIRE_KEEP,
	};

	return send(fd, &c, sizeof(c), 0) == sizeof(c) && rig_take_answer(fd, WIRE_CLASS);
}

bool rig_subscribe(int fd)
{
	struct wire_request r = { .h = wire_header(WIRE_SUBSCRIBE, sizeof(r), 1) };

	return send(fd, &r, sizeof(r), 0) == sizeof(r) && rig_take_answer(fd, WIRE_SUBSCRIBE);
}

bool rig_wait_for_event(int fd, uint32_t kind)
{
	static union wire_packet p;
	struct gpreempt_event e;

	do {
		size_t at = 0;
		ssize_t n = recv(fd, &p, sizeof(p), 0);
		const char *why;

		if (n < 0 || wire_check_answer(&p, (size_t)n, &why) < 0 ||
		    !wire_list_next(&p, &at, &e))
			return false;
	} while (e.kind != kind);
	return true;
}

bool rig_status(int fd, struct gpreempt_daemon_status *ret)
{
	struct wire_request r = { .h = wire_header(WIRE_STATUS, sizeof(r), 1) };
	static union wire_packet p;
	const char *why;
	size_t at = 0;
	ssize_t n;

	if (send(fd, &r, sizeof(r), 0) != sizeof(r))
		return false;
	n = recv(fd, &p, sizeof(p), 0);
	return n > 0 && wire_check_answer(&p, (size_t)n, &why) >= 0 && wire_list_next(&p, &at, ret);
}
