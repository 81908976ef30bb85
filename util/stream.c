/* SPDX-License-Identifier: MIT */
#include "util/stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/macros.h"

static ssize_t take(void *cookie, const char *bytes, size_t n)
{
	struct stream *s = cookie;
	size_t room = MAX(s->room * 2, s->len + n + 1);

	if (s->len + n >= s->room) {
		char *grown = realloc(s->text, room);

		if (!grown)
			return 0;
		s->text = grown;
		s->room = room;
	}
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
	_cleanup_free_ char *text = NULL;
	bool failed = ferror(s->out);

	if (fclose(steal_ptr(&s->out)) != 0)
		failed = true;
	text = steal_ptr(&s->text);
	if (failed)
		return -ENOMEM;
	*ret_text = steal_ptr(&text);
	*ret_len = s->len;
	return 0;
}
