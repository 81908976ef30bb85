/* SPDX-License-Identifier: MIT */
/* Where scenarios come from: the program itself, or a file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "sim/builtin.h"
#include "sim/parse.h"
#include "util/macros.h"

#define MAX_FILE (16u << 20)

void sim_scenario_free(struct sim_scenario *s)
{
	if (!s)
		return;
	free(s->jobs);
	free(s->models);
	free(s->cost_tables);
	free(s->trace_ns);
	free(s->sweep);
	free(s);
}

static void scenario_freep(struct sim_scenario **s)
{
	sim_scenario_free(*s);
}

static const struct sim_builtin *find_builtin(const char *name)
{
	for (const struct sim_builtin *b = sim_builtins; b->name; b++) {
		if (!strcmp(b->name, name))
			return b;
	}
	return NULL;
}

const char *sim_scenario_title(const char *name)
{
	const struct sim_builtin *b = find_builtin(name);

	return b ? b->title : NULL;
}

static struct sim_scenario *new_scenario(const char *file)
{
	struct sim_scenario *s = calloc(1, sizeof(*s));
	const char *slash = strrchr(file, '/');
	size_t len;

	if (!s)
		return NULL;
	snprintf(s->name, sizeof(s->name), "%s", slash ? slash + 1 : file);
	len = strlen(s->name);
	if (len > strlen(".ini") && !strcmp(s->name + len - strlen(".ini"), ".ini"))
		s->name[len - strlen(".ini")] = '\0';
	snprintf(s->chip, sizeof(s->chip), "mi100");
	snprintf(s->costs, sizeof(s->costs), "kfd-stock");
	s->gpus = 1;
	s->duration_ns = 10 * NSEC_PER_SEC;
	s->kernel_permille = 1000;
	s->params = gpol_params_default;
	s->params.turn_ns = 0;
	return s;
}

int sim_scenario_parse(const char *file, const char *text, size_t len, struct sim_scenario **ret,
		       struct inifile_mistake *mistake)
{
	_cleanup_(scenario_freep) struct sim_scenario *s = new_scenario(file);
	int r;

	*mistake = (struct inifile_mistake){ 0 };
	if (!s)
		return -ENOMEM;
	for (const struct sim_builtin *b = sim_builtins; b->name; b++) {
		if (b->title)
			continue;
		r = sim_parse_text(s, b->name, b->text, b->len, true, mistake);
		if (r < 0)
			return r;
	}
	r = sim_parse_text(s, file, text, len, false, mistake);
	if (r < 0)
		return r;
	*ret = steal_ptr(&s);
	return 0;
}

/* ---- files ---- */

static int fail(struct inifile_mistake *m, int error, const char *file, const char *text)
{
	*m = (struct inifile_mistake){ 0 };
	snprintf(m->file, sizeof(m->file), "%s", file);
	snprintf(m->text, sizeof(m->text), "%s", text);
	return error;
}

static int fail_absent(struct inifile_mistake *m, const char *name)
{
	size_t at = 0;

	fail(m, -ENOENT, "", "");
	snprintf(m->text, sizeof(m->text), "no scenario '%.128s', and no such file", name);
	for (const char *const *n = sim_scenario_names; *n && at < sizeof(m->names); n++)
		at += (size_t)snprintf(m->names + at, sizeof(m->names) - at, "%s%s", at ? ", " : "",
				       *n);
	return -ENOENT;
}

static int read_all(int fd, char *buf, size_t room, size_t *ret_len)
{
	size_t len = 0;
	ssize_t n;

	while (len < room) {
		n = read(fd, buf + len, room - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	*ret_len = len;
	return 0;
}

static int read_file(const char *path, char **ret, size_t *ret_len, struct inifile_mistake *mistake)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	int r;

	if (fd < 0 && errno == ENOENT)
		return fail_absent(mistake, path);
	if (fd < 0)
		return fail(mistake, -errno, path, strerror(errno));
	text = malloc(MAX_FILE + 1);
	if (!text)
		return fail(mistake, -ENOMEM, path, "memory is short");
	r = read_all(fd, text, MAX_FILE + 1, ret_len);
	if (r < 0)
		return fail(mistake, r, path, strerror(-r));
	if (*ret_len > MAX_FILE)
		return fail(mistake, -EFBIG, path, "more than 16 MiB: this is no scenario");
	*ret = steal_ptr(&text);
	return 0;
}

int sim_scenario_read(const char *name, struct sim_scenario **ret, struct inifile_mistake *mistake)
{
	const struct sim_builtin *b = find_builtin(name);
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int r;

	if (b && b->title)
		return sim_scenario_parse(name, b->text, b->len, ret, mistake);
	r = read_file(name, &text, &len, mistake);
	if (r < 0)
		return r;
	return sim_scenario_parse(name, text, len, ret, mistake);
}
