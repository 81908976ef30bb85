/* SPDX-License-Identifier: MIT */
/* Apart from the rest: <term.h> makes macros of words like "lines" and "columns". */
#include <curses.h>
#include <term.h>
#include <unistd.h>

#include "cmd/gpreempt-top/screen.h"

unsigned int terminal_width(void)
{
	int error, n;

	if (!isatty(STDOUT_FILENO) || setupterm(NULL, STDOUT_FILENO, &error) != OK)
		return 0;
	n = tigetnum("cols");
	del_curterm(cur_term);
	return n > 0 ? (unsigned int)n : 0;
}
