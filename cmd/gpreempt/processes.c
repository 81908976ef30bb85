/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt/processes.h"

int processes_read(struct cli *cli, struct processes *ret)
{
	size_t room = 32;

	for (;;) {
		struct gpreempt_process_info *list = calloc(room, sizeof(*list));
		int n;

		if (!list)
			return cli_fail(cli, EXIT_FAILED, "free some memory", "out of memory");
		list[0].size = sizeof(*list);
		n = gpreempt_list_processes(cli->ctx, list, room);
		if (n >= 0 && (size_t)n <= room) {
			*ret = (struct processes){ .list = list, .n = (size_t)n };
			return EXIT_DONE;
		}
		free(list);
		if (n < 0)
			return cli_fail_ctx(cli);
		room = (size_t)n;
	}
}
