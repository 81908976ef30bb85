/* SPDX-License-Identifier: MIT */
#include "gpu/kfd/signing.h"

#include <string.h>

#include "util/macros.h"

#define LOCKDOWN "kernel/security/lockdown"
#define ENFORCED "module/module/parameters/sig_enforce"
/* A variable of UEFI's own: four bytes of attributes, and one that is 1 when it is on. */
#define SECURE_BOOT "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define ATTRIBUTES 4u

static void read_secure_boot(struct gkfd *k, struct gkfd_signing *ret)
{
	_cleanup_free_ char *bytes = NULL;
	size_t len;

	if (gkfd_read_file(k, GKFD_TREE_SYS, SECURE_BOOT, &bytes, &len) < 0 ||
	    len != ATTRIBUTES + 1)
		return;
	ret->secure_boot = bytes[ATTRIBUTES] == 1;
	ret->known |= GKFD_SIGNING_SECURE_BOOT;
}

/* "none [integrity] confidentiality": the one in brackets is in force. */
static void read_lockdown(struct gkfd *k, struct gkfd_signing *ret)
{
	_cleanup_free_ char *text = NULL;
	const char *begin, *end;
	size_t len;

	if (gkfd_read_file(k, GKFD_TREE_SYS, LOCKDOWN, &text, &len) < 0)
		return;
	begin = strchr(text, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (!end || (size_t)(end - begin - 1) >= sizeof(ret->lockdown) || end == begin + 1)
		return;
	snprintf(ret->lockdown, sizeof(ret->lockdown), "%.*s", (int)(end - begin - 1), begin + 1);
	ret->known |= GKFD_SIGNING_LOCKDOWN;
}

static void read_enforced(struct gkfd *k, struct gkfd_signing *ret)
{
	_cleanup_free_ char *text = NULL;
	size_t len;

	if (gkfd_read_file(k, GKFD_TREE_SYS, ENFORCED, &text, &len) < 0 || len == 0)
		return;
	ret->enforced = text[0] == 'Y' || text[0] == '1';
	ret->known |= GKFD_SIGNING_ENFORCED;
}

void gkfd_signing_read(struct gkfd *k, struct gkfd_signing *ret)
{
	*ret = (struct gkfd_signing){ 0 };
	read_secure_boot(k, ret);
	read_lockdown(k, ret);
	read_enforced(k, ret);
}

bool gkfd_signing_is_needed(const struct gkfd_signing *s)
{
	if (s->enforced)
		return true;
	if (s->known & GKFD_SIGNING_LOCKDOWN)
		return strcmp(s->lockdown, "none") != 0;
	return s->secure_boot;
}
