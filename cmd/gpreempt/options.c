/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cmd/gpreempt/cli.h"

enum { OPTION_JSON = 1001, OPTION_DEVICE, OPTION_SOCKET };

/* Numbers of options without a letter, from here on. */
#define FIRST_NUMBER 2000

static bool all_digits(const char *text)
{
	return text[0] && text[strspn(text, "0123456789")] == '\0';
}

static int complain(struct cli *cli, int argc, char **argv, int letter)
{
	const char *text = optind > 0 && optind <= argc ? argv[optind - 1] : "?";

	if (letter == ':')
		return cli_usage(cli, "option '%s' needs a value", text);
	/* getopt does not step past a cluster of letters before its end. */
	if (text[0] != '-' && optind < argc)
		text = argv[optind];
	if (text[0] == '-' && isdigit((unsigned char)text[1]))
		return cli_usage(cli, "'%s' is not a pid: pids are positive", text);
	if (optind < argc && argv[optind][0] == '-' && isdigit((unsigned char)argv[optind][1]))
		return cli_usage(cli, "'%s' is not a pid: pids are positive", argv[optind]);
	return cli_usage(cli, "unknown option '%s'", text);
}

/* Every command takes them, too, but the first. */
static const struct option globals[] = {
	{ "version", no_argument, NULL, 'V' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "device", required_argument, NULL, OPTION_DEVICE },
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* The next one that is not for all commands alike, as getopt_long(3) tells it. */
static int next_option(struct cli *cli, int argc, char **argv, const char *letters,
		       const struct option *options)
{
	int c;

	while ((c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		if (c == OPTION_DEVICE)
			cli->device = optarg;
		else if (c == OPTION_SOCKET)
			cli->socket = optarg;
		else if (c != OPTION_JSON) /* seen already */
			return c;
	}
	return -1;
}

int take_globals(struct cli *cli, int argc, char **argv)
{
	opterr = 0;
	switch (next_option(cli, argc, argv, "+hV", globals)) {
	case -1:
		return EXIT_DONE;
	case 'h':
		return print_help(cli);
	case 'V':
		return print_version(cli);
	default:
		return cli_usage(cli, "unknown option or missing value: '%s'", argv[optind - 1]);
	}
}

int parse_pid(struct cli *cli, const char *text, pid_t *ret)
{
	unsigned long long value;

	if (!all_digits(text))
		return cli_usage(cli, "'%s' is not a pid", text);
	errno = 0;
	value = strtoull(text, NULL, 10);
	if (value == 0)
		return cli_usage(cli, "'%s' is not a pid: pids are positive", text);
	if (errno == ERANGE || value > INT_MAX)
		return cli_fail(cli, EXIT_ABSENT, "see what uses the GPU with: gpreempt list",
				"there is no process %s: pids are not that large", text);
	*ret = (pid_t)value;
	return EXIT_DONE;
}

int parse_number(struct cli *cli, const char *what, const char *text, uint64_t min, uint64_t max,
		 uint64_t *ret)
{
	unsigned long long value;

	errno = 0;
	value = all_digits(text) ? strtoull(text, NULL, 10) : 0;
	if (!all_digits(text) || errno == ERANGE || value < min || value > max)
		return cli_usage(cli, "%s must be a number from %llu to %llu, not '%s'", what,
				 (unsigned long long)min, (unsigned long long)max, text);
	*ret = value;
	return EXIT_DONE;
}

int check_level(struct cli *cli, const char *text)
{
	struct gpreempt_level levels[8] = { { .size = sizeof(levels[0]) } };
	int n;

	if (!text)
		return EXIT_DONE;
	n = gpreempt_get_levels(cli->ctx, levels, ARRAY_SIZE(levels));
	if (n < 0)
		return cli_fail_ctx(cli);
	for (int i = 0; i < n; i++) {
		if (strcasecmp(levels[i].level, text) != 0)
			continue;
		if (strcmp(levels[i].level, "N1") == 0)
			return cli_fail(cli, EXIT_REFUSED, "name N2, or no level",
					"level N1 changes time slices: it holds nobody");
		if (levels[i].available)
			return EXIT_DONE;
		return cli_fail(cli, EXIT_REFUSED, "see all levels with: gpreempt doctor",
				"level %s is not available: %s", levels[i].level, levels[i].reason);
	}
	return cli_usage(cli, "no level '%s' here: see gpreempt doctor", text);
}

unsigned int level_flags(const char *text)
{
	if (text && strcasecmp(text, "K1") == 0)
		return GPREEMPT_ATTACH_PAUSE;
	return text && strcasecmp(text, "K2") == 0 ? GPREEMPT_ATTACH_DEBUG : 0;
}

int check_arguments(struct cli *cli, int left, int min, int max)
{
	if (left < min)
		return cli_usage(cli, "usage: gpreempt %s %s", cli->command->name,
				 cli->command->arguments);
	if (left > max)
		return cli_usage(cli, "too many arguments; usage: gpreempt %s %s",
				 cli->command->name, cli->command->arguments);
	return EXIT_DONE;
}

/* ---- options by a table ---- */

int take_options(struct cli *cli, int argc, char **argv, const struct command_option *options,
		 size_t n)
{
	const struct command *command = cli->command;
	struct option longs[MAX_OPTIONS + ARRAY_SIZE(globals)];
	char letters[2 * MAX_OPTIONS + 8];
	size_t at = (size_t)snprintf(letters, sizeof(letters), "%s:h", command->leading ? "+" : "");
	int status = EXIT_DONE, c;

	for (size_t i = 0; i < n; i++) {
		longs[i] = (struct option){ options[i].name,
					    options[i].take ? required_argument : no_argument, NULL,
					    FIRST_NUMBER + (int)i };
		if (options[i].letter)
			at += (size_t)snprintf(letters + at, sizeof(letters) - at,
					       "%c:", options[i].letter);
	}
	memcpy(&longs[n], globals + 1, sizeof(globals) - sizeof(globals[0]));
	while (status == EXIT_DONE && (c = next_option(cli, argc, argv, letters, longs)) >= 0) {
		const struct command_option *o = options;

		if (c == 'h')
			return print_help(cli);
		if (c == '?' || c == ':')
			return complain(cli, argc, argv, c);
		while (c < FIRST_NUMBER ? o->letter != c : o != &options[c - FIRST_NUMBER])
			o++;
		if (o->take)
			status = o->take(cli, o, optarg);
		else
			*(bool *)o->ret = !o->off;
	}
	return status == EXIT_DONE ?
		       check_arguments(cli, argc - optind, command->min, command->max) :
		       status;
}

/* As it was written, or could have been. */
static const char *spelling(const struct command_option *o, char buf[32])
{
	if (o->letter)
		snprintf(buf, 32, "-%c", o->letter);
	else
		snprintf(buf, 32, "--%s", o->name);
	return buf;
}

int option_text(struct cli *cli, const struct command_option *o, const char *text)
{
	*(const char **)o->ret = text;
	return EXIT_DONE;
}

int option_number(struct cli *cli, const struct command_option *o, const char *text)
{
	char buf[32];

	return parse_number(cli, spelling(o, buf), text, o->min, o->max, o->ret);
}

int option_u32(struct cli *cli, const struct command_option *o, const char *text)
{
	uint64_t value = 0;
	char buf[32];
	int status = parse_number(cli, spelling(o, buf), text, o->min, o->max, &value);

	if (status == EXIT_DONE)
		*(uint32_t *)o->ret = (uint32_t)value;
	return status;
}

#define SECONDS_MAX (366.0 * 24 * 3600)

int option_seconds(struct cli *cli, const struct command_option *o, const char *text)
{
	bool plain = text[0] && text[strspn(text, "0123456789.")] == '\0';
	char *end = NULL, buf[32];
	double value = plain ? strtod(text, &end) : 0;

	if (!plain || *end || !(value * 1e9 >= 1) || !(value <= SECONDS_MAX))
		return cli_usage(cli, "%s must be a number of seconds above 0, not '%s'",
				 spelling(o, buf), text);
	*(uint64_t *)o->ret = (uint64_t)(value * 1e9 + 0.5);
	return EXIT_DONE;
}

int option_grace(struct cli *cli, const struct command_option *o, const char *text)
{
	unsigned long long value = all_digits(text) ? strtoull(text, NULL, 10) : 0;

	if (value < GPREEMPT_GRACE_MIN || value > GPREEMPT_GRACE_MAX)
		return cli_fail(
			cli, EXIT_USAGE,
			"it counts thousands of GPU clocks in an 8-bit register, where 0 and "
			"256 mean for ever",
			"--grace must be 1 to 255, not '%s'", text);
	*(uint32_t *)o->ret = (uint32_t)value;
	return EXIT_DONE;
}

int option_class(struct cli *cli, const struct command_option *o, const char *text)
{
	enum gpreempt_class *ret = o->ret;

	if (strcmp(text, "online") == 0)
		*ret = GPREEMPT_CLASS_ONLINE;
	else if (strcmp(text, "offline") == 0)
		*ret = GPREEMPT_CLASS_OFFLINE;
	else
		return cli_usage(cli, "--class is 'online' or 'offline', not '%s'", text);
	return EXIT_DONE;
}

int option_pid(struct cli *cli, const struct command_option *o, const char *text)
{
	return parse_pid(cli, text, o->ret);
}
