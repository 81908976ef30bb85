/* SPDX-License-Identifier: MIT */
/*
 * A cursor over text that may be anything: no terminator is assumed, no byte is special but
 * the one asked for. A step that does not fit says false and moves nothing.
 */
#ifndef GPREEMPT_GPU_KFD_TEXT_H
#define GPREEMPT_GPU_KFD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gkfd_text {
	const char *at, *end;
};

static inline struct gkfd_text gkfd_text_of(const char *text, size_t len)
{
	return (struct gkfd_text){ text, text + len };
}

static inline bool gkfd_text_ended(const struct gkfd_text *t)
{
	return t->at == t->end;
}

/* Takes the next line, without its newline; false when the text ends before one. */
bool gkfd_text_line(struct gkfd_text *t, struct gkfd_text *ret_line);
bool gkfd_text_skip(struct gkfd_text *t, const char *literal);
/* At least one blank or tab. */
bool gkfd_text_blanks(struct gkfd_text *t);
/* Up to the next blank or tab, at least one byte. */
bool gkfd_text_word(struct gkfd_text *t, struct gkfd_text *ret_word);
bool gkfd_text_equals(const struct gkfd_text *t, const char *literal);
/* Digits only, no sign; a number above @max does not fit. */
bool gkfd_text_dec(struct gkfd_text *t, uint64_t max, uint64_t *ret);
bool gkfd_text_dec32(struct gkfd_text *t, uint32_t *ret);
bool gkfd_text_hex32(struct gkfd_text *t, uint32_t *ret);

/* A whole text that is one decimal number, with or without a newline behind it. */
bool gkfd_text_is_number(const char *text, size_t len, uint64_t max, uint64_t *ret);

/* Copies what fits, always ended by NUL; bytes a terminal would act on become '?'. */
void gkfd_text_copy(const struct gkfd_text *t, char *buf, size_t size);

#endif
