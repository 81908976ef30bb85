/* SPDX-License-Identifier: MIT */
/* Rules as config.c writes them, and the parsers of what identities are read from. */
#ifndef GPREEMPT_CMD_GPREEMPTD_RULES_INTERNAL_H
#define GPREEMPT_CMD_GPREEMPTD_RULES_INTERNAL_H

#include "cmd/gpreemptd/rules.h"

#define RULE_NAME 24

/* All that is set must match; a rule with nothing set matches nobody. */
struct rule {
	char name[RULE_NAME];
	bool has_uid, has_gid;
	uid_t uid;
	gid_t gid;
	char *cgroup, *container; /* NULL: not set, as those below */
	char *command, *path; /* globs */
	char *variable, *value; /* of the environment: a name and a glob */
	struct verdict verdict;
};

/* It asks for something that a user cannot choose. Only such a rule makes anybody online. */
bool rule_is_trusted(const struct rule *rule);

/*
 * How much of a cgroup's path was named by the system: below the manager of a user's session the
 * names are the user's.
 */
size_t cgroup_trusted_bytes(const char *cgroup);

/* Text of /proc, which may be anything. -EBADMSG; *ret keeps what was known. */
int identity_parse_status(const char *text, struct identity *ret);
/* cgroup and container. -ENOMEM. */
int identity_parse_cgroup(const char *text, struct identity *ret);

#endif
