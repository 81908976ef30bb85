/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "abi/kfd_memory.h"
#include "tests/conformance/actor.h"

#define DOORBELL_BYTES 8192u /* of a process */

#define PATIENCE_MS 600000 /* nobody needs an actor that hears nothing for so long */

static int own_slot;

struct channel *actor_channel(int slot, int thread)
{
	struct channel *all = (void *)(uintptr_t)ARENA_ADDRESS;

	return &all[slot * ACTOR_THREADS + thread];
}

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static int64_t result_of(long r)
{
	return r < 0 ? -errno : r;
}

/* A copy of another process's descriptor, for one call. */
static int64_t foreign_ioctl(const struct order *o)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, o->pid, 0);
	_cleanup_close_ int fd = -1;

	if (pidfd < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, o->fd, 0);
	if (fd < 0)
		return -errno;
	return result_of(ioctl(fd, o->request, pointer(o->arg)));
}

/*
 * Memory that process and GPU see at one address. The arguments of the calls are in the arena,
 * prepared but for what only this process knows.
 */
static int64_t map_memory(const struct order *o)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args *alloc = pointer(o->arg);
	struct kfd_ioctl_map_memory_to_gpu_args map = { .n_devices = 1 };
	void *at =
		mmap(NULL, o->len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	alloc->va_addr = (uintptr_t)at;
	if (ioctl(o->fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, alloc) < 0)
		return -errno;
	at = mmap(at, o->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, o->fd2,
		  (off_t)alloc->mmap_offset);
	if (at == MAP_FAILED)
		return -errno;
	map.handle = alloc->handle;
	map.device_ids_array_ptr = (uintptr_t)&alloc->gpu_id;
	if (ioctl(o->fd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map) < 0)
		return -errno;
	return (int64_t)(uintptr_t)at;
}

static int64_t ring(const struct order *o)
{
	uint64_t page = o->va & ~(uint64_t)(DOORBELL_BYTES - 1);
	char *at =
		mmap(NULL, DOORBELL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, o->fd, (off_t)page);

	if (at == MAP_FAILED)
		return -errno;
	*(volatile uint64_t *)(void *)(at + (o->va - page)) = o->arg;
	munmap(at, DOORBELL_BYTES);
	return 0;
}

static int64_t detach(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
		return -errno;
	if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
		return -ECHILD;
	return result_of(ptrace(PTRACE_DETACH, pid, NULL, NULL));
}

static int64_t pass_signal(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
		return -ECHILD;
	return result_of(ptrace(PTRACE_CONT, pid, NULL, pointer((uint64_t)WSTOPSIG(status))));
}

static int64_t reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) == pid)
		if (!WIFSTOPPED(status))
			return 0;
	return 0;
}

static int64_t exec_self(const struct order *o)
{
	char slot[12], arena_fd[12];
	const char *argv[] = { "conformance", "--actor", slot, arena_fd, NULL };

	snprintf(slot, sizeof(slot), "%d", own_slot);
	snprintf(arena_fd, sizeof(arena_fd), "%d", o->fd);
	execv("/proc/self/exe", (char *const *)argv);
	return -errno;
}

static int64_t fork_self(const struct order *o)
{
	pid_t pid = fork();

	if (pid == 0)
		actor_serve(o->fd);
	return result_of(pid);
}

/* The kernel forgets who is to be killed with whom when a process becomes another user's. */
static int64_t become(uid_t id)
{
	if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return 0;
}

static int64_t obey(const struct order *o)
{
	switch (o->kind) {
	case ORDER_OPEN:
		return result_of(open(pointer(o->arg), O_RDWR | O_CLOEXEC));
	case ORDER_IOCTL:
		return o->pid ? foreign_ioctl(o) :
				result_of(ioctl(o->fd, o->request, pointer(o->arg)));
	case ORDER_MAP:
		return map_memory(o);
	case ORDER_PEEK:
		memcpy(pointer(o->arg), pointer(o->va), o->len);
		return 0;
	case ORDER_POKE:
		memcpy(pointer(o->va), pointer(o->arg), o->len);
		return 0;
	case ORDER_RING:
		return ring(o);
	case ORDER_SEIZE:
		return result_of(ptrace(PTRACE_SEIZE, o->pid, NULL, NULL));
	case ORDER_DETACH:
		return detach(o->pid);
	case ORDER_PASS_SIGNAL:
		return pass_signal(o->pid);
	case ORDER_REAP:
		return reap(o->pid);
	case ORDER_FORK:
		return fork_self(o);
	case ORDER_EXEC:
		return exec_self(o);
	case ORDER_BECOME:
		return become((uid_t)o->arg);
	case ORDER_END_THREAD:
		break;
	}
	return -EINVAL;
}

static void *serve(void *channel)
{
	struct channel *c = channel;

	c->answer = syscall(SYS_gettid);
	for (;;) {
		struct order o;

		channel_pass(c, TURN_DIRECTOR);
		if (!channel_await(c, TURN_ACTOR, PATIENCE_MS) || c->order.kind == ORDER_END_THREAD)
			return NULL;
		o = c->order;
		c->answer = obey(&o);
	}
}

static void ignore(int sig)
{
	(void)sig;
}

void actor_serve(int slot)
{
	struct sigaction interrupt = { .sa_handler = ignore };
	pthread_t thread;

	own_slot = slot;
	sigaction(SIGUSR1, &interrupt, NULL);
	if (pthread_create(&thread, NULL, serve, actor_channel(slot, 1)) != 0)
		_exit(2);
	serve(actor_channel(slot, 0));
	_exit(0);
}

void actor_main(char **argv)
{
	int slot = argv[0] ? (int)strtol(argv[0], NULL, 10) : -1;

	if (slot < 0 || (size_t)slot >= ACTOR_SLOTS || !argv[1])
		_exit(2);
	if (mmap((void *)(uintptr_t)ARENA_ADDRESS, ARENA_BYTES, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED_NOREPLACE, (int)strtol(argv[1], NULL, 10), 0) == MAP_FAILED)
		_exit(2);
	actor_serve(slot);
}
