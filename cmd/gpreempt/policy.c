/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/daemon.h"

static int show(struct cli *cli, bool only_name)
{
	struct gpreempt_policy p = { .size = sizeof(p) };
	struct json_object *o, *list;
	char *at = p.names, *name;

	if (gpreempt_daemon_get_policy(cli->daemon, &p) < 0)
		return daemon_failed(cli, cli->daemon);
	text_clean(p.name);
	text_clean(p.names);
	list = json_object_new_array();
	o = json_of("policy", json_object_new_string(p.name));
	json_add(o, "policies", list);
	while ((name = strsep(&at, " ")) != NULL) {
		if (!name[0])
			continue;
		json_object_array_add(list, json_object_new_string(name));
		if (!cli->json && !only_name)
			printf("%s %s\n", strcmp(name, p.name) ? " " : "*", name);
	}
	if (cli->json || only_name)
		return cli_answer(cli, o, "the policy is now %s\n", p.name);
	json_object_put(o);
	return EXIT_DONE;
}

int cmd_policy(struct cli *cli, int argc, char **argv)
{
	int status = daemon_begin(cli, argc, argv);
	bool set = optind < argc;

	if (status != EXIT_DONE)
		return status;
	if (set && gpreempt_daemon_set_policy(cli->daemon, argv[optind]) < 0)
		return daemon_failed(cli, cli->daemon);
	return show(cli, set);
}
