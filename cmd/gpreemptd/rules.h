/* SPDX-License-Identifier: MIT */
/*
 * Which class a process is of.
 *
 * A rule names what it matches and the class it gives; the first that matches counts. What a user
 * cannot forge, the user and the cgroup a process runs in, may make it online. Its command, path
 * and environment, which it can, only make it offline, or narrow what user or cgroup already
 * allow.
 */
#ifndef GPREEMPT_CMD_GPREEMPTD_RULES_H
#define GPREEMPT_CMD_GPREEMPTD_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi/job_class.h"
#include "gpu/helpers/proc_files.h"

/* What a process is told to be. */
struct verdict {
	enum job_class job_class;
	uint8_t priority;
	bool critical, lazy, auto_deactivate;
	uint32_t weight, min_permille;
	uint64_t target_ns, wait_bound_ns; /* 0: none */
	char gang[32]; /* processes of one name stop together; empty: by itself */
	char source[32]; /* "rule NAME", "request", "default" */
};

/* What is known of a process; texts are the process's own and may be anything. */
struct identity {
	struct proc_stat stat;
	uid_t uid; /* real: who started it, not what a set-uid program makes of it */
	gid_t gid;
	char *cgroup; /* the path, "/": none; the unified hierarchy, else the longest of any */
	char *cgroups; /* those of all hierarchies, NUL between them, an empty one last; or NULL */
	char container[72]; /* the first 64 hex digits in it, else empty */
	char *path; /* of the program; NULL: not known, as those below */
	char *command; /* the arguments, with blanks between them */
	char *environment; /* NUL between them, an empty one last */
	struct proc_stat *ancestors; /* the nearest first, without init */
	size_t n_ancestors;
	uint32_t unread; /* PROC_BITs of what rules ask for and it did not let be read */
};

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

struct rules {
	struct rule *rules;
	size_t n;
	struct verdict fallback; /* what no rule matches; never online */
};

/* The files (PROC_BITs) that say who a process is, as far as the rules ask. */
uint32_t identity_files(const struct rules *rules);
/* What they say. -EBADMSG. What cannot be read is not known. */
int identity_take(const struct proc_files *files, struct identity *ret);
void identity_done(struct identity *id);

/* @trusted: by what the system named only; a user may have named the rest. */
bool identity_is_in_cgroup(const struct identity *id, const char *pattern, bool trusted);
bool identity_is_in_container(const struct identity *id, const char *digits, bool trusted);

/* It asks for something that a user cannot choose. Only such a rule makes anybody online. */
bool rule_is_trusted(const struct rule *rule);
void rules_judge(const struct rules *rules, const struct identity *id, struct verdict *ret);
void rules_done(struct rules *rules);

/* "cgroup:", "name:" and container selectors of requests: the same matching as rules have. */
bool match_glob(const char *pattern, const char *text); /* all of it; '*' also matches '/' */
bool match_cgroup(const char *pattern, const char *cgroup); /* of it, or of one it is within */
bool match_container(const char *id, const char *container); /* 12 or more leading digits */

/* ---- what these are made of ---- */

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
