/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "gpu/kfd/procs.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct gkfd_proc_ident *ident)
{
	size_t len = strnlen(ident->comm, sizeof(ident->comm));

	PROMISE(len < sizeof(ident->comm));
	for (size_t i = 0; i < len; i++)
		PROMISE((unsigned char)ident->comm[i] >= 0x20);
	PROMISE(ident->pid >= 0 && ident->tgid >= 0 && ident->tracer_pid >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct gkfd_proc_ident ident = { 0 };
	int r;

	r = gkfd_proc_parse_stat((const char *)bytes, len, &ident);
	PROMISE(r == 0 || r == -EBADMSG);
	check(&ident);
	r = gkfd_proc_parse_status((const char *)bytes, len, &ident);
	PROMISE(r == 0 || r == -EBADMSG);
	check(&ident);
	return 0;
}
