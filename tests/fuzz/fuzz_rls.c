/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/debugfs.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct gkfd_runlists found = { 0 };
	uint32_t line = 0;
	int r = gkfd_runlists_parse((const char *)bytes, len, &found, &line);

	PROMISE(r == 0 || (r == -EBADMSG && line > 0 && line <= len));
	for (size_t i = 0; i < found.n; i++) {
		const struct gkfd_runlist *list = &found.lists[i];

		PROMISE(list->active || (!list->processes && !list->queues));
		PROMISE((uint64_t)list->processes + list->queues <= len);
	}
	gkfd_runlists_done(&found);
	return 0;
}
