/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/topology.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct gkfd_node node = { .index = 7 }, before = node;
	char name[8];
	int r = gkfd_node_parse((const char *)bytes, len, &node);

	PROMISE(r == 0 || r == -EBADMSG);
	if (r < 0) {
		PROMISE(memcmp(&node, &before, sizeof(node)) == 0);
		return 0;
	}
	PROMISE(node.index == 7);
	PROMISE(gkfd_node_cus(&node) <= node.simd_count);
	gkfd_node_gfx_name(&node, name, sizeof(name));
	PROMISE(strlen(name) < sizeof(name));
	gkfd_node_scheduler(&node, 0);
	return 0;
}
