/* SPDX-License-Identifier: MIT */
/* Text of /proc, and patterns against what is in it: "pattern NUL text". */
#include <errno.h>
#include <string.h>

#include "cmd/gpreemptd/rules.h"
#include "tests/fuzz/fuzz.h"
#include "util/macros.h"
#include "util/text.h"

static void match(const char *text, size_t len)
{
	const char *nul = memchr(text, '\0', len);
	_cleanup_free_ char *pattern = strndup(text, MIN(len, 64u));
	_cleanup_free_ char *other = NULL;

	if (!nul)
		return;
	other = strndup(nul + 1, (size_t)(text + len - nul - 1));
	PROMISE(pattern && other);
	PROMISE(match_glob("*", other));
	if (*other && *pattern && pattern[strlen(pattern) - 1] != '/')
		PROMISE(!match_glob(pattern, other) || match_cgroup(pattern, other));
	match_container(pattern, other);
	PROMISE(cgroup_trusted_bytes(other) <= strlen(other));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	_cleanup_free_ char *text = calloc(1, len + 1);
	struct identity id = { 0 };
	struct proc_stat *stat = &id.stat;
	size_t digits;
	int r;

	PROMISE(text);
	if (len)
		memcpy(text, bytes, len);
	r = proc_stat_parse((const char *)bytes, len, stat);
	PROMISE(r == 0 || r == -EBADMSG);
	PROMISE(stat->pid >= 0 && stat->parent >= 0);
	PROMISE(memchr(stat->comm, '\0', sizeof(stat->comm)));
	r = identity_parse_status(text, &id);
	PROMISE(r == 0 || r == -EBADMSG);
	PROMISE(identity_parse_cgroup(text, &id) == 0);
	PROMISE(id.cgroup[0] == '/');
	digits = strlen(id.container);
	PROMISE(digits == 0 || digits == 64);
	PROMISE(digits == 0 || strstr(id.cgroup, id.container));
	identity_done(&id);
	match(text, len);
	return 0;
}
