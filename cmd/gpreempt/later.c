/* SPDX-License-Identifier: MIT */
/* Names that are spoken for, and what they lack. */
#include "cmd/gpreempt/cli.h"

int cmd_needs_extension(struct cli *cli, int argc, char **argv)
{
	return cli_fail(cli, EXIT_REFUSED, "to keep one process off the GPU: gpreempt hold PID",
			"'%s' needs the kernel extension (level K3), which is not loaded",
			cli->command->name);
}
