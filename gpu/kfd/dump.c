/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/dump.h"

#define WORD_CHARS 9 /* " 01234567" */

bool gkfd_dump_heading(struct gkfd_text *line)
{
	struct gkfd_text t = *line;

	if (!gkfd_text_blanks(&t) || gkfd_text_ended(&t) || *t.at < 'A' || *t.at > 'Z')
		return false;
	*line = t;
	return true;
}

size_t gkfd_dump_row(struct gkfd_text line, uint32_t *ret_start,
		     uint32_t ret_words[GKFD_DUMP_ROW_WORDS])
{
	size_t n = 0, chars;

	if (!gkfd_text_blanks(&line) || !gkfd_text_hex32(&line, ret_start) ||
	    !gkfd_text_skip(&line, ":"))
		return 0;
	chars = (size_t)(line.end - line.at);
	if (!ret_words) {
		if (chars % WORD_CHARS != 0 || chars / WORD_CHARS > GKFD_DUMP_ROW_WORDS)
			return 0;
		return chars / WORD_CHARS;
	}
	while (!gkfd_text_ended(&line)) {
		if (n == GKFD_DUMP_ROW_WORDS || !gkfd_text_blanks(&line) ||
		    !gkfd_text_hex32(&line, &ret_words[n]))
			return 0;
		n++;
	}
	return n;
}

int gkfd_dump_lines(const char *text, size_t len,
		    int (*take)(void *data, const struct gkfd_text *line), void *data,
		    uint32_t *ret_line)
{
	struct gkfd_text t = gkfd_text_of(text, len), line;
	uint32_t number = 0;
	int r;

	do {
		if (gkfd_text_ended(&t)) {
			r = take(data, NULL);
			break;
		}
		number++;
		r = gkfd_text_line(&t, &line) ? take(data, &line) : -EBADMSG;
	} while (r == 0);

	if (r == -EBADMSG)
		*ret_line = number;
	return r;
}
