/* SPDX-License-Identifier: MIT */
/*
 * The drivers there are, by the names that --device has for them. What the daemon and the library
 * need of a driver before there is a backend is here; which drivers there are, gpu/drivers.c says.
 */
#ifndef GPREEMPT_GPU_DRIVER_H
#define GPREEMPT_GPU_DRIVER_H

#include "gpu/backend.h"

#define GPU_TRIED_SIZE 32

/* How a backend is to act. */
struct gpu_way {
	const char *level; /* "K2"; NULL: the best there is */
	struct guard *guard; /* borrowed; NULL: nobody is held, or nobody could be hurt by it */
	/*
	 * For a daemon: of all processes of the machine, and what they control is touched by
	 * helpers only. Else for a program that names its processes.
	 */
	bool serves;
	/* GPU_TRIED_SIZE bytes that the driver finds again when it is opened the next time */
	char *tried;
};

/* Somebody may still be held, by a process that is no more. */
struct gpu_leftover {
	pid_t pid;
	uint64_t start_ticks; /* of that process, and not of another one that has its pid now */
	const char *level;
};

struct gpu_driver {
	const char *name; /* "kfd" */
	const char *argument; /* what follows the name, for people: ":SOCKET"; "": nothing */
	const char *whose; /* "AMD's" */
	const char *node; /* "kfd" of /dev, without which it is not there; NULL: there is none */
	const char *module; /* that brings it, for people. NULL: it is used by its name only */
	const char *levels; /* that a daemon can hold by, the best first: "K3 K2" */

	/*
	 * Touches no GPU yet. @argument: what follows the colon, or NULL. -ENODEV: it is not there.
	 * *ret_why says any failure.
	 */
	int (*open)(const char *argument, void **ret, struct gpu_why *ret_why);
	void (*close)(void *data);
	/*
	 * @data need not outlive the call. *ret_why: the failure, or, where its kind is not 0, what
	 * people should know all the same.
	 */
	int (*act)(void *data, const struct gpu_way *way, struct gpu_backend **ret,
		   struct gpu_why *ret_why);
	/* 1: let go; 0: nothing was held; -ESRCH: nothing can be, as it or its level ended. */
	int (*undo)(void *data, const struct gpu_leftover *left);
	/*
	 * It still counts a process as using it that has ended. While it does, GPUs cannot be
	 * partitioned, and removing the driver is not safe. NULL: it does not count them.
	 */
	bool (*counts_ended)(void *data);
};

extern const struct gpu_driver *const gpu_drivers[]; /* ends with NULL */

/* Whether "NAME" or "NAME:ARGUMENT" means it; *ret_argument points into that, or is NULL. */
bool gpu_driver_is(const struct gpu_driver *d, const char *name, const char **ret_argument);
/* The one of the table that is meant; NULL: none. */
const struct gpu_driver *gpu_driver_named(const char *name, const char **ret_argument);
/* Whether it has this level, in whatever case. */
bool gpu_driver_has_level(const struct gpu_driver *d, const char *level);
/* Whether it has, or, where it is NULL, one of those that are looked for; else -EINVAL. */
int gpu_driver_check_level(const struct gpu_driver *d, const char *level, struct gpu_why *ret_why);
/*
 * The first of the table that is there, and, unless @level is NULL, has it; one of those that are
 * used by name only is passed over. -ENODEV: none.
 */
int gpu_driver_open_any(const char *level, const struct gpu_driver **ret, void **ret_data,
			struct gpu_why *ret_why);
/* The names of the table with their arguments: "kfd, soft:SOCKET". */
void gpu_driver_list(char *buf, size_t size);

#endif
