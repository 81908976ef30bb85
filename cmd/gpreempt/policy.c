/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/daemon.h"

static int print_json(struct cli *cli, const struct gpreempt_policy *p)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();
	char names[sizeof(p->names)], *at = names, *name;

	json_add_string(o, "policy", p->name);
	memcpy(names, p->names, sizeof(names));
	while ((name = strsep(&at, " ")) != NULL)
		if (name[0])
			json_object_array_add(list, json_object_new_string(name));
	json_add(o, "policies", list);
	return cli_print_json(cli, o);
}

static int print_text(const struct gpreempt_policy *p)
{
	char names[sizeof(p->names)], *at = names, *name;

	memcpy(names, p->names, sizeof(names));
	while ((name = strsep(&at, " ")) != NULL)
		if (name[0])
			printf("%s %s\n", strcmp(name, p->name) ? " " : "*", name);
	return EXIT_DONE;
}

static int show(struct cli *cli, bool only_name)
{
	struct gpreempt_policy p = { .size = sizeof(p) };

	if (gpreempt_daemon_get_policy(cli->daemon, &p) < 0)
		return daemon_failed(cli, cli->daemon);
	text_clean(p.name);
	text_clean(p.names);
	if (cli->json)
		return print_json(cli, &p);
	if (!only_name)
		return print_text(&p);
	printf("the policy is now %s\n", p.name);
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
