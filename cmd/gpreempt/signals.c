/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "cmd/gpreempt/cli.h"

/* Ctrl-Z among them: a stopped holder would be killed by its guard. */
static const int endings[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };

/* nohup, and a shell that starts a job in the background, mean what they say. */
static bool is_ignored(int sig)
{
	struct sigaction act;

	return sigaction(sig, NULL, &act) == 0 && act.sa_handler == SIG_IGN;
}

int signals_init(struct cli *cli)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		if (!is_ignored(endings[i]))
			sigaddset(&set, endings[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* Writing to a terminal from the background must not stop a holder either. */
	cli->inherited[1] = signal(SIGTTOU, SIG_IGN);
	cli->inherited[2] = signal(SIGTTIN, SIG_IGN);
	cli->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (cli->signal_fd < 0)
		return cli_fail(cli, EXIT_FAILED, "raise the limit of open files (ulimit -n)",
				"cannot watch for signals: %s", strerror(errno));
	return EXIT_DONE;
}

int signals_take(struct cli *cli)
{
	struct signalfd_siginfo info;

	if (read(cli->signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	return (int)info.ssi_signo;
}

void signals_let_through(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void signals_inherit(struct cli *cli)
{
	signal(SIGPIPE, cli->inherited[0]);
	signal(SIGTTOU, cli->inherited[1]);
	signal(SIGTTIN, cli->inherited[2]);
	signals_let_through();
}

const char *signal_word(int sig)
{
	switch (sig) {
	case SIGINT:
		return "Ctrl-C";
	case SIGTSTP:
		return "Ctrl-Z (a holder cannot be stopped, so it ends)";
	case SIGQUIT:
		return "Ctrl-\\";
	case SIGHUP:
		return "the terminal was closed";
	default:
		return "asked to end";
	}
}
