/* SPDX-License-Identifier: MIT */
/* What to say beside a mistake: the name that was probably meant. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreemptd/config_internal.h"
#include "util/macros.h"

#define WORD_MAX 32u

void config_hint(struct config_reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->hint, sizeof(r->hint), fmt, ap);
	va_end(ap);
	r->hint_line = inifile_line(r->ini);
}

/* How many letters must be put in, left out or exchanged to make one of the other. */
static size_t distance(const char *a, const char *b)
{
	size_t row[WORD_MAX + 1], n = strnlen(b, WORD_MAX);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i] && i < WORD_MAX; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 1; j <= n; j++) {
			size_t exchanged = diagonal + (a[i] != b[j - 1]);
			size_t put = MIN(row[j], row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = MIN(exchanged, put);
		}
	}
	return row[n];
}

/* Of what was written: the nearest of the names there are. */
struct guess {
	const char *wrong, *meant; /* NULL: none is near */
	size_t distance;
};

static void consider(struct guess *g, const char *right)
{
	size_t d = distance(g->wrong, right), most = strlen(right) > 5 ? 3 : 2;

	if (d <= most && (!g->meant || d < g->distance))
		*g = (struct guess){ g->wrong, right, d };
}

/* "keys of [hint]: expires" */
static void hint_all(struct config_reader *r, const struct config_section *section)
{
	char names[sizeof(r->hint)];
	size_t n = 0;

	names[0] = '\0';
	for (size_t i = 0; i < section->n && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "",
				      section->keys[i].name);
	config_hint(r, "its keys are %s", names);
}

void config_hint_key(struct config_reader *r, const struct config_section *section,
		     const char *name)
{
	const struct config_section *other = config_sections;
	struct guess g = { name };

	for (size_t i = 0; i < section->n; i++)
		consider(&g, section->keys[i].name);
	while (other->name && !config_find_key(other, name))
		other++;
	if (g.meant)
		config_hint(r, "did you mean '%s'?", g.meant);
	else if (other->name)
		config_hint(r, "that is a key of [%s]", other->name);
	else
		hint_all(r, section);
}

void config_hint_section(struct config_reader *r, const char *name)
{
	struct guess g = { name };

	for (const struct config_section *s = config_sections; s->name; s++)
		consider(&g, s->name);
	if (g.meant)
		config_hint(r, "did you mean [%s]?", g.meant);
	else if (!strncmp(name, "rule", 4))
		config_hint(r, "a rule has a name: [rule NAME]");
	else
		config_hint(r, "there are [policy], [look], [hold], [slots], [hint], [control], "
			       "[metrics], [default] and [rule NAME]");
}
