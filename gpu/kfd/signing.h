/* SPDX-License-Identifier: MIT */
/* Whether the kernel loads only modules that are signed with a key it trusts, and why. */
#ifndef GPREEMPT_GPU_KFD_SIGNING_H
#define GPREEMPT_GPU_KFD_SIGNING_H

#include "gpu/kfd/kfd.h"

enum {
	GKFD_SIGNING_SECURE_BOOT = 1 << 0,
	GKFD_SIGNING_LOCKDOWN = 1 << 1,
	GKFD_SIGNING_ENFORCED = 1 << 2,
};

struct gkfd_signing {
	uint32_t known; /* GKFD_SIGNING_*: what could be read */
	bool secure_boot;
	bool enforced; /* module.sig_enforce, whatever lockdown says */
	char lockdown[20]; /* "none", "integrity", "confidentiality" */
};

void gkfd_signing_read(struct gkfd *k, struct gkfd_signing *ret);
/* Lockdown takes none but signed ones. Where it cannot be read, Secure Boot brings it as a rule. */
bool gkfd_signing_is_needed(const struct gkfd_signing *s);

#endif
