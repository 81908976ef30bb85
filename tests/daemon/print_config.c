/* SPDX-License-Identifier: MIT */
/* usage: print_config [FILE]: every key there is, with its value or, of rules, without. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreemptd/config_internal.h"
#include "util/macros.h"

static const char *level_name(enum log_level level)
{
	switch (level) {
	case LOG_LEVEL_ERROR:
		return "error";
	case LOG_LEVEL_WARNING:
		return "warning";
	case LOG_LEVEL_INFO:
		return "info";
	default:
		return "debug";
	}
}

static void print_value(const struct config_key *key, const struct config *c)
{
	const void *field = (const char *)c + key->offset;
	char text[UNIT_TEXT];
	uint64_t number;

	switch (key->kind) {
	case CONFIG_NUMBER:
		number = key->size == sizeof(uint32_t) ? *(const uint32_t *)field :
							 *(const uint64_t *)field;
		printf("%s", unit_text(key->unit, number, text));
		break;
	case CONFIG_BOOL:
		printf("%s", *(const bool *)field ? "yes" : "no");
		break;
	case CONFIG_POLICY:
		printf("%s", (*(const struct gpol_ops *const *)field)->name);
		break;
	case CONFIG_LOG_LEVEL:
		printf("%s", level_name(*(const enum log_level *)field));
		break;
	case CONFIG_NAME:
		printf("%s", (const char *)field);
		break;
	default:
		printf("%d", ((const struct verdict *)field)->job_class);
		break;
	}
}

int main(int argc, char **argv)
{
	struct config_mistake m = { 0 };
	struct config c;

	if (config_read(argc > 1 ? argv[1] : NULL, &c, &m) < 0) {
		fprintf(stderr, "%s:%d: %s; %s\n", argv[1], m.line, m.text, m.hint);
		return 1;
	}
	for (const struct config_section *s = config_sections; s->name; s++) {
		for (size_t i = 0; i < s->n; i++) {
			printf("%s %s ", s->name, s->keys[i].name);
			print_value(&s->keys[i], &c);
			printf("\n");
		}
	}
	for (size_t i = 0; i < config_rule.n; i++)
		printf("rule %s\n", config_rule.keys[i].name);
	printf("rules %zu\n", c.rules.n);
	config_done(&c);
	return 0;
}
