/* SPDX-License-Identifier: MIT */
/* What the commands share: one run of the program, its options, output and signals. */
#ifndef GPREEMPT_CMD_CLI_H
#define GPREEMPT_CMD_CLI_H

#include <json-c/json.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpreempt/kernel.h"
#include "util/list.h"
#include "util/text.h"

/* Exit statuses. */
enum {
	EXIT_DONE = GPREEMPT_ERROR_NONE,
	EXIT_FAILED = GPREEMPT_ERROR_FAILED,
	EXIT_USAGE = GPREEMPT_ERROR_USAGE,
	EXIT_ABSENT = GPREEMPT_ERROR_ABSENT,
	EXIT_REFUSED = GPREEMPT_ERROR_REFUSED,
};

struct cli;
struct command;

typedef int command_fn(struct cli *cli, int argc, char **argv); /* exit status */

struct cli {
	const char *program; /* as called */
	const char *device;
	const char *socket; /* of the daemon; NULL: where it is usually */
	bool json;
	bool colour;
	const struct command *command;
	struct gpreempt_ctx *ctx; /* cli_open() */
	struct gpreempt_daemon *daemon; /* daemon_begin(), scheduler_connect() */
	int signal_fd; /* signals_init() */
	void (*inherited[3])(int); /* what SIGPIPE, SIGTTOU and SIGTTIN did before */
};

struct command {
	const char *name;
	const char *arguments;
	const char *summary;
	const char *help; /* options and remarks */
	command_fn *run;
	int min, max; /* arguments */
	bool leading; /* its options come before them: what follows is another's */
	const char *heading; /* of those from here on, in the program's help */
};

#define ANY_NUMBER INT_MAX /* of arguments: the command checks it */
#define HOLD_MAX_PIDS 64

extern const struct command commands[]; /* ended by a NULL name */

command_fn cmd_accept, cmd_bench, cmd_class, cmd_continue, cmd_demo, cmd_doctor, cmd_events,
	cmd_hint, cmd_hold, cmd_hqd, cmd_kernel, cmd_list, cmd_load, cmd_metrics, cmd_monitor,
	cmd_pause, cmd_policy, cmd_queues, cmd_rearm, cmd_release, cmd_report, cmd_run, cmd_sim,
	cmd_status, cmd_stop_gpu, cmd_top;

extern const char help_queues[], help_monitor[], help_hold[], help_bench[], help_accept[];
extern const char help_demo[], help_load[], help_sim[], help_class[], help_run[], help_stop_gpu[];
extern const char help_kernel[], help_report[];

/* ---- commands.c ---- */

/* Of the command, where there is one, else of the program. HELP_SHOWN, or an exit status. */
int print_help(struct cli *cli);
int print_version(struct cli *cli); /* the same */
#define HELP_SHOWN (-1) /* done, and nothing more to do */

/* ---- options.c: all say what is wrong and return an exit status on failure, or HELP_SHOWN ---- */

/* Those before the command, or before the arguments where that is clear. */
int take_globals(struct cli *cli, int argc, char **argv);

struct command_option;
/* Takes the value @text of an option. */
typedef int take_fn(struct cli *cli, const struct command_option *o, const char *text);

/* An option of a command, and where its value goes. */
struct command_option {
	const char *name;
	char letter; /* 0: none */
	take_fn *take; /* NULL: it has no value, and *(bool *)ret becomes true, or @off false */
	void *ret;
	uint64_t min, max; /* of numbers */
	bool off;
};

/*
 * Takes the options of a command and the global ones; then optind is the first argument, of which
 * there are as many as the command takes. At most MAX_OPTIONS.
 */
#define MAX_OPTIONS 16
int take_options(struct cli *cli, int argc, char **argv, const struct command_option *options,
		 size_t n);

take_fn option_text;
take_fn option_number; /* uint64_t */
take_fn option_u32; /* or int */
take_fn option_seconds; /* in ns */
take_fn option_grace; /* uint32_t */
take_fn option_class, option_pid;

int parse_pid(struct cli *cli, const char *text, pid_t *ret);
int parse_number(struct cli *cli, const char *what, const char *text, uint64_t min, uint64_t max,
		 uint64_t *ret);
/* Only levels that hold other processes' queues, and that this machine has. Needs cli_open(). */
int check_level(struct cli *cli, const char *text);
/* To attach with, to be on that level; NULL: the best there is. GPREEMPT_ATTACH_PAUSE: K1. */
unsigned int level_flags(const char *text);
/* Exactly @min to @max arguments are left. */
int check_arguments(struct cli *cli, int left, int min, int max);

/* ---- output.c ---- */

/* Prints an error: one line and a hint, or a JSON object. Returns @status. */
int cli_fail(struct cli *cli, int status, const char *hint, const char *fmt, ...) _printf_(4, 5);
int cli_usage(struct cli *cli, const char *fmt, ...) _printf_(2, 3); /* EXIT_USAGE */
int cli_fail_ctx(struct cli *cli); /* the library's last failure */
int cli_fail_error(struct cli *cli, const struct gpreempt_error *error);
int cli_open(struct cli *cli); /* 0, or an exit status */
/* list_read() of what the library tells through cli->ctx: an exit status. */
int cli_read_list(struct cli *cli, list_get_fn get, void *of, size_t size, void *ret,
		  size_t *ret_n);
/* Prints an object and drops it; NULL: memory was short. */
int cli_print_json(struct cli *cli, struct json_object *object);
/* The same, or where JSON is not wanted the text. */
int cli_answer(struct cli *cli, struct json_object *object, const char *fmt, ...) _printf_(3, 4);
/* Times on this device are nobody's hardware's: a model, or a software GPU behind the driver. */
bool cli_is_modelled(struct cli *cli);
/* A model of this process's own: nobody else is on it, and its clock jumps. */
bool cli_is_alone(struct cli *cli);
bool cli_has(struct cli *cli, enum gpreempt_ability ability);
/* What can be held of a process: "queue", or "channel group". */
const char *cli_unit(struct cli *cli);
bool cli_stdout_broken(void); /* not everything written has arrived */
bool is_terminal(int fd); /* one that understands more than text */

struct json_object *json_us(uint64_t ns); /* microseconds */
struct json_object *json_decimal(double value, int digits);
struct json_object *json_curve(const uint64_t *ns); /* at the points of util/curve.h */
struct json_object *json_of(const char *key, struct json_object *value); /* an object */
void json_add(struct json_object *object, const char *key, struct json_object *value);
void json_add_uint(struct json_object *object, const char *key, uint64_t value);
void json_add_string(struct json_object *object, const char *key, const char *value);

/* ---- output.c, for people ---- */

const char *bold(const struct cli *cli, const char *text, char *buf, size_t size);

/* ---- queues.c: for people and programs ---- */

struct json_object *queue_to_json(const struct gpreempt_queue *q);
void print_queue_table(const struct gpreempt_queue *queues, size_t n, bool with_pid);
void print_id_array(const uint32_t *ids, size_t n);

/* ---- signals.c ---- */

/* Signals that end a command wait in a descriptor from here on; none can interrupt a hold. */
int signals_init(struct cli *cli);
/* The one that has arrived, 0: none. Consumes it. */
int signals_take(struct cli *cli);
const char *signal_word(int sig);
/* From here on they end the program at once. */
void signals_let_through(void);
/* As whoever started us had them: for a program that takes our place. */
void signals_inherit(struct cli *cli);

/* ---- top.c ---- */

/*
 * The first of @places, beside this program, where one is that can be run: as it is installed, or
 * as it is built. Otherwise the first one's name, for PATH.
 */
void find_program(const char *const *places, size_t n, char ret[PATH_MAX]);

/* ---- progress.c: one line on a terminal's stderr, for what takes longer than a second ---- */

struct progress {
	bool wanted, shown;
	uint64_t began_ns, last_ns;
};

void progress_begin(struct progress *p);
void progress_show(struct progress *p, const char *fmt, ...) _printf_(2, 3);
/* At once: before a call that may wait for the hardware or for somebody to die. */
void progress_now(struct progress *p, const char *fmt, ...) _printf_(2, 3);
void progress_end(struct progress *p);

#endif
