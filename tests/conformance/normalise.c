/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "tests/conformance/normalise.h"
#include "util/macros.h"

/* A word: what stands between characters that are no part of a number or a name. */
struct word {
	const char *at;
	size_t len;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool parse(const struct word *w, size_t skip, int base, uint64_t *ret)
{
	char digits[24];
	char *end;

	if (w->len <= skip || w->len - skip >= sizeof(digits))
		return false;
	memcpy(digits, w->at + skip, w->len - skip);
	digits[w->len - skip] = '\0';
	if (!isxdigit((unsigned char)digits[0]))
		return false;
	*ret = strtoull(digits, &end, base);
	return *end == '\0';
}

static bool prefixed(const struct word *w)
{
	return w->len > 2 && w->at[0] == '0' && w->at[1] == 'x';
}

static bool matches(const struct name *n, const struct word *w, uint64_t *ret_offset)
{
	uint64_t v;

	*ret_offset = 0;
	switch (n->kind) {
	case NAME_PID:
		return parse(w, 0, 10, &v) && v == n->value;
	case NAME_GPU:
		return (parse(w, 0, 10, &v) && v == n->value) ||
		       (parse(w, 0, 16, &v) && v == n->value);
	case NAME_PASID:
		return (parse(w, 0, 10, &v) && v == n->value) ||
		       (prefixed(w) && parse(w, 2, 16, &v) && v == n->value);
	case NAME_ADDRESS:
		if (!prefixed(w) || !parse(w, 2, 16, &v) || v - n->value >= n->bytes)
			return false;
		*ret_offset = v - n->value;
		return true;
	}
	return false;
}

static bool is_time(const struct word *w)
{
	size_t digits = 0;

	while (digits < w->len && isdigit((unsigned char)w->at[digits]))
		digits++;
	return digits && w->len == digits + 2 && w->at[w->len - 1] == 's' &&
	       strchr("num", w->at[digits]);
}

static void put_word(FILE *out, const struct name *names, size_t n, const struct word *w)
{
	uint64_t offset;

	if (is_time(w)) {
		fputs("<time>", out);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (!matches(&names[i], w, &offset))
			continue;
		fprintf(out, "<%s", names[i].text);
		if (offset)
			fprintf(out, "+0x%" PRIx64, offset);
		fputc('>', out);
		return;
	}
	fwrite(w->at, 1, w->len, out);
}

char *normalise(const struct name *names, size_t n, const char *line)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	while (*line) {
		struct word w = { .at = line };

		while (is_word(line[w.len]))
			w.len++;
		if (w.len)
			put_word(out, names, n, &w);
		else
			fputc(line[w.len++], out);
		line += w.len;
	}
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
