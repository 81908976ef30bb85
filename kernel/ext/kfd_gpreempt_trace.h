/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Tracepoints: "perf trace -e kfd_gpreempt:*" shows who was held for whom, and what it cost. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kfd_gpreempt

#if !defined(GPREEMPT_KERNEL_EXT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define GPREEMPT_KERNEL_EXT_TRACE_H

#include <linux/tracepoint.h>

/* The hardware was asked to take queues off or put them on. */
TRACE_EVENT(kfd_gpreempt_change,
	TP_PROTO(u32 gpu_id, bool off, bool on, bool victims, u64 took_ns, int result),
	TP_ARGS(gpu_id, off, on, victims, took_ns, result),
	TP_STRUCT__entry(
		__field(u32, gpu_id)
		__field(bool, off)
		__field(bool, on)
		__field(bool, victims)
		__field(u64, took_ns)
		__field(int, result)
	),
	TP_fast_assign(
		__entry->gpu_id = gpu_id;
		__entry->off = off;
		__entry->on = on;
		__entry->victims = victims;
		__entry->took_ns = took_ns;
		__entry->result = result;
	),
	TP_printk("gpu=%u off=%d on=%d victims=%d took_ns=%llu result=%d", __entry->gpu_id,
		  __entry->off, __entry->on, __entry->victims, __entry->took_ns, __entry->result)
);

/* The scheduler decided; by_pid 0: for nobody in particular. */
TRACE_EVENT(kfd_gpreempt_decision,
	TP_PROTO(u32 gpu_id, u32 pid, u32 by_pid, bool held),
	TP_ARGS(gpu_id, pid, by_pid, held),
	TP_STRUCT__entry(
		__field(u32, gpu_id)
		__field(u32, pid)
		__field(u32, by_pid)
		__field(bool, held)
	),
	TP_fast_assign(
		__entry->gpu_id = gpu_id;
		__entry->pid = pid;
		__entry->by_pid = by_pid;
		__entry->held = held;
	),
	TP_printk("gpu=%u pid=%u by_pid=%u held=%d", __entry->gpu_id, __entry->pid,
		  __entry->by_pid, __entry->held)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE kfd_gpreempt_trace
#include <trace/define_trace.h>
