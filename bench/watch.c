/* SPDX-License-Identifier: MIT */
/*
 * From the moment an online job moves its write pointer until the daemon asks for a suspend,
 * nothing announced, against a bare watchpoint's wake-up in the same run and at the same pace. The
 * daemon is the whole one, in a thread of this process, on the software device; the jobs are
 * processes. Bursts for which the engine tries to hold nobody do not count.
 */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/daemon_rig.h"
#include "bench/stopwatch.h"
#include "cmd/wire/device_client.h"
#include "gpu/acting.h"
#include "util/macros.h"

#define ROUNDS 600
#define WARM 50
#define WORK_NS (5 * NSEC_PER_MSEC) /* worth a preemption */
#define PATIENCE_MS 10000

static _Atomic uint64_t decided_ns;

int __real_acting_suspend(struct gpu_target *t, const struct gpu_hold *hold, uint64_t cookie);
int __wrap_acting_suspend(struct gpu_target *t, const struct gpu_hold *hold, uint64_t cookie);

int __wrap_acting_suspend(struct gpu_target *t, const struct gpu_hold *hold, uint64_t cookie)
{
	decided_ns = stopwatch_ns();
	return __real_acting_suspend(t, hold, cookie);
}

/* ---- jobs ---- */

struct job {
	pid_t pid;
	int go, told;
};

static volatile uint64_t watched; /* by the bare watchpoint, in a job of its own */

static void run_job(const char *device, int go, int told, volatile uint64_t *wrote_ns, bool endless)
{
	struct device_submit work = { .workgroups = 1, .per_cu = 1,
				      .wg_ns = endless ? DEVICE_MAX_WG_NS : WORK_NS };
	struct device_welcome welcome;
	union device_any any;
	char c;
	int fd;

	if (read(go, &c, 1) != 1 || device_connect(device, &fd, &welcome) < 0 ||
	    device_create_queue(fd, 0, 7, &work.queue) < 0 ||
	    (endless && device_submit(fd, 1, &work) < 0) || write(told, &c, 1) != 1)
		_exit(1);
	while (read(go, &c, 1) == 1) {
		*wrote_ns = stopwatch_ns();
		if (device_submit(fd, 1, &work) < 0 || device_receive(fd, &any) < 0 ||
		    write(told, &c, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static void run_bare(int go, int told, volatile uint64_t *wrote_ns)
{
	char c;

	while (read(go, &c, 1) == 1) {
		*wrote_ns = stopwatch_ns();
		watched++;
		if (write(told, &c, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

/* @device NULL: one for the bare watchpoint. */
static bool start(struct job *j, const char *device, volatile uint64_t *wrote_ns, bool endless)
{
	int go[2], told[2];

	if (pipe(go) < 0 || pipe(told) < 0)
		return false;
	j->pid = fork();
	if (j->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		close(told[0]);
		if (device)
			run_job(device, go[0], told[1], wrote_ns, endless);
		run_bare(go[0], told[1], wrote_ns);
	}
	close(go[0]);
	close(told[1]);
	j->go = go[1];
	j->told = told[0];
	return j->pid > 0;
}

static bool tell(const struct job *j)
{
	return write(j->go, ".", 1) == 1;
}

static bool answers(const struct job *j)
{
	char c;

	return read(j->told, &c, 1) == 1;
}

/* ---- the measure of all things ---- */

static int watch(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.wakeup_events = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&watched,
		.bp_len = sizeof(watched),
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0 && mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		return -1;
	return fd;
}

static uint64_t bare_ns(const struct job *j, int fd, const volatile uint64_t *wrote_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t at;

	if (!tell(j) || poll(&p, 1, PATIENCE_MS) != 1)
		return 0;
	at = stopwatch_ns();
	return answers(j) ? at - *wrote_ns : 0;
}

/* ---- with the daemon ---- */

struct figures {
	uint64_t decided_ns[ROUNDS], bare_ns[ROUNDS];
	unsigned int bursts; /* since before, the one it was asked in not counted */
	struct gpreempt_daemon_status before, after;
};

/* 0: nobody was held for it at once; -EIO: it failed. */
static int64_t work_ns(const struct job *j, int fd, int events, const volatile uint64_t *wrote_ns)
{
	static uint64_t preemptions;
	struct gpreempt_daemon_status s;
	int64_t ns;

	if (!tell(j) || !answers(j) || !rig_status(fd, &s))
		return -EIO;
	if (s.preemptions == preemptions)
		return 0;
	preemptions = s.preemptions;
	if (!rig_wait_for_event(events, GPREEMPT_EVENT_LET_GO) || decided_ns < *wrote_ns)
		return -EIO;
	ns = (int64_t)(decided_ns - *wrote_ns);
	return ns < (int64_t)WORK_NS / 2 ? ns : 0;
}

/* Both sleep as long before each. */
static bool measure(const struct place *p, const struct job *online, const struct job *bare,
		    const volatile uint64_t *wrote_ns, struct figures *f)
{
	_cleanup_close_ int fd = rig_connect(p), events = rig_connect(p), point = watch(bare->pid);

	if (fd < 0 || events < 0 || point < 0 || !rig_subscribe(events) ||
	    !rig_make_online(fd, online->pid) ||
	    !rig_wait_for_event(events, GPREEMPT_EVENT_ATTACHED))
		return false;
	for (int i = -WARM; i < ROUNDS;) {
		int64_t ns = work_ns(online, fd, events, &wrote_ns[0]);
		uint64_t b_ns = bare_ns(bare, point, &wrote_ns[1]);

		if (ns < 0 || !b_ns || (i == 0 && !f->bursts && !rig_status(fd, &f->before)))
			return false;
		f->bursts += i >= 0;
		if (ns && i >= 0) {
			f->decided_ns[i] = (uint64_t)ns;
			f->bare_ns[i] = b_ns;
		}
		i += ns != 0;
	}
	return rig_status(fd, &f->after);
}

static bool with_daemon(const struct place *p, const struct job *online, const struct job *offline,
			const struct job *bare, const volatile uint64_t *wrote_ns,
			struct figures *f)
{
	struct rig_daemon daemon;
	bool ok;

	if (!rig_start(&daemon, p))
		return false;
	ok = tell(online) && tell(offline) && answers(online) && answers(offline) &&
	     measure(p, online, bare, wrote_ns, f);
	rig_stop(&daemon);
	return ok;
}

static void print(struct figures *f)
{
	uint64_t p50 = median_ns(f->decided_ns, ROUNDS), bare = median_ns(f->bare_ns, ROUNDS);

	printf("{\"rounds\": %d, \"decided_p50_ns\": %llu, \"decided_p99_ns\": %llu, ", ROUNDS,
	       (unsigned long long)p50, (unsigned long long)f->decided_ns[ROUNDS * 99 / 100]);
	printf("\"bare_p50_ns\": %llu, \"bare_p99_ns\": %llu, ", (unsigned long long)bare,
	       (unsigned long long)f->bare_ns[ROUNDS * 99 / 100]);
	printf("\"bursts\": %u, \"traps\": %llu, \"watch\": %llu, \"late\": %llu}\n", f->bursts - 1,
	       (unsigned long long)(f->after.traps - f->before.traps),
	       (unsigned long long)(f->after.seen_by_watch - f->before.seen_by_watch),
	       (unsigned long long)(f->after.seen_late - f->before.seen_late));
}

int main(void)
{
	static struct figures figures;
	volatile uint64_t *wrote_ns = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct job online, offline, bare;
	struct place place;
	sigset_t term;
	bool ok;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	if (wrote_ns == MAP_FAILED || !place_make(&place) ||
	    !start(&online, place.device, &wrote_ns[0], false) ||
	    !start(&offline, place.device, &wrote_ns[2], true) ||
	    !start(&bare, NULL, &wrote_ns[1], false))
		return 1;
	go_before_others();
	if (!freopen("/dev/null", "w", stderr)) /* what the daemon logs */
		return 1;
	ok = with_daemon(&place, &online, &offline, &bare, wrote_ns, &figures);
	kill(online.pid, SIGKILL);
	kill(offline.pid, SIGKILL);
	kill(bare.pid, SIGKILL);
	while (wait(NULL) > 0)
		;
	place_remove(&place);
	if (!ok)
		return 1;
	print(&figures);
	return 0;
}
