/* SPDX-License-Identifier: MIT */
/* A holder like the real one, over a driver that obliges and tells the test what it did. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/kfd/holder.h"
#include "tests/kfd/holder/board.h"
#include "tests/kfd/script.h"

static struct script *script;
static const struct gkfd_transport *scripted;

static int telling_ioctl(void *data, unsigned long request, void *arg)
{
	static struct board *board;
	const struct kfd_ioctl_dbg_trap_args *trap = arg;
	int r;

	if (request != AMDKFD_IOC_DBG_TRAP)
		return scripted->ioctl(data, request, arg);
	if (!board)
		board = board_of((pid_t)trap->pid);
	while (__atomic_load_n(&board->hangs, __ATOMIC_ACQUIRE))
		poll(NULL, 0, 5);
	r = scripted->ioctl(data, request, arg);
	board->suspends += trap->op == KFD_IOC_DBG_TRAP_SUSPEND_QUEUES;
	__atomic_store_n(&board->suspended, (int)script_suspended(script), __ATOMIC_RELEASE);
	return r;
}

static int rescue(pid_t pid)
{
	__atomic_store_n(&board_of(pid)->rescued, pid, __ATOMIC_RELEASE);
	return 0;
}

int main(int argc, char **argv)
{
	static struct gkfd_transport table;
	struct gkfd *k;

	if (argc == 4 && !strcmp(argv[1], HOLDER_RESCUE))
		return rescue((pid_t)strtol(argv[2], NULL, 10));
	script = script_new(&gkfd_trace_syscall);
	k = script_gkfd(script);
	scripted = k->transport;
	table = *scripted;
	table.ioctl = telling_ioctl;
	k->transport = &table;
	return holder_serve(k) < 0;
}
