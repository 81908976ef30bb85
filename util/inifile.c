/* SPDX-License-Identifier: MIT */
#include "util/inifile.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

struct inifile {
	const char *file;
	const char *rest, *end; /* what is not read yet */
	const struct inifile_ops *ops;
	void *user;
	unsigned int line; /* the last one read */
	char *text; /* of it: libinih's buffer, which it cuts up in place */
	size_t size;
	struct inifile_mistake *mistake;
	bool wrong;
};

static int note(struct inifile *ini, unsigned int line, unsigned int column, const char *fmt,
		va_list ap)
{
	struct inifile_mistake *m = ini->mistake;

	if (ini->wrong)
		return -EINVAL;
	ini->wrong = true;
	*m = (struct inifile_mistake){ .line = line, .column = column };
	snprintf(m->file, sizeof(m->file), "%s", ini->file);
	vsnprintf(m->text, sizeof(m->text), fmt, ap);
	return -EINVAL;
}

int inifile_wrong(struct inifile *ini, const char *at, const char *fmt, ...)
{
	bool inside = at >= ini->text && at < ini->text + ini->size;
	va_list ap;

	va_start(ap, fmt);
	note(ini, ini->line, inside ? (unsigned int)(at - ini->text) + 1 : 1, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int inifile_blame(struct inifile *ini, const char *at, const struct inifile_mistake *m)
{
	bool first = !ini->wrong;

	inifile_wrong(ini, at, "%s", m->text);
	if (first)
		memcpy(ini->mistake->names, m->names, sizeof(m->names));
	return -EINVAL;
}

int inifile_wrong_line(struct inifile *ini, unsigned int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(ini, line, 1, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

unsigned int inifile_line(const struct inifile *ini)
{
	return ini->line;
}

/* ---- lines ---- */

static const char *strange_byte(const char *line)
{
	for (const char *c = line; *c; c++) {
		if ((unsigned char)*c < ' ' && *c != '\t')
			return c;
	}
	return NULL;
}

/* Takes a line, without what ends it, into libinih's buffer. */
static int take_line(struct inifile *ini)
{
	const char *newline = memchr(ini->rest, '\n', (size_t)(ini->end - ini->rest));
	size_t len = (size_t)((newline ? newline : ini->end) - ini->rest);
	const char *begin = ini->rest, *nul = memchr(begin, '\0', len);

	ini->line++;
	ini->rest = newline ? newline + 1 : ini->end;
	if (len > 0 && begin[len - 1] == '\r')
		len--;
	ini->text[0] = '\0';
	if (nul)
		return inifile_wrong(ini, ini->text, "this is not text");
	if (len > ini->size - 1)
		return inifile_wrong(ini, ini->text, "a line of more than %zu characters",
				     ini->size - 1);
	memcpy(ini->text, begin, len);
	ini->text[len] = '\0';
	return 0;
}

static int take_section(struct inifile *ini)
{
	char *end = strchr(ini->text, ']');
	const char *after;
	int r;

	if (!end)
		return inifile_wrong(ini, ini->text, "'[' without ']'");
	after = end + 1 + strspn(end + 1, " \t");
	if (*after && *after != ';' && *after != '#')
		return inifile_wrong(ini, after, "only a comment may follow ']'");
	*end = '\0';
	r = ini->ops->section(ini->user, ini, ini->text + 1);
	*end = ']'; /* libinih wants to see the line too */
	return r;
}

static int check_line(struct inifile *ini)
{
	const char *strange = strange_byte(ini->text);
	const char *first = ini->text + strspn(ini->text, " \t");

	if (strange)
		return inifile_wrong(ini, strange, "a control character");
	if (!*first || *first == ';' || *first == '#')
		return 0;
	if (first != ini->text)
		return inifile_wrong(ini, first, "a line must not begin with blanks");
	return *first == '[' ? take_section(ini) : 0;
}

static char *read_line(char *buf, int size, void *stream)
{
	struct inifile *ini = stream;

	if (ini->wrong || ini->rest == ini->end)
		return NULL;
	ini->text = buf;
	ini->size = (size_t)size;
	if (take_line(ini) < 0 || check_line(ini) < 0)
		return NULL;
	return buf;
}

static int take_pair(void *stream, const char *section, const char *key, const char *value)
{
	struct inifile *ini = stream;

	return ini->ops->pair(ini->user, ini, key, value) == 0;
}

/* libinih goes on after a line it cannot read; what was said about later ones does not count. */
static void check_syntax(struct inifile *ini, int r)
{
	if (r <= 0 || (ini->wrong && ini->mistake->line <= (unsigned int)r))
		return;
	ini->wrong = false;
	inifile_wrong_line(ini, (unsigned int)r,
			   "neither '[section]' nor 'key = value' nor '; comment'");
}

int inifile_parse(const char *file, const char *text, size_t len, const struct inifile_ops *ops,
		  void *user, struct inifile_mistake *mistake)
{
	static const char bom[] = "\xef\xbb\xbf";
	struct inifile ini = {
		.file = file,
		.rest = text,
		.end = text + len,
		.ops = ops,
		.user = user,
		.mistake = mistake,
	};
	int r;

	if (len >= strlen(bom) && !memcmp(text, bom, strlen(bom)))
		ini.rest += strlen(bom);
	r = ini_parse_stream(read_line, &ini, take_pair, &ini);
	if (r == -2)
		return -ENOMEM;
	check_syntax(&ini, r);
	if (!ini.wrong)
		ops->section(user, &ini, NULL);
	return ini.wrong ? -EINVAL : 0;
}
