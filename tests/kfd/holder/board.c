/* SPDX-License-Identifier: MIT */
#include "tests/kfd/holder/board.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *name_of(pid_t target)
{
	static char name[64];

	snprintf(name, sizeof(name), "/gpreempt-test-holder.%d", target);
	return name;
}

struct board *board_of(pid_t target)
{
	int fd = shm_open(name_of(target), O_RDWR | O_CREAT, 0600);
	void *board;

	if (fd < 0 || ftruncate(fd, sizeof(struct board)) < 0)
		abort();
	board = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (board == MAP_FAILED)
		abort();
	return board;
}

void board_remove(pid_t target)
{
	shm_unlink(name_of(target));
}
