/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/scheduler.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct gkfd_schedulers found = { 0 };
	uint32_t line = 0;
	int r = gkfd_schedulers_parse((const char *)bytes, len, &found, &line);

	PROMISE(r == 0 || (r == -EBADMSG && line > 0 && line <= len));
	for (size_t i = 0; i < found.n; i++) {
		const struct gkfd_scheduled *g = &found.gpus[i];

		PROMISE(g->on || !(g->known & ~(uint32_t)GKFD_SCHEDULER_SLOTS));
		PROMISE(memchr(g->policy, '\0', sizeof(g->policy)));
	}
	gkfd_schedulers_done(&found);
	return 0;
}
