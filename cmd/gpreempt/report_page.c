/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "cmd/gpreempt/report.h"

static void put_recording(struct page *p, size_t nth, const struct recording *r)
{
	switch (r->kind) {
	case RECORDING_SIM:
		report_sim(p, nth, r->root);
		break;
	case RECORDING_TRACE:
		report_trace(p, nth, r->trace);
		break;
	case RECORDING_BENCH:
		report_bench(p, nth, r->root);
		break;
	case RECORDING_COSTS:
		report_costs(p, nth, r->root);
		break;
	case RECORDING_HARDWARE:
		report_hardware(p, nth, r->root);
		break;
	case RECORDING_DAEMON:
		report_daemon(p, nth, r->daemon);
		break;
	}
}

int report_page(const struct recordings *r, char **ret_text, size_t *ret_len)
{
	struct page p = { .out = open_memstream(ret_text, ret_len) };
	bool broken;

	if (!p.out)
		return -ENOMEM;
	html_begin(&p, r);
	for (size_t i = 0; i < r->n; i++)
		put_recording(&p, i, &r->of[i]);
	html_end(&p);
	broken = ferror(p.out) != 0;
	broken |= fclose(p.out) != 0;
	return broken ? -ENOMEM : 0;
}
