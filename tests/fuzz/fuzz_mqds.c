/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/debugfs.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct gkfd_mqds found = { 0 };
	uint32_t line = 0;
	int r = gkfd_mqds_parse((const char *)bytes, len, &found, &line);

	PROMISE(r == 0 || (r == -EBADMSG && line > 0 && line <= len));
	PROMISE(found.n <= len);
	gkfd_mqds_done(&found);
	PROMISE(found.n == 0 && !found.mqds);
	return 0;
}
