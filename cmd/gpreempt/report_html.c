/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <string.h>

#include "cmd/gpreempt/report.h"

#define TEXT_MAX 300 /* bytes of what others wrote, at a time */

extern const char report_style[];

void html_raw(struct page *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(p->out, fmt, ap);
	va_end(ap);
}

/* The bytes of one character of clean UTF-8. */
static size_t length_at(const char *s)
{
	size_t n = 1;

	while ((s[n] & 0xc0) == 0x80)
		n++;
	return n;
}

static void put_escaped(struct page *p, const char *text)
{
	for (size_t n, sum = 0; *text; text += n, sum += n) {
		n = length_at(text);
		if (sum + n > TEXT_MAX) {
			fputs("…", p->out);
			return;
		}
		switch (*text) {
		case '&':
			fputs("&amp;", p->out);
			break;
		case '<':
			fputs("&lt;", p->out);
			break;
		case '>':
			fputs("&gt;", p->out);
			break;
		case '"':
			fputs("&quot;", p->out);
			break;
		case '\'':
			fputs("&#39;", p->out);
			break;
		default:
			fwrite(text, 1, n, p->out);
		}
	}
}

void html_text(struct page *p, const char *text)
{
	_cleanup_free_ char *clean = strndup(text, TEXT_MAX + 8);

	if (!clean)
		return; /* the page is short of memory too, and will say so */
	text_clean(clean);
	put_escaped(p, clean);
}

void html_put(struct page *p, const char *markup, ...)
{
	va_list ap;

	va_start(ap, markup);
	for (const char *hole; (hole = strstr(markup, "%s")); markup = hole + 2) {
		fwrite(markup, 1, (size_t)(hole - markup), p->out);
		html_text(p, va_arg(ap, const char *));
	}
	va_end(ap);
	fputs(markup, p->out);
}

const char *html_duration(uint64_t ns, char buf[UNIT_TEXT_SIZE])
{
	size_t n = strlen(text_duration(ns, buf));

	if (n > 3 && strcmp(buf + n - 3, " us") == 0)
		snprintf(buf + n - 2, UNIT_TEXT_SIZE - n + 2, "µs");
	return buf;
}

const char *ground_word(enum ground g)
{
	return g == GROUND_MODELLED ? "modelled" : g == GROUND_MEASURED ? "measured" : "unknown";
}

static void put_badge(struct page *p, enum ground g)
{
	html_raw(p, " <span class=\"badge %s\">%s</span>", ground_word(g),
		 g == GROUND_UNKNOWN ? "not said" : ground_word(g));
}

/* ---- the page ---- */

static const char *base_name(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash && slash[1] ? slash + 1 : file;
}

static void put_contents(struct page *p, const struct recordings *r)
{
	html_raw(p, "<nav aria-label=\"Recordings\"><ul>\n");
	for (size_t i = 0; i < r->n; i++) {
		html_raw(p, "<li><a href=\"#part%zu\"><bdi>", i);
		html_text(p, base_name(r->of[i].file));
		html_raw(p, "</bdi></a>: %s", recording_word(&r->of[i]));
		put_badge(p, recording_ground(&r->of[i]));
		html_raw(p, "</li>\n");
	}
	html_raw(p, "</ul></nav>\n");
}

/* What is drawn in more than one picture. */
static void put_shared(struct page *p)
{
	html_raw(p,
		 "<svg width=\"0\" height=\"0\" aria-hidden=\"true\" style=\"position:absolute\">"
		 "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" "
		 "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
		 "<rect width=\"6\" height=\"6\" style=\"fill:var(--card)\"/>"
		 "<rect width=\"3\" height=\"6\" style=\"fill:var(--held)\"/>"
		 "</pattern></defs></svg>\n");
}

void html_begin(struct page *p, const struct recordings *r)
{
	html_raw(p, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		    "<meta name=\"color-scheme\" content=\"light dark\">\n"
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		    "style-src 'unsafe-inline'; img-src data:\">\n"
		    "<link rel=\"icon\" href=\"data:,\">\n"
		    "<meta name=\"generator\" content=\"gpreempt " GPREEMPT_VERSION "\">\n"
		    "<title>gpreempt report</title>\n<style>\n");
	fputs(report_style, p->out);
	html_raw(p, "</style>\n</head>\n<body>\n");
	put_shared(p);
	html_raw(p,
		 "<header>\n<h1>gpreempt report</h1>\n<p class=\"sub\">%zu recording%s. "
		 "Beside every picture stands what was measured and what comes from a model, "
		 "and below it are its numbers.</p>\n",
		 r->n, r->n == 1 ? "" : "s");
	put_contents(p, r);
	html_raw(p, "</header>\n<main>\n");
}

void html_end(struct page *p)
{
	html_raw(p, "</main>\n<footer><p>Made by gpreempt " GPREEMPT_VERSION " from the recordings "
		    "named above and nothing else; the page loads nothing and runs no "
		    "scripts.</p></footer>\n</body>\n</html>\n");
}

void html_section(struct page *p, size_t nth, const char *title, const char *subtitle,
		  enum ground g)
{
	html_raw(p,
		 "<section id=\"part%zu\" aria-labelledby=\"head%zu\">\n<h2 id=\"head%zu\"><bdi>",
		 nth, nth, nth);
	html_put(p, "%s</bdi>", title);
	put_badge(p, g);
	html_put(p, "</h2>\n<p class=\"sub\"><bdi>%s</bdi></p>\n", subtitle);
}

void html_section_end(struct page *p)
{
	html_raw(p, "</section>\n");
}

/* ---- pictures ---- */

void html_figure(struct page *p, const char *title, const char *text)
{
	unsigned int id = p->ids++;

	html_raw(p, "<figure aria-labelledby=\"fig%u\">\n<figcaption><h3 id=\"fig%u\"><bdi>", id,
		 id);
	html_put(p, "%s</bdi></h3><p>%s</p></figcaption>\n", title, text);
}

void html_svg(struct page *p, const char *title, const char *desc, unsigned int height)
{
	unsigned int id = p->ids++;

	html_raw(p,
		 "<svg role=\"img\" aria-labelledby=\"t%u d%u\" height=\"%u\"><title id=\"t%u\">",
		 id, id, height, id);
	html_text(p, title);
	html_raw(p, "</title><desc id=\"d%u\">", id);
	html_put(p, "%s</desc>\n", desc);
}

void html_ground(struct page *p, enum ground g, const char *text)
{
	html_raw(p, "<p class=\"ground\">");
	put_badge(p, g);
	html_put(p, " %s</p>\n", text);
}

void html_figure_end(struct page *p)
{
	html_raw(p, "</figure>\n");
}

void html_tiles(struct page *p)
{
	html_raw(p, "<div class=\"tiles\">\n");
}

void html_tile(struct page *p, const char *what, const char *figure, const char *text)
{
	html_put(p, "<div class=\"tile\"><span>%s</span><b>%s</b><span>%s</span></div>\n", what,
		 figure, text);
}

void html_tiles_end(struct page *p)
{
	html_raw(p, "</div>\n");
}

/* ---- tables ---- */

void html_table(struct page *p, const char *caption, const char *const *columns, size_t n)
{
	html_put(p,
		 "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"%s\"><table>"
		 "<caption>%s</caption><thead><tr>",
		 caption, caption);
	for (size_t i = 0; i < n; i++)
		html_put(p, "<th scope=\"col\">%s</th>", columns[i]);
	html_raw(p, "</tr></thead><tbody>\n");
}

void html_row(struct page *p, const char *key, const char *name)
{
	html_put(p, "<tr data-row=\"%s\"><th scope=\"row\"><bdi>%s</bdi></th>", key, name);
}

void html_cell(struct page *p, const char *text)
{
	html_put(p, "<td>%s</td>", text[0] ? text : "–");
}

/* A parsed number keeps the digits it came with. */
void html_cell_number(struct page *p, struct json_object *value)
{
	const char *text = "";
	char buf[32];
	double number;

	if (number_of(value, &number)) {
		text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
		if (strlen(text) > 24) {
			snprintf(buf, sizeof(buf), "%.15g", number);
			text = buf;
		}
	}
	html_cell(p, text);
}

void html_cells(struct page *p, struct json_object *o, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		html_cell_number(p, field(o, keys[i]));
}

void html_more(struct page *p, size_t shown, size_t all, const char *of)
{
	if (all > shown)
		html_raw(p, "<p class=\"ground\">The first %zu of %zu %s.</p>\n", shown, all, of);
}

void html_cell_format(struct page *p, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	html_cell(p, text);
}

void html_row_end(struct page *p)
{
	html_raw(p, "</tr>\n");
}

void html_table_end(struct page *p)
{
	html_raw(p, "</tbody></table></div>\n");
}
