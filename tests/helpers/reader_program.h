/* SPDX-License-Identifier: MIT */
#ifndef GPREEMPT_TESTS_HELPERS_READER_PROGRAM_H
#define GPREEMPT_TESTS_HELPERS_READER_PROGRAM_H

enum order {
	ECHO = 'e', /* and anything else */
	HANG = 'h',
	CRASH = 'c',
	BURN = 'b', /* half a second of processor time, then ECHO */
	PASS = 'p', /* two descriptors */
	FAIL = 'f', /* -EXDEV */
	MUCH = 'm', /* more than there is room for */
};

#endif
