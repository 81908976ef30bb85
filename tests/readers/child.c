/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/readers/child.h"
#include "tests/readers/rig.h"

static void child_main(int said, int hold, void (*prepare)(void *arg), void *arg)
{
	char byte = 'r';

	if (prepare)
		prepare(arg);
	do {
		if (write(said, &byte, 1) != 1)
			_exit(3);
	} while (read(hold, &byte, 1) == 1);
	_exit(0);
}

static void expect_byte(struct child *c, char expected)
{
	char byte = 0;

	assert_int_equal(read(c->said, &byte, 1), 1);
	assert_int_equal(byte, expected);
}

void child_start(struct child *c, void (*prepare)(void *arg), void *arg)
{
	int said[2], hold[2];

	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0) {
		close(said[0]);
		close(hold[1]);
		child_main(said[1], hold[0], prepare, arg);
	}
	close(said[1]);
	close(hold[0]);
	c->said = said[0];
	c->hold = hold[1];
	expect_byte(c, 'r');
}

void child_answers(struct child *c)
{
	assert_int_equal(write(c->hold, "x", 1), 1);
	expect_byte(c, 'x');
}

int child_end(struct child *c)
{
	int status;

	close(c->hold);
	assert_int_equal(waitpid(c->pid, &status, __WALL), c->pid);
	close(c->said);
	return status;
}
