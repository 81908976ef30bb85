/* SPDX-License-Identifier: MIT */
/*
 * gpreempt-holder keeps the queues of one process off the GPU, for gpreemptd, which starts it
 * (gpu/kfd/holder.h).
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/kfd/holder.h"
#include "util/macros.h"
#include "util/slice.h"

#define SLICE_NS (100 * NSEC_PER_USEC) /* shorter than the daemon's, who has said all it had to */

int main(int argc, char **argv)
{
	void *data = gkfd_syscall_new(NULL);
	struct gkfd *k;
	int r;

	if (!data || gkfd_new(&gkfd_transport_syscall, data, &k) < 0)
		return EXIT_FAILURE;
	ask_for_slices(SLICE_NS);
	gkfd_syscall_may_hang(data); /* nobody but its target depends on it */
	if (argc == 4 && !strcmp(argv[1], HOLDER_RESCUE))
		r = holder_rescue(k, (pid_t)strtol(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	else
		r = holder_serve(k);
	gkfd_free(k);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
