/* SPDX-License-Identifier: MIT */
#include "cmd/gpreemptd/config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/gpreemptd/config_internal.h"

/* The engine's own figures come from engine_config_default: one place for the simulator and us. */
static void set_defaults(struct config *c)
{
	*c = (struct config){
		.engine = engine_config_default,
		.scan_ns = 250 * NSEC_PER_MSEC,
		.watch = true,
		.look_permille = 100,
		.attach_age_ns = 5 * NSEC_PER_SEC,
		.metrics_ns = 10 * NSEC_PER_SEC,
		.log_level = LOG_LEVEL_INFO,
		.clients = 128,
		.clients_per_uid = 16,
		.requests_per_s = 5000,
		.group = "gpreempt",
		.rules.fallback = { .weight = 1, .source = "default" },
	};
	c->engine.policy = NULL;
	c->engine.params.turn_ns = 0;
}

/* What the file did not name of what depends on the backend. */
static void fill_in(struct config *c)
{
	c->policy_named = c->engine.policy;
	c->turn_named = c->engine.params.turn_ns;
	if (!c->policy_named)
		c->engine.policy = engine_config_default.policy;
	if (!c->turn_named)
		c->engine.params.turn_ns = engine_config_default.params.turn_ns;
}

/* ---- the text ---- */

struct reading {
	struct config_reader reader;
	struct config config; /* so far */
	const struct config_section *section; /* NULL: before the first */
	struct rule *rule; /* the last one, in its section */
	unsigned int rule_line;
	uint64_t sections_seen;
	uint64_t keys_seen; /* of this section, by place in its table */
	int error; /* other than a mistake */
};

static bool is_name(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len < RULE_NAME &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
		       len;
}

static int begin_rule(struct reading *in, const char *name)
{
	struct rules *rules = &in->config.rules;
	struct rule *grown;

	if (!is_name(name))
		return inifile_wrong(in->reader.ini, name,
				     "a rule's name is of 1 to %u letters, digits, '_', '.', '-'",
				     RULE_NAME - 1u);
	for (size_t i = 0; i < rules->n; i++) {
		if (!strcmp(rules->rules[i].name, name))
			return inifile_wrong(in->reader.ini, name, "there are two rules '%s'",
					     name);
	}
	if (rules->n == CONFIG_MAX_RULES)
		return inifile_wrong(in->reader.ini, name, "more than %u rules", CONFIG_MAX_RULES);
	grown = realloc(rules->rules, (rules->n + 1) * sizeof(*grown));
	if (!grown)
		return in->error = -ENOMEM;
	rules->rules = grown;
	in->rule = &grown[rules->n++];
	in->rule_line = inifile_line(in->reader.ini);
	*in->rule = (struct rule){ .verdict.weight = 1 };
	memcpy(in->rule->name, name, strlen(name));
	snprintf(in->rule->verdict.source, sizeof(in->rule->verdict.source), "rule %s", name);
	in->section = &config_rule;
	return 0;
}

/* A key that says nothing of this class was meant for another. */
static const char *idle_key(const struct rule *rule, uint64_t keys)
{
	for (size_t i = 0; i < config_rule.n; i++) {
		unsigned int classes = config_rule.keys[i].classes;

		if ((keys & (1ull << i)) && classes && !(classes & (1u << rule->verdict.job_class)))
			return config_rule.keys[i].name;
	}
	return NULL;
}

static int wrong_rule(struct config_reader *r, unsigned int line, const char *text,
		      const char *hint)
{
	config_hint(r, "%s", hint);
	r->hint_line = line;
	return inifile_wrong_line(r->ini, line, "%s", text);
}

/* All of a rule that began at @line was read, and @keys of its table: does it make sense? */
static int check_rule(struct config_reader *r, const struct rule *rule, uint64_t keys,
		      unsigned int line)
{
	const struct config_key *class = config_find_key(&config_rule, "class");
	const char *key = idle_key(rule, keys);
	char text[120];

	if (!(keys & 1ull << (class - config_rule.keys)))
		return wrong_rule(r, line, "the rule gives no class",
				  "class = online, offline or none");
	if (!rule_is_trusted(rule) && !rule->command && !rule->path && !rule->variable)
		return wrong_rule(r, line, "the rule matches nobody",
				  "say whom: user, uid, group, cgroup, container, command, path, "
				  "environment");
	if (rule->verdict.job_class == JOB_ONLINE && !rule_is_trusted(rule))
		return wrong_rule(
			r, line, "anybody could make this match, and so preempt everybody else",
			"an online rule also needs user, uid, group, cgroup or container");
	if (!key)
		return 0;
	snprintf(text, sizeof(text), "'%s' says nothing about a job of this class", key);
	return wrong_rule(r, line, text, "");
}

static int end_rule(struct reading *in)
{
	struct rule *rule = in->rule;

	in->rule = NULL;
	return rule ? check_rule(&in->reader, rule, in->keys_seen, in->rule_line) : 0;
}

static int take_section(void *user, struct inifile *ini, const char *name)
{
	struct reading *in = user;
	int r;

	in->reader.ini = ini;
	r = end_rule(in);
	if (r < 0 || !name)
		return r;
	in->keys_seen = 0;
	if (!strncmp(name, "rule ", 5))
		return begin_rule(in, name + 5 + strspn(name + 5, " \t"));
	for (size_t i = 0; config_sections[i].name; i++) {
		if (strcmp(config_sections[i].name, name))
			continue;
		if (in->sections_seen & (1ull << i))
			return inifile_wrong(ini, name, "there are two sections [%s]", name);
		in->sections_seen |= 1ull << i;
		in->section = &config_sections[i];
		return 0;
	}
	config_hint_section(&in->reader, name);
	return inifile_wrong(ini, name, "there is no section [%.40s]", name);
}

static int take_pair(void *user, struct inifile *ini, const char *name, const char *value)
{
	struct reading *in = user;
	const struct config_section *section = in->section;
	const struct config_key *key;
	uint64_t bit;
	int r;

	in->reader.ini = ini;
	if (!section)
		return inifile_wrong(ini, name, "'%.40s' is in no section", name);
	key = config_find_key(section, name);
	if (!key) {
		config_hint_key(&in->reader, section, name);
		return inifile_wrong(ini, name, "[%s] has no key '%.40s'", section->name, name);
	}
	bit = 1ull << (key - section->keys);
	if (in->keys_seen & bit)
		return inifile_wrong(ini, name, "'%s' is there twice", name);
	in->keys_seen |= bit;
	r = config_set(&in->reader, key, value, in->rule ? (void *)in->rule : (void *)&in->config);
	if (r < 0 && r != -EINVAL)
		in->error = r;
	return r;
}

static int mistake_of_file(struct config_mistake *m, const char *text, const char *hint)
{
	*m = (struct config_mistake){ 0 };
	snprintf(m->text, sizeof(m->text), "%.*s", (int)sizeof(m->text) - 1, text);
	snprintf(m->hint, sizeof(m->hint), "%s", hint);
	return -EINVAL;
}

/* What no single line can be blamed for. */
static int check_whole(const struct config *c, struct config_mistake *m)
{
	const struct engine_config *e = &c->engine;

	if (e->critical_interval_ns > e->interval_ns || e->interval_ns > e->idle_interval_ns)
		return mistake_of_file(m, "the intervals of [look] are in no order",
				       "critical_interval <= interval <= idle_interval");
	if (e->online_permille + e->offline_permille > 1000)
		return mistake_of_file(m,
				       "online and offline of [slots] are more than all there are",
				       "online + offline <= 100 %");
	if (c->clients_per_uid > c->clients)
		return mistake_of_file(m, "one user may have more connections than all together",
				       "clients_per_user <= clients");
	return 0;
}

int config_parse(const char *text, size_t len, struct config *ret,
		 struct config_mistake *ret_mistake)
{
	static const struct inifile_ops ops = { take_section, take_pair };
	struct inifile_mistake wrong = { 0 };
	struct reading in = { 0 };
	_cleanup_(config_done) struct config parsed = { 0 };
	int r;

	set_defaults(&in.config);
	r = inifile_parse("", text, len, &ops, &in, &wrong);
	fill_in(&in.config);
	parsed = in.config;
	if (in.error)
		return in.error;
	if (r == -EINVAL) {
		bool hinted = in.reader.hint_line == wrong.line;

		mistake_of_file(ret_mistake, wrong.text, hinted ? in.reader.hint : "");
		ret_mistake->line = (int)wrong.line;
	}
	if (r == 0)
		r = check_whole(&parsed, ret_mistake);
	if (r < 0)
		return r;
	*ret = parsed;
	parsed = (struct config){ 0 };
	return 0;
}

/* ---- the file ---- */

static int check_file(const struct stat *st, struct config_mistake *m)
{
	if (!S_ISREG(st->st_mode))
		return mistake_of_file(m, "it is not a file", "");
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return mistake_of_file(m, "it belongs to another user: what it says may be theirs",
				       "chown root");
	if (st->st_mode & S_IWOTH)
		return mistake_of_file(m, "anybody may write to it, and so decide who is online",
				       "chmod o-w");
	if (st->st_size > (off_t)CONFIG_MAX_BYTES)
		return mistake_of_file(m, "it is larger than 1 MiB", "");
	return 0;
}

static int read_text(const char *path, char **ret, size_t *ret_len, struct config_mistake *m)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	struct stat st;
	ssize_t n;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	r = check_file(&st, m);
	if (r < 0)
		return r;
	text = malloc(CONFIG_MAX_BYTES);
	if (!text)
		return -ENOMEM;
	do {
		n = read(fd, text + len, CONFIG_MAX_BYTES - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	} while (n != 0 && len < CONFIG_MAX_BYTES);
	*ret = steal_ptr(&text);
	*ret_len = len;
	return 0;
}

int config_read(const char *path, struct config *ret, struct config_mistake *ret_mistake)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int r;

	if (!path)
		return config_parse("", 0, ret, ret_mistake);
	r = read_text(path, &text, &len, ret_mistake);
	return r < 0 ? r : config_parse(text, len, ret, ret_mistake);
}

const char *config_place(const struct config_mistake *m, char buf[CONFIG_PLACE_SIZE])
{
	snprintf(buf, CONFIG_PLACE_SIZE, m->line ? "line %d: " : "", m->line);
	return buf;
}

void config_done(struct config *c)
{
	rules_done(&c->rules);
}
