/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt-top/lines.h"

#include <stdarg.h>
#include <string.h>

#include "util/array.h"

static struct view_line *last(struct lines *l)
{
	return &l->lines[l->n - 1];
}

void line_begin(struct lines *l, enum view_look look)
{
	if (array_reserve(&l->lines, l->n + 1, &l->room, sizeof(*l->lines)) < 0)
		l->failed = true;
	if (l->failed)
		return;
	l->n++;
	l->columns = 0;
	l->bytes = 0;
	last(l)->look = look;
	last(l)->text[0] = '\0';
}

static void put(struct lines *l, const char *bytes, size_t n)
{
	if (l->failed || l->columns >= MIN(l->width, VIEW_COLUMNS_MAX))
		return;
	memcpy(last(l)->text + l->bytes, bytes, n);
	l->bytes += n;
	l->columns++;
	last(l)->text[l->bytes] = '\0';
}

static void put_ascii(struct lines *l, char c)
{
	if (c < 0x20 || c > 0x7e)
		c = '?';
	put(l, &c, 1);
}

static void add(struct lines *l, const char *fmt, va_list ap)
{
	char text[VIEW_COLUMNS_MAX + 1];

	vsnprintf(text, sizeof(text), fmt, ap);
	for (const char *c = text; *c; c++)
		put_ascii(l, *c);
}

void line_add(struct lines *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(l, fmt, ap);
	va_end(ap);
}

void line_say(struct lines *l, enum view_look look, const char *fmt, ...)
{
	va_list ap;

	line_begin(l, look);
	va_start(ap, fmt);
	add(l, fmt, ap);
	va_end(ap);
}

void line_cell(struct lines *l, const char *text, unsigned int width, bool right)
{
	line_add(l, "%*.*s", right ? (int)width : -(int)width, (int)width, text);
}

void line_bar(struct lines *l, unsigned int value, unsigned int whole, bool utf8)
{
	/* Eighths of a block: U+2581 to U+2588. */
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const plain[] = { " ", ".", ".", ":", "-", "=", "+", "*", "#" };
	unsigned int level = (MIN(value, whole) * 8 + whole - 1) / whole;
	const char *mark = (utf8 ? blocks : plain)[level];

	put(l, mark, strlen(mark));
}

void line_fill(struct lines *l)
{
	while (!l->failed && l->columns < MIN(l->width, VIEW_COLUMNS_MAX))
		put_ascii(l, ' ');
}

void lines_done(struct lines *l)
{
	free(l->lines);
	*l = (struct lines){ 0 };
}

const char *short_duration(uint64_t ns, char buf[UNIT_TEXT_SIZE])
{
	unsigned long long minutes = ns / NSEC_PER_SEC / 60;

	if (minutes >= 1000)
		snprintf(buf, UNIT_TEXT_SIZE, "%llu h", minutes / 60);
	else if (minutes >= 16)
		snprintf(buf, UNIT_TEXT_SIZE, "%llu min", minutes);
	else if (ns == 0)
		snprintf(buf, UNIT_TEXT_SIZE, "0");
	else
		text_duration(ns, buf);
	return buf;
}
