/* SPDX-License-Identifier: MIT */
/* Metrics with figures and names of all kinds, to be judged by others. */
#include <stdio.h>

#include "cmd/gpreemptd/metrics.h"
#include "tests/daemon/fake_figures.h"
#include "util/macros.h"

int main(void)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	if (metrics_write(fake_scheduler(), fake_control(), &text, &len) < 0)
		return 1;
	return fwrite(text, 1, len, stdout) != len;
}
