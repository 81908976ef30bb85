/* SPDX-License-Identifier: MIT */
/* What /proc tells of processes, proc(5). */
#include <errno.h>
#include <string.h>

#include "gpu/nvrm/internal.h"
#include "util/macros.h"

/* A command may hold blanks and brackets: it ends at the last bracket. */
static int parse_stat(char *text, struct nvrm_ident *ret)
{
	char *open = strchr(text, '('), *close = strrchr(text, ')');
	struct nvrm_ident ident;

	if (!open || !close || close < open || close[1] != ' ' || !close[2])
		return -EBADMSG;
	*close = '\0';
	ident.state = close[2];
	ident.parent = close[3] == ' ' ? (pid_t)strtol(close + 4, NULL, 10) : 0;
	snprintf(ident.comm, sizeof(ident.comm), "%s", open + 1);
	*ret = ident;
	return 0;
}

int nvrm_identify(const struct nvrm_transport *t, void *data, pid_t pid, struct nvrm_ident *ret)
{
	_cleanup_free_ char *text = NULL;
	char path[32];
	size_t len;
	int r;

	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	r = t->read_proc(data, path, &text, &len);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	return parse_stat(text, ret);
}
