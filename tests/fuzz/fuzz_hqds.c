/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/debugfs.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct gkfd_hqds found = { 0 };
	uint32_t line = 0;
	int r = gkfd_hqds_parse((const char *)bytes, len, &found, &line);

	PROMISE(r == 0 || (r == -EBADMSG && line > 0 && line <= len));
	PROMISE(found.n <= len);
	gkfd_hqds_done(&found);
	PROMISE(found.n == 0 && !found.hqds);
	return 0;
}
