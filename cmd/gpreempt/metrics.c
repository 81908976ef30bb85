/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cmd/gpreempt/daemon.h"

/* Names of processes are in it: each line as clean as any other text of ours. */
static void clean_lines(char *text)
{
	while (*text) {
		char *end = strchrnul(text, '\n'), was = *end;

		*end = '\0';
		text_clean(text);
		*end = was;
		text = was ? end + 1 : end;
	}
}

int cmd_metrics(struct cli *cli, int argc, char **argv)
{
	_cleanup_free_ char *text = NULL;
	int status = daemon_begin(cli, argc, argv);
	size_t len = 0;

	if (status != EXIT_DONE)
		return status;
	if (gpreempt_daemon_get_metrics(cli->daemon, &text, &len) < 0)
		return daemon_failed(cli, cli->daemon);
	clean_lines(text);
	return cli_answer(cli, json_of("metrics", json_object_new_string(text)), "%s", text);
}
