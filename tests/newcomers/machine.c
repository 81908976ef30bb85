/* SPDX-License-Identifier: MIT */
#include "tests/newcomers/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/gpreemptd/scheduler.h"
#include "gpu/nvrm/backend.h"
#include "util/clock.h"
#include "util/macros.h"

#define MAJOR_MEM 1 /* null, zero, full and random: Linux Documentation/admin-guide/devices.txt */
#define NICE (-10) /* as the unit has it */
#define KEPT 64u /* who came, and nobody asked yet */

struct machine {
	struct nvrm_transport transport;
	struct gpu_backend *backend;
	struct config config;
	struct journal *journal;
	struct events *events;
	struct scheduler *s;
	char root[32], journal_path[48];
	pid_t came[KEPT];
	uint64_t came_ns[KEPT];
	size_t n_came;
	pid_t *crowd;
	size_t n_crowd;
	uint64_t turns;
};

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "machine: %s: %s\n", what, strerror(errno));
	exit(1);
}

uint64_t machine_now_ns(void)
{
	return monotonic_ns();
}

/* ---- its nodes ---- */

static void make_node(const char *name, unsigned int minor)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/%s", name);
	must(mknod(path, S_IFCHR, makedev(MAJOR_MEM, minor)) == 0, "mknod");
	must(chmod(path, 0666) == 0, "chmod");
}

void machine_unshare(void)
{
	must(unshare(CLONE_NEWNS) == 0, "unshare");
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "mount");
	must(mount("dev", "/dev", "tmpfs", MS_NOSUID, "mode=755") == 0, "mount");
	make_node("null", 3);
	make_node("zero", 5);
	make_node("full", 7);
	make_node("random", 8);
	make_node("urandom", 9);
	make_node("nvidiactl", 7);
	make_node("nvidia0", 5);
	make_node("nvidia1", 5);
}

void machine_enter(void)
{
	machine_unshare();
	must(mkdir("/dev/shm", 01777) == 0, "mkdir");
}

const char *machine_impossible(void)
{
	int status = 1;
	pid_t child;

	if (geteuid() != 0)
		return "only root has mount namespaces and device nodes";
	child = fork();
	if (child == 0) {
		machine_unshare();
		_exit(open("/dev/nvidia0", O_RDWR | O_CLOEXEC) < 0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		return "mount namespaces with device nodes cannot be had here";
	return NULL;
}

/* ---- the driver, as far as it is asked before anybody computes ---- */

static const char version[] = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04"
			      "  Release Build  (x)\n";

static int read_proc(void *data, const char *path, char **ret_text, size_t *ret_len)
{
	if (strcmp(path, "driver/nvidia/version"))
		return nvrm_transport_syscall.read_proc(data, path, ret_text, ret_len);
	*ret_text = strdup(version);
	*ret_len = strlen(version);
	return *ret_text ? 0 : -ENOMEM;
}

static struct nvrm *reach(struct machine *m, bool watches)
{
	void *data = nvrm_syscall_new(m->root);
	struct nvrm *n;

	must(data != NULL, "no memory");
	if (watches)
		nvrm_syscall_watch(data);
	must(nvrm_syscall_by_readers(data) >= 0, "readers");
	must(nvrm_new(&m->transport, data, &n) >= 0, "no memory");
	return n;
}

static void make_root(struct machine *m)
{
	char path[64];

	snprintf(m->root, sizeof(m->root), "/tmp/machine-XXXXXX");
	must(mkdtemp(m->root) != NULL, "mkdtemp");
	snprintf(path, sizeof(path), "%s/proc", m->root);
	must(symlink("/proc", path) == 0, "symlink");
	snprintf(path, sizeof(path), "%s/dev", m->root);
	must(symlink("/dev", path) == 0, "symlink");
}

static void remove_root(const struct machine *m)
{
	static const char *const names[] = { "proc", "dev", "" };
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", m->root, names[i]);
		remove(path);
	}
}

/* ---- its scheduler ---- */

static void note(void *user, const struct gpreempt_event *e)
{
	struct machine *m = user;

	if (e->kind != GPREEMPT_EVENT_JOB_CAME || m->n_came == KEPT)
		return;
	m->came[m->n_came] = e->pid;
	m->came_ns[m->n_came++] = machine_now_ns();
}

static void make_journal(struct machine *m)
{
	int fd;

	snprintf(m->journal_path, sizeof(m->journal_path), "/tmp/machine-journal-XXXXXX");
	fd = mkstemp(m->journal_path);
	must(fd >= 0, "mkstemp");
	close(fd);
	unlink(m->journal_path);
	must(journal_open(m->journal_path, &m->journal) >= 0, "journal");
	journal_begin(m->journal);
}

struct machine *machine_start(void)
{
	struct nvrm_backend_options options = { .by_readers = true, .untested = true };
	struct machine *m = calloc(1, sizeof(*m));
	struct config_mistake mistake;

	must(m != NULL, "no memory");
	log_set_level(LOG_LEVEL_WARNING);
	setpriority(PRIO_PROCESS, 0, NICE);
	make_root(m);
	make_journal(m);
	m->transport = nvrm_transport_syscall;
	m->transport.read_proc = read_proc;
	options.finder = reach(m, true);
	must(nvrm_backend_open(reach(m, false), &options, &m->backend) >= 0, "backend");
	must(config_read(NULL, &m->config, &mistake) >= 0, "configuration");
	m->config.rules.fallback.job_class = JOB_OFFLINE;
	must(events_new(&m->events) >= 0, "events");
	events_set_sink(m->events, note, m);
	must(scheduler_new(&(struct scheduler_parts){ .backend = m->backend,
						      .journal = m->journal,
						      .events = m->events },
			   &m->config, &m->s) >= 0,
	     "scheduler");
	return m;
}

void machine_crowd(struct machine *m, size_t n)
{
	m->crowd = calloc(n, sizeof(*m->crowd));
	for (m->n_crowd = 0; m->n_crowd < n; m->n_crowd++) {
		pid_t pid = fork();

		must(pid >= 0, "fork");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		m->crowd[m->n_crowd] = pid;
	}
}

void machine_end(struct machine *m)
{
	for (size_t i = 0; i < m->n_crowd; i++)
		kill(m->crowd[i], SIGKILL);
	for (size_t i = 0; i < m->n_crowd; i++)
		waitpid(m->crowd[i], NULL, 0);
	scheduler_free(m->s);
	m->backend->ops->close(m->backend);
	events_free(m->events);
	journal_close(m->journal);
	unlink(m->journal_path);
	config_done(&m->config);
	remove_root(m);
	free(m->crowd);
	free(m);
}

static pid_t take_came(struct machine *m, uint64_t *ret_came_ns)
{
	pid_t pid = m->came[0];

	if (ret_came_ns)
		*ret_came_ns = m->came_ns[0];
	m->n_came--;
	memmove(m->came, m->came + 1, m->n_came * sizeof(*m->came));
	memmove(m->came_ns, m->came_ns + 1, m->n_came * sizeof(*m->came_ns));
	return pid;
}

pid_t machine_run(struct machine *m, uint64_t until_ns, uint64_t *ret_came_ns)
{
	for (;;) {
		struct pollfd ready = { .fd = scheduler_fd(m->s), .events = POLLIN };
		uint64_t next_ns = MIN(scheduler_turn(m->s), until_ns), now_ns = machine_now_ns();
		struct timespec left = { 0 };

		m->turns++;
		if (m->n_came)
			return take_came(m, ret_came_ns);
		if (now_ns >= until_ns)
			return 0;
		if (next_ns > now_ns) {
			left.tv_sec = (time_t)((next_ns - now_ns) / NSEC_PER_SEC);
			left.tv_nsec = (long)((next_ns - now_ns) % NSEC_PER_SEC);
		}
		ppoll(&ready, 1, &left, NULL);
	}
}

/* ---- what it costs ---- */

static uint64_t used_ns(pid_t pid, pid_t tid)
{
	unsigned long long used = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%llu", &used) != 1)
		used = 0;
	if (f)
		fclose(f);
	return used;
}

static size_t read_numbers(const char *path, pid_t *ret, size_t max)
{
	FILE *f = fopen(path, "re");
	size_t n = 0;

	while (f && n < max && fscanf(f, "%d", &ret[n]) == 1)
		n++;
	if (f)
		fclose(f);
	return n;
}

static bool is_reader(pid_t pid)
{
	char path[64], comm[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (f && !fgets(comm, sizeof(comm), f))
		comm[0] = '\0';
	if (f)
		fclose(f);
	return !strncmp(comm, "gpreempt-reader", 15);
}

/* Readers are children of the thread that started them. */
static uint64_t readers_of(pid_t tid)
{
	static pid_t children[16384];
	uint64_t used = 0;
	char path[64];
	size_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", tid);
	n = read_numbers(path, children, ARRAY_SIZE(children));
	for (size_t i = 0; i < n; i++)
		if (is_reader(children[i]))
			used += used_ns(children[i], children[i]);
	return used;
}

struct machine_cost machine_cost(const struct machine *m)
{
	struct machine_cost cost = { .turns = m->turns };
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *e;

	must(tasks != NULL, "/proc/self/task");
	while ((e = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid > 0) {
			cost.own_ns += used_ns(getpid(), tid);
			cost.readers_ns += readers_of(tid);
		}
	}
	closedir(tasks);
	return cost;
}

/* Of all descriptors of inotify that this process has. */
size_t machine_watches(void)
{
	char path[64], line[256];
	size_t n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			n += !strncmp(line, "inotify ", 8);
		if (f)
			fclose(f);
	}
	return n;
}

const char *machine_blind(const struct machine *m)
{
	static struct gpreempt_daemon_status status;

	scheduler_status(m->s, &status);
	return status.blind;
}
