/* SPDX-License-Identifier: MIT */
/* The configuration's keys as tables, and its text without a file. */
#ifndef GPREEMPT_CMD_GPREEMPTD_CONFIG_INTERNAL_H
#define GPREEMPT_CMD_GPREEMPTD_CONFIG_INTERNAL_H

#include "cmd/gpreemptd/config.h"
#include "util/inifile.h"
#include "util/units.h"

#define CONFIG_MAX_BYTES (1u << 20)
#define CONFIG_MAX_RULES 256

enum config_kind {
	CONFIG_NUMBER, /* of @size bytes */
	CONFIG_BOOL,
	CONFIG_POLICY, /* const struct gpol_ops * */
	CONFIG_LOG_LEVEL, /* enum log_level */
	CONFIG_NAME, /* char[] of @size bytes with the NUL */
	CONFIG_TEXT, /* char *, allocated */
	CONFIG_CONTAINER, /* the same, hexadecimal digits */
	CONFIG_DEFAULT_CLASS, /* of struct verdict, as CONFIG_CLASS */
	CONFIG_CLASS,
	CONFIG_USER, /* these are of struct rule as a whole */
	CONFIG_UID,
	CONFIG_GROUP,
	CONFIG_ENVIRONMENT,
};

/* To which classes a key of a rule says something; 0: all. */
#define CONFIG_ONLY_ONLINE (1u << JOB_ONLINE)
#define CONFIG_ONLY_OFFLINE (1u << JOB_OFFLINE)

struct config_key {
	const char *name;
	enum config_kind kind;
	size_t offset, size; /* in struct config, or struct rule */
	unsigned int classes; /* CONFIG_ONLY_* */
	enum unit_kind unit; /* of numbers, as those below */
	uint64_t min, max;
};

struct config_section {
	const char *name;
	const struct config_key *keys;
	size_t n;
};

extern const struct config_section config_sections[]; /* ends without a name */
extern const struct config_section config_rule; /* "rule NAME" */

/* NULL: it has no such key. */
const struct config_key *config_find_key(const struct config_section *section, const char *name);

/* Where a mistake is told; to be returned by those who find one. */
struct config_reader {
	struct inifile *ini;
	char hint[160];
	unsigned int hint_line;
};

/* Goes with the mistake told next. */
void config_hint(struct config_reader *r, const char *fmt, ...) _printf_(2, 3);
/* Hints at the key of @section that @name looks like, or at all there are. */
void config_hint_key(struct config_reader *r, const struct config_section *section,
		     const char *name);
void config_hint_section(struct config_reader *r, const char *name);

/* Puts @value where @key says, into @object. -EINVAL after inifile_wrong(), -ENOMEM. */
int config_set(struct config_reader *r, const struct config_key *key, const char *value,
	       void *object);

/* As config_read() of a file with this text. */
int config_parse(const char *text, size_t len, struct config *ret,
		 struct config_mistake *ret_mistake);

#endif
