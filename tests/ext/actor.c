/* SPDX-License-Identifier: MIT */
/* Processes that call one function after the other; they are copies of this one. */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ext/ext.h"

#define MAX_ACTORS 64
#define SHARED_BYTES (4u << 20)
#define PATIENCE_MS 30000

struct order {
	int (*function)(void *arg);
	void *arg;
};

static struct actor actors[MAX_ACTORS];
static unsigned int n_actors;
static char *arena;
static size_t arena_used;

void *shared(size_t bytes)
{
	void *p;

	if (!arena) {
		arena = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			     -1, 0);
		if (arena == MAP_FAILED)
			mk_die("mmap");
	}
	p = arena + arena_used;
	arena_used += (bytes + 15) / 16 * 16;
	expect(arena_used <= SHARED_BYTES, "a case uses too much shared memory");
	memset(p, 0, bytes);
	return p;
}

static int served; /* the actor's end */

static void *serve_on(void *arg)
{
	const int channel = served;
	struct order o;
	int r;

	(void)arg;
	while (read(channel, &o, sizeof(o)) == sizeof(o)) {
		r = o.function(o.arg);
		if (write(channel, &r, sizeof(r)) != sizeof(r))
			break;
	}
	_exit(0);
}

static _Noreturn void serve(int channel)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	served = channel;
	serve_on(NULL);
	_exit(0);
}

static int do_leave(void *arg)
{
	int r = 0;
	pthread_t t;

	(void)arg;
	if (pthread_create(&t, NULL, serve_on, NULL))
		return -EAGAIN;
	if (write(served, &r, sizeof(r)) != sizeof(r))
		_exit(1);
	pthread_exit(NULL);
}

static void become(uid_t uid)
{
	if (uid && (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		mk_die("uid %u", uid);
	prctl(PR_SET_DUMPABLE, 1);
}

struct actor *actor(uid_t uid)
{
	struct actor *a = &actors[n_actors];
	int ends[2];

	shared(1);
	expect(n_actors < MAX_ACTORS, "too many actors");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		mk_die("socketpair");
	a->pid = fork();
	if (a->pid < 0)
		mk_die("fork");
	if (!a->pid) {
		for (unsigned int i = 0; i < n_actors; i++) {
			if (actors[i].pid) /* its number may be ours by now */
				close(actors[i].channel);
		}
		close(ends[0]);
		become(uid);
		serve(ends[1]);
	}
	close(ends[1]);
	a->channel = ends[0];
	a->works = false;
	n_actors++;
	return a;
}

void begin_in(struct actor *a, int (*function)(void *arg), void *arg)
{
	const struct order o = { function, arg };

	expect(a->pid && !a->works, "an actor that has ended, or works, is asked for more");
	expect(write(a->channel, &o, sizeof(o)) == sizeof(o), "an actor does not listen");
	a->works = true;
}

static _Noreturn void fail_ended(struct actor *a)
{
	int status = 0;

	while (waitpid(a->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(a->channel);
	a->pid = 0;
	fail_case("a process has ended, by signal %d, with status %d", WTERMSIG(status),
		  WEXITSTATUS(status));
}

int end_in(struct actor *a)
{
	struct pollfd p = { .fd = a->channel, .events = POLLIN };
	int r;

	expect(poll(&p, 1, PATIENCE_MS) == 1, "a call of process %d does not return", a->pid);
	if (read(a->channel, &r, sizeof(r)) != sizeof(r))
		fail_ended(a);
	a->works = false;
	return r;
}

int in(struct actor *a, int (*function)(void *arg), void *arg)
{
	int r;

	begin_in(a, function, arg);
	r = end_in(a);
	check_books();
	return r;
}

void wait_for_exec(struct actor *a)
{
	struct pollfd p = { .fd = a->channel, .events = POLLIN };
	int r;

	expect(poll(&p, 1, PATIENCE_MS) == 1, "process %d does not exec", a->pid);
	expect(read(a->channel, &r, sizeof(r)) == 0, "process %d cannot exec: %s", a->pid,
	       result_name(r));
}

void kill_actor(struct actor *a)
{
	if (!a->pid)
		return;
	kill(a->pid, SIGKILL);
	while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(a->channel);
	a->pid = 0;
}

void forget_actors(void)
{
	for (unsigned int i = 0; i < n_actors; i++) {
		if (actors[i].pid)
			kill(actors[i].pid, SIGKILL);
	}
	for (unsigned int i = 0; i < n_actors; i++)
		kill_actor(&actors[i]);
	n_actors = 0;
	arena_used = 0;
}

void lose_first_thread(struct actor *a)
{
	char path[64], line[256];
	bool gone = false;

	expect_is("another thread", in(a, do_leave, NULL), 0);
	snprintf(path, sizeof(path), "/proc/%d/stat", a->pid);
	while (!gone) {
		FILE *f = fopen(path, "re");

		if (!f || !fgets(line, sizeof(line), f))
			mk_die("%s", path);
		fclose(f);
		gone = !strncmp(strrchr(line, ')'), ") Z", 3);
	}
}

uint64_t start_ticks_of(pid_t pid)
{
	char path[64], line[1024] = "";
	unsigned long long ticks;
	const char *rest;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		mk_die("%s", path);
	fclose(f);
	rest = strrchr(line, ')'); /* the 20th word after the name */
	if (!rest ||
	    sscanf(rest + 1,
		   " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%llu",
		   &ticks) != 1)
		mk_die("%s", path);
	return ticks;
}
