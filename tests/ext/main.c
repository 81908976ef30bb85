/* SPDX-License-Identifier: MIT */
/*
 * usage: ext-cases LABEL [CASE]...
 *
 * Tries the extension on the machine as it is, one case after the other, or only those whose names
 * begin so; a line of TAP for each, without the plan. The exit status is 0 when all went well.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/ext/ext.h"

static jmp_buf out;
static char why[512];
static bool runs; /* a case does */

static const struct ext_case *const tables[] = {
	argument_cases, right_cases,  hold_cases, file_cases, life_cases,      switch_cases,
	victim_cases,	ticket_cases, stop_cases, look_cases, interplay_cases, gpu_cases,
	scheduler_cases, fault_cases,
};

_Noreturn void fail_case(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, sizeof(why), format, ap);
	va_end(ap);
	if (!runs) {
		fprintf(stderr, "ext-cases: %s\n", why);
		exit(1);
	}
	longjmp(out, 1);
}

const char *result_name(long r)
{
	static char texts[4][32];
	static unsigned int next;
	char *text = texts[next++ % 4];
	const char *name = r < 0 && r > -4096 ? strerrorname_np((int)-r) : NULL;

	if (name)
		snprintf(text, sizeof(texts[0]), "-%s", name);
	else
		snprintf(text, sizeof(texts[0]), "%ld", r);
	return text;
}

void expect_is(const char *what, long got, long wanted)
{
	expect(got == wanted, "%s: %s instead of %s", what, result_name(got), result_name(wanted));
}

/* All but the watcher's, which was opened before. */
static int highest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void clear_away(int from)
{
	forget_actors();
	for (int fd = from; fd < from + 256; fd++)
		close(fd);
	machine.may_be_off = false;
	wait_for_no_queues();
	check_books();
}

/* What is not cleared away is wrong, too, but the case's own complaint says more. */
static bool attempt(const struct ext_case *c)
{
	char first[sizeof(why)] = "";
	volatile bool good = true;
	int from = highest_fd();

	runs = true;
	if (!setjmp(out))
		c->run();
	else
		good = false;
	if (!good)
		memcpy(first, why, sizeof(why));
	if (!setjmp(out))
		clear_away(from);
	else
		good = false;
	if (first[0])
		memcpy(why, first, sizeof(why));
	runs = false;
	return good;
}

static bool is_chosen(const struct ext_case *c, char **names, int n)
{
	unsigned int here = machine.is_mes ? ON_MES : ON_CP;

	if (!(c->where & here) || !(c->where & ON_TWO) != (machine.n_gpus < 2))
		return false;
	for (int i = 0; i < n; i++) {
		if (!strncmp(c->name, names[i], strlen(names[i])))
			return true;
	}
	return n == 0;
}

int main(int argc, char **argv)
{
	unsigned int failed = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: ext-cases LABEL [CASE]...\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	find_machine();
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++) {
		for (const struct ext_case *c = tables[t]; c->name; c++) {
			uint64_t began = now_ms();
			bool good;

			if (!is_chosen(c, argv + 2, argc - 2))
				continue;
			good = attempt(c);
			failed += !good;
			printf("%sok - %s: %s\n", good ? "" : "not ", argv[1], c->name);
			if (!good)
				printf("# %s\n", why);
			if (getenv("VERBOSE"))
				printf("# %llu ms\n", (unsigned long long)(now_ms() - began));
		}
	}
	return failed != 0;
}
