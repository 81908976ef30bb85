/* SPDX-License-Identifier: MIT */
/* What to do about errors that have the same cause wherever they come from. */
#ifndef GPREEMPT_UTIL_ADVICE_H
#define GPREEMPT_UTIL_ADVICE_H

#include <errno.h>

/* @error: an errno, or the negative of one. */
static inline const char *advice_for(int error, const char *otherwise)
{
	switch (error < 0 ? -error : error) {
	case EMFILE:
		return "raise the limit of open files: ulimit -n, LimitNOFILE= of a unit";
	case ENFILE:
		return "the machine has too many open files: see fs.file-max";
	case ENAMETOOLONG:
		return "give a shorter directory: the path of a socket has 107 bytes at most";
	case ENOSPC:
	case EDQUOT:
		return "make room there";
	case ENOMEM:
		return "free some memory";
	case ENOPKG:
		return "install gpreempt's helper programs, which come with the library";
	default:
		return otherwise;
	}
}

#endif
