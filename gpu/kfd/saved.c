/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "gpu/kfd/progress.h"
#include "util/macros.h"

#define MAX_XCC 64

int gkfd_saved_read(struct gkfd *k, pid_t pid, uint64_t cwsr_base, uint32_t cwsr_bytes,
		    uint32_t n_xcc, struct gkfd_saved *ret)
{
	struct kfd_context_save_area_header headers[MAX_XCC];
	struct gkfd_span spans[MAX_XCC];
	struct gkfd_saved saved = { .n_xcc = n_xcc };
	uint64_t end;
	int r;

	if (n_xcc == 0 || n_xcc > MAX_XCC || cwsr_base == 0 || cwsr_bytes < sizeof(headers[0]) ||
	    __builtin_add_overflow(cwsr_base, (uint64_t)cwsr_bytes * n_xcc, &end))
		return -EINVAL;
	for (uint32_t i = 0; i < n_xcc; i++) {
		spans[i] = (struct gkfd_span){
			.addr = cwsr_base + (uint64_t)i * cwsr_bytes,
			.buf = &headers[i],
			.len = sizeof(headers[i]),
		};
	}
	r = k->transport->read_mem(k->data, pid, spans, n_xcc);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n_xcc; i++) {
		if (!spans[i].ok)
			return -EFAULT;
		if (headers[i].wave_state.wave_state_size > cwsr_bytes ||
		    headers[i].wave_state.control_stack_size > cwsr_bytes)
			return -EBADMSG;
		saved.wave_bytes += headers[i].wave_state.wave_state_size;
		saved.ctl_stack_bytes += headers[i].wave_state.control_stack_size;
	}
	*ret = saved;
	return 0;
}
