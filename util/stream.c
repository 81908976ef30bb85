/* SPDX-License-Identifier: MIT */
#include "util/stream.h"

#include <stdbool.h>
#include <string.h>

#include "util/array.h"
#include "util/macros.h"

static ssize_t take(void *cookie, const char *bytes, size_t n)
{
	struct stream *s = cookie;

	if (array_reserve(&s->text, s->len + n + 1, &s->room, 1) < 0)
		return 0;
	memcpy(s->text + s->len, bytes, n);
	s->len += n;
	s->text[s->len] = '\0';
	return (ssize_t)n;
}

int stream_open(struct stream *ret)
{
	const cookie_io_functions_t functions = { .write = take };

	*ret = (struct stream){ .text = calloc(1, 1), .room = 1 };
	if (!ret->text)
		return -ENOMEM;
	ret->out = fopencookie(ret, "w", functions);
	if (!ret->out) {
		free(steal_ptr(&ret->text));
		return -ENOMEM;
	}
	return 0;
}

int stream_close(struct stream *s, char **ret_text, size_t *ret_len)
{
	bool failed = ferror(s->out);

	if (fclose(steal_ptr(&s->out)) != 0 || failed) {
		free(steal_ptr(&s->text));
		return -ENOMEM;
	}
	*ret_text = steal_ptr(&s->text);
	*ret_len = s->len;
	return 0;
}
