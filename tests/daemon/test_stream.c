/* SPDX-License-Identifier: MIT */
/* A stream into memory, and what it leaves behind. */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/stream.h"

static char *write_text(size_t len, size_t *ret_len)
{
	struct stream s;
	char *text = NULL;

	assert_int_equal(stream_open(&s), 0);
	for (size_t i = 0; i < len; i++)
		fputc('a' + (int)(i % 26), s.out);
	assert_int_equal(stream_close(&s, &text, ret_len), 0);
	return text;
}

static void a_text_of_any_length_comes_out_whole(void **state)
{
	static const size_t lengths[] = { 0, 1, 2, 4095, 4096, 4097, 8192, 100000 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t len = 1;
		char *text = write_text(lengths[i], &len);

		assert_int_equal(len, lengths[i]);
		assert_int_equal(text[len], '\0');
		for (size_t k = 0; k < len; k++)
			assert_int_equal(text[k], 'a' + (int)(k % 26));
		free(text);
	}
}

static void a_stream_that_failed_leaves_nothing(void **state)
{
	struct stream s;
	char *text = NULL;
	size_t len = 7;

	assert_int_equal(stream_open(&s), 0);
	fputs("lost", s.out);
	assert_int_equal(fgetc(s.out), EOF); /* is not for reading: a failure like any other */
	assert_int_equal(stream_close(&s, &text, &len), -ENOMEM);
	assert_null(text);
	assert_int_equal(len, 7);
}

/* As a daemon writes its figures; what a text is cut to size by must not come to lie about. */
static void texts_of_varying_length_do_not_grow_the_heap(void **state)
{
	size_t before = 0;

	for (size_t i = 0; i < 800; i++) {
		size_t len;

		free(write_text(32000 + i * 37 % 1000, &len));
		if (i == 20)
			before = mallinfo2().arena;
	}
	assert_true(mallinfo2().arena <= before + (256 << 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_of_any_length_comes_out_whole),
		cmocka_unit_test(a_stream_that_failed_leaves_nothing),
		cmocka_unit_test(texts_of_varying_length_do_not_grow_the_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
