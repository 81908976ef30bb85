/* SPDX-License-Identifier: MIT */
/* Recordings of any kind, and the page that is made of those that are taken. */
#include <string.h>

#include "cmd/gpreempt/report.h"
#include "tests/fuzz/fuzz.h"

/* Refusals are printed; nobody reads them here. */
static void be_quiet(void)
{
	static bool quiet;

	if (!quiet)
		PROMISE(freopen("/dev/null", "w", stdout));
	quiet = true;
}

/* Text of others is escaped and numbers are numbers: no tag is there but ours. */
static void check_page(const char *page, size_t len)
{
	static const char end[] = "</html>\n";
	/* No text has a quote of its own, so that these can only be ours. */
	static const char *const never[] = { "=\"nan", "=\"-nan", "=\"inf", "=\"-inf", "d=\"Mnan" };

	PROMISE(strlen(page) == len && len > strlen(end));
	PROMISE(strcmp(page + len - strlen(end), end) == 0);
	PROMISE(!strstr(page, "<script"));
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		PROMISE(!strstr(page, never[i]));
	for (const char *c = page; *c; c++)
		PROMISE((unsigned char)*c >= ' ' || *c == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct cli cli = { .program = "fuzz", .json = true, .signal_fd = -1 };
	struct recordings r = { 0 };
	char *text = calloc(1, len + 1), *page = NULL;
	size_t page_len;
	int status;

	be_quiet();
	PROMISE(text);
	memcpy(text, bytes, len);
	status = recordings_parse(&cli, &r, "fuzz", text, len);
	PROMISE(status == EXIT_DONE || status == EXIT_USAGE);
	if (status == EXIT_DONE) {
		PROMISE(r.n > 0 && report_page(&r, &page, &page_len) == 0);
		check_page(page, page_len);
	}
	recordings_done(&r);
	free(page);
	free(text);
	return 0;
}
