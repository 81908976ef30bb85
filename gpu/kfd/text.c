/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "gpu/kfd/text.h"
#include "util/macros.h"

static size_t left(const struct gkfd_text *t)
{
	return (size_t)(t->end - t->at);
}

bool gkfd_text_line(struct gkfd_text *t, struct gkfd_text *ret_line)
{
	const char *newline = gkfd_text_ended(t) ? NULL : memchr(t->at, '\n', left(t));

	if (!newline)
		return false;
	*ret_line = (struct gkfd_text){ t->at, newline };
	t->at = newline + 1;
	return true;
}

bool gkfd_text_skip(struct gkfd_text *t, const char *literal)
{
	size_t len = strlen(literal);

	if (left(t) < len || memcmp(t->at, literal, len) != 0)
		return false;
	t->at += len;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool gkfd_text_blanks(struct gkfd_text *t)
{
	const char *start = t->at;

	while (t->at < t->end && is_blank(*t->at))
		t->at++;
	return t->at > start;
}

bool gkfd_text_word(struct gkfd_text *t, struct gkfd_text *ret_word)
{
	const char *start = t->at;

	while (t->at < t->end && !is_blank(*t->at))
		t->at++;
	if (t->at == start)
		return false;
	*ret_word = (struct gkfd_text){ start, t->at };
	return true;
}

bool gkfd_text_equals(const struct gkfd_text *t, const char *literal)
{
	return left(t) == strlen(literal) && memcmp(t->at, literal, left(t)) == 0;
}

static uint32_t digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (uint32_t)(c - 'a' + 10);
	if (c >= 'A' && c <= 'F')
		return (uint32_t)(c - 'A' + 10);
	return 16;
}

bool gkfd_text_dec(struct gkfd_text *t, uint64_t max, uint64_t *ret)
{
	const char *p = t->at;
	uint64_t value = 0;

	for (; p < t->end; p++) {
		uint32_t digit = digit_of(*p);

		if (digit >= 10)
			break;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, digit, &value) || value > max)
			return false;
	}
	if (p == t->at)
		return false;
	t->at = p;
	*ret = value;
	return true;
}

bool gkfd_text_dec32(struct gkfd_text *t, uint32_t *ret)
{
	uint64_t value;

	if (!gkfd_text_dec(t, UINT32_MAX, &value))
		return false;
	*ret = (uint32_t)value;
	return true;
}

/* A dump of all descriptors is mostly this, and a command reads it whole: only shifts. */
bool gkfd_text_hex32(struct gkfd_text *t, uint32_t *ret)
{
	const char *p = t->at;
	uint32_t value = 0;

	for (; p < t->end; p++) {
		uint32_t digit = digit_of(*p);

		if (digit >= 16)
			break;
		if (value >> 28)
			return false;
		value = value << 4 | digit;
	}
	if (p == t->at)
		return false;
	t->at = p;
	*ret = value;
	return true;
}

bool gkfd_text_is_number(const char *text, size_t len, uint64_t max, uint64_t *ret)
{
	struct gkfd_text t = gkfd_text_of(text, len);
	uint64_t value;

	if (!gkfd_text_dec(&t, max, &value))
		return false;
	gkfd_text_skip(&t, "\n");
	if (!gkfd_text_ended(&t))
		return false;
	*ret = value;
	return true;
}

void gkfd_text_copy(const struct gkfd_text *t, char *buf, size_t size)
{
	size_t n = MIN(left(t), size - 1);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)t->at[i];

		buf[i] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	buf[n] = '\0';
}
