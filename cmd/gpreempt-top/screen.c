/* SPDX-License-Identifier: MIT */
#include "cmd/gpreempt-top/screen.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "cmd/gpreempt-top/view.h"
#include "util/clock.h"

struct screen {
	const struct screen_options *options;
	struct snapshot snapshot;
	struct gpreempt_daemon *daemon; /* NULL: lost */
	struct view_options view;
	size_t page;
	uint64_t next_ns; /* when to look again */
	uint64_t last_seen_ns;
	int signal_fd;
	bool ended;
};

enum { PAIR_RED = 1, PAIR_GREEN, PAIR_YELLOW };

static void begin_colours(void)
{
	if (!has_colors() || getenv("NO_COLOR"))
		return;
	start_color();
	use_default_colors();
	init_pair(PAIR_RED, COLOR_RED, -1);
	init_pair(PAIR_GREEN, COLOR_GREEN, -1);
	init_pair(PAIR_YELLOW, COLOR_YELLOW, -1);
}

static const chtype attributes[] = {
	[VIEW_PLAIN] = A_NORMAL,
	[VIEW_TITLE] = A_BOLD,
	[VIEW_HEADING] = A_REVERSE,
	[VIEW_GPU] = A_BOLD,
	[VIEW_ONLINE] = (chtype)COLOR_PAIR(PAIR_GREEN),
	[VIEW_HELD] = (chtype)COLOR_PAIR(PAIR_YELLOW),
	[VIEW_DIM] = A_DIM,
	[VIEW_ALARM] = A_BOLD | (chtype)COLOR_PAIR(PAIR_RED),
	[VIEW_KEYS] = A_REVERSE,
};

static int draw(struct screen *s)
{
	struct view v;
	int r;

	s->view.width = (unsigned int)COLS;
	s->view.height = (unsigned int)LINES;
	r = view_make(&s->snapshot, &s->view, &v);
	if (r < 0)
		return r;
	erase();
	for (size_t i = 0; i < v.n; i++) {
		attron(attributes[v.lines[i].look]);
		mvaddstr((int)i, 0, v.lines[i].text);
		attroff(attributes[v.lines[i].look]);
	}
	refresh();
	s->view.scroll = v.scroll;
	s->page = v.page;
	view_done(&v);
	return 0;
}

static void look(struct screen *s)
{
	if (snapshot_read(&s->snapshot, s->options->socket, &s->daemon) >= 0)
		s->last_seen_ns = monotonic_ns();
	s->snapshot.lost_s = (monotonic_ns() - s->last_seen_ns) / NSEC_PER_SEC;
	s->next_ns = monotonic_ns() + s->options->interval_ns;
}

static void scroll_by(struct screen *s, long lines)
{
	s->view.scroll = (size_t)MAX((long)s->view.scroll + lines, 0L);
}

static void press(struct screen *s, int key)
{
	long page = MAX((long)s->page, 1L);

	switch (key) {
	case 'q':
	case 'Q':
		s->ended = true;
		break;
	case 's':
		s->view.sort = (s->view.sort + 1) % SORT_COUNT;
		break;
	case 'h':
	case '?':
	case KEY_F(1):
		s->view.help = !s->view.help;
		s->view.scroll = 0;
		break;
	case KEY_UP:
	case 'k':
		scroll_by(s, -1);
		break;
	case KEY_DOWN:
	case 'j':
		scroll_by(s, 1);
		break;
	case KEY_PPAGE:
		scroll_by(s, -page);
		break;
	case KEY_NPAGE:
	case ' ':
		scroll_by(s, page);
		break;
	case KEY_HOME:
		s->view.scroll = 0;
		break;
	default:
		break; /* KEY_RESIZE among them: what follows draws anew */
	}
}

/* Until a key, a signal, another size, or the time to look again. */
static void wait_for_something(struct screen *s)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = s->signal_fd, .events = POLLIN },
	};
	uint64_t now = monotonic_ns(), left = s->next_ns > now ? s->next_ns - now : 0;
	int key;

	poll(fds, ARRAY_SIZE(fds), (int)((left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC));
	if (fds[1].revents || (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
		s->ended = true;
	while (!s->ended && (key = getch()) != ERR)
		press(s, key);
}

static int run(struct screen *s)
{
	int r = 0;

	while (!s->ended && r >= 0) {
		if (monotonic_ns() >= s->next_ns)
			look(s);
		r = draw(s);
		if (r >= 0)
			wait_for_something(s);
	}
	return r;
}

/* Signals that end the program come as a key would: the terminal is put right first. */
static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int screen_run(const struct screen_options *options)
{
	struct screen s = { .options = options, .view = { .utf8 = options->utf8 } };
	_cleanup_close_ int signal_fd = -1;
	SCREEN *terminal;
	int r;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return -ENOTTY;
	s.last_seen_ns = monotonic_ns();
	s.signal_fd = signal_fd = open_signals();
	if (signal_fd < 0)
		return -errno;
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return -ENOTTY;
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	begin_colours();
	r = run(&s);
	endwin();
	delscreen(terminal);
	gpreempt_daemon_close(s.daemon);
	snapshot_done(&s.snapshot);
	return r;
}
