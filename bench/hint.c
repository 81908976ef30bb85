/* SPDX-License-Identifier: MIT */
/*
 * From a hint until the driver is asked to suspend, against the round trip of a bare packet between
 * two threads, in one run and at the same pace. The daemon is the whole one, in a thread of this
 * process, on the software device; the time is taken where its transport would make the ioctl, on
 * the thread that makes it, less what the device took to answer the calls before that: it is a
 * process of its own, and each a round trip to it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "abi/kfd.h"
#include "bench/daemon_rig.h"
#include "bench/stopwatch.h"
#include "cmd/wire/device_client.h"
#include "gpu/soft/transport.h"
#include "util/macros.h"

#define ROUNDS 600
#define WARM 50
#define WORK_NS DEVICE_MAX_WG_NS

/* The device's transport, seen by the daemon through -Wl,--wrap. */
extern const struct gkfd_transport __real_gkfd_transport_soft;
extern struct gkfd_transport __wrap_gkfd_transport_soft;
struct gkfd_transport __wrap_gkfd_transport_soft;

static _Atomic uint64_t suspend_asked_ns;
static _Atomic uint64_t device_ns; /* in its calls since the hint, but for the suspend */

static int stamp_ioctl(void *data, unsigned long request, void *arg)
{
	const struct kfd_ioctl_dbg_trap_args *trap = arg;
	bool suspends = request == AMDKFD_IOC_DBG_TRAP &&
			trap->op == KFD_IOC_DBG_TRAP_SUSPEND_QUEUES;
	uint64_t began_ns = stopwatch_ns();
	int r;

	if (suspends)
		suspend_asked_ns = began_ns - device_ns;
	r = __real_gkfd_transport_soft.ioctl(data, request, arg);
	if (!suspends)
		device_ns += stopwatch_ns() - began_ns;
	return r;
}

/* ---- the measure of all things ---- */

static void *echo(void *user)
{
	struct wire_request r;
	int fd = *(int *)user;

	while (recv(fd, &r, sizeof(r), 0) == sizeof(r))
		send(fd, &r, sizeof(r), MSG_NOSIGNAL);
	return NULL;
}

struct echoer {
	pthread_t thread;
	int ends[2];
};

static bool start_echo(struct echoer *e)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET, 0, e->ends) == 0 &&
	       pthread_create(&e->thread, NULL, echo, &e->ends[1]) == 0;
}

static void end_echo(struct echoer *e)
{
	shutdown(e->ends[0], SHUT_RDWR);
	pthread_join(e->thread, NULL);
	close(e->ends[0]);
	close(e->ends[1]);
}

static uint64_t ping(const struct echoer *e)
{
	struct wire_request r = { 0 };
	uint64_t began = stopwatch_ns();

	send(e->ends[0], &r, sizeof(r), 0);
	recv(e->ends[0], &r, sizeof(r), 0);
	return stopwatch_ns() - began;
}

/* ---- its jobs ---- */

/* A child with one queue, told when to begin by @go; with work that outlasts everything. */
static pid_t start_job(const struct place *p, int go, int told, bool busy)
{
	const struct device_submit work = { .workgroups = 1, .per_cu = 1, .wg_ns = WORK_NS };
	struct device_submit mine = work;
	struct device_welcome welcome;
	union device_any any;
	pid_t pid = fork();
	char c;
	int fd;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go, &c, 1) != 1 || device_connect(p->device, &fd, &welcome) < 0 ||
	    device_create_queue(fd, 0, 7, &mine.queue) < 0)
		_exit(1);
	if (busy && device_submit(fd, 1, &mine) < 0)
		_exit(1);
	if (write(told, &c, 1) != 1)
		_exit(1);
	while (device_receive(fd, &any) >= 0)
		;
	_exit(0);
}

/* One hint, its suspend, and the end of the hold; 0: it failed. */
static uint64_t hint(int fd, int events, pid_t pid)
{
	struct wire_hint h = { .h = wire_header(WIRE_HINT, sizeof(h), 1), .pid = pid };
	uint64_t began = stopwatch_ns();

	device_ns = 0;
	if (send(fd, &h, sizeof(h), 0) != sizeof(h) || !rig_take_answer(fd, WIRE_HINT) ||
	    !rig_wait_for_event(events, GPREEMPT_EVENT_LET_GO) || suspend_asked_ns < began)
		return 0;
	return suspend_asked_ns - began;
}

/* A ping after each hold: both sides have slept as long as the daemon has when a hint comes. */
static bool measure(const struct place *p, pid_t online, const struct echoer *echoer,
		    uint64_t *ret_hint_ns, uint64_t *ret_ping_ns)
{
	_cleanup_close_ int fd = rig_connect(p);
	_cleanup_close_ int events = rig_connect(p);

	if (fd < 0 || events < 0 || !rig_subscribe(events) || !rig_make_online(fd, online) ||
	    !rig_wait_for_event(events, GPREEMPT_EVENT_ATTACHED))
		return false;
	for (int i = -WARM; i < ROUNDS; i++) {
		uint64_t ns = hint(fd, events, online), ping_ns = ping(echoer);

		if (!ns)
			return false;
		if (i < 0)
			continue;
		ret_hint_ns[i] = ns;
		ret_ping_ns[i] = ping_ns;
	}
	return true;
}

struct jobs {
	pid_t online, offline;
	int go[2], told[2];
};

static bool start_jobs(const struct place *p, struct jobs *j)
{
	if (pipe(j->go) < 0 || pipe(j->told) < 0)
		return false;
	j->online = start_job(p, j->go[0], j->told[1], false);
	j->offline = start_job(p, j->go[0], j->told[1], true);
	return j->online > 0 && j->offline > 0;
}

static bool with_daemon(const struct place *p, struct jobs *jobs, uint64_t *ret_hint_ns,
			uint64_t *ret_ping_ns)
{
	struct rig_daemon daemon;
	struct echoer echoer;
	char told[2];
	bool ok;

	if (!start_echo(&echoer) || !rig_start(&daemon, p))
		return false;
	ok = write(jobs->go[1], "..", 2) == 2 && read(jobs->told[0], told, 1) == 1 &&
	     read(jobs->told[0], told, 1) == 1 &&
	     measure(p, jobs->online, &echoer, ret_hint_ns, ret_ping_ns);
	rig_stop(&daemon);
	end_echo(&echoer);
	return ok;
}

static uint64_t p99_ns(uint64_t *ns, size_t n)
{
	qsort(ns, n, sizeof(*ns), compare_ns);
	return ns[n * 99 / 100];
}

int main(void)
{
	static uint64_t hint_ns[ROUNDS], ping_ns[ROUNDS];
	struct place place;
	struct jobs jobs;
	sigset_t term;
	bool ok;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	if (!place_make(&place) || !start_jobs(&place, &jobs))
		return 1;
	go_before_others();
	if (!freopen("/dev/null", "w", stderr)) /* what the daemon logs */
		return 1;
	__wrap_gkfd_transport_soft = __real_gkfd_transport_soft;
	__wrap_gkfd_transport_soft.ioctl = stamp_ioctl;
	ok = with_daemon(&place, &jobs, hint_ns, ping_ns);
	kill(jobs.online, SIGKILL);
	kill(jobs.offline, SIGKILL);
	while (wait(NULL) > 0)
		;
	place_remove(&place);
	if (!ok)
		return 1;
	printf("{\"rounds\": %d, \"hint_p50_ns\": %llu, \"hint_p99_ns\": %llu, ", ROUNDS,
	       (unsigned long long)median_ns(hint_ns, ROUNDS),
	       (unsigned long long)p99_ns(hint_ns, ROUNDS));
	printf("\"ping_p50_ns\": %llu, \"ping_p99_ns\": %llu}\n",
	       (unsigned long long)median_ns(ping_ns, ROUNDS),
	       (unsigned long long)p99_ns(ping_ns, ROUNDS));
	return 0;
}
