/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "cmd/gpreemptd/events.h"
#include "util/text.h"

static enum log_level set_level = LOG_LEVEL_INFO;
static bool verbose;
static unsigned long long lost; /* lines nobody was there to read */

void log_set_level(enum log_level level)
{
	set_level = level;
}

void log_set_verbose(void)
{
	verbose = true;
}

/* The journal tells its stream's name in JOURNAL_STREAM: sd-daemon(3). A terminal wants text. */
static bool journal_reads_us(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

/*
 * A pipe or socket nobody reads must not stop us. That it is writable means for a pipe that a
 * whole PIPE_BUF fits, more than any line of ours: pipe(7).
 */
static bool would_block(void)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&p, 1, 0) == 0;
}

static void write_line(int level, char *text)
{
	char prefix[16], end[] = "\n";
	struct iovec parts[3];

	snprintf(prefix, sizeof(prefix), journal_reads_us() ? "<%d>" : "gpreemptd: ", level);
	parts[0] = (struct iovec){ .iov_base = prefix, .iov_len = strlen(prefix) };
	parts[1] = (struct iovec){ .iov_base = text, .iov_len = strlen(text) };
	parts[2] = (struct iovec){ .iov_base = end, .iov_len = 1 };
	/* One call, so that lines stay whole. */
	if (writev(STDERR_FILENO, parts, ARRAY_SIZE(parts)) < 0)
		lost++;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	int saved = errno;
	char line[1024];
	va_list ap;

	if (level > set_level && !verbose)
		return;
	if (would_block()) {
		lost++;
		return;
	}
	if (lost) {
		snprintf(line, sizeof(line), "%llu lines are missing here: nobody read them", lost);
		lost = 0;
		write_line(LOG_LEVEL_WARNING, line);
	}
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* What a process calls itself writes no lines of its own, and hides none as no text. */
	text_clean(line);
	write_line(level, line);
	errno = saved;
}
