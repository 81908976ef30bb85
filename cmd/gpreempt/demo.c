/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/cli.h"

int cmd_demo(struct cli *cli, int argc, char **argv)
{
	return cmd_later(cli, argc, argv);
}
