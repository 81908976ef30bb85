# SPDX-License-Identifier: MIT
# For kernel-all, sourced: what happens to jobs and GPUs while the scheduler in the driver has them.

# in_trouble NAME COMMAND...: a job that is held now and then; COMMAND does something to it.
in_trouble()
{
	local name=$1
	shift
	check "$name: a job works" start_job
	check "$name: it is offline" be_offline "$job"
	check "$name: it is held now and then" off "$job"
	"$@"
}

job_is_killed()
{
	kill -KILL "$job"
	forget_job
	check "a job is killed: the scheduler forgets it" says_soon offline 0
	check "a job is killed: requests go on" requests_come 2
}

job_execs()
{
	tell_job exec
	check "a job execs: the scheduler forgets it" says_soon offline 0
	check "a job execs: requests go on" requests_come 2
	kill -KILL "$job"
	forget_job
}

job_forks()
{
	local child
	tell_job fork
	check "a job forks: it does, held or not" job_says fork
	child=$(pgrep -P "$job")
	check "a job forks: requests go on" requests_come 2
	check "a job forks: it is still the only one" says_soon offline 1
	check "a job forks: nobody traces either" both_untraced "$job" "$child"
	check "a job forks: every packet ran once, in order" stop_job
}

both_untraced()
{
	untraced "$1" && untraced "$2"
}

somebody_debugs()
{
	check "another debugger: comes while the scheduler has the job" start_other
	check "another debugger: the job is held all the same" off "$job"
	check "another debugger: requests go on" requests_come 2
	check "another debugger: goes" stop_other
	check "another debugger: every packet ran once, in order" stop_job
}

# Turned off, and on again, in the middle of a hold; then the driver goes while all are held.
scheduler_goes()
{
	local name="the scheduler goes"
	check "$name: a job works" start_job
	check "$name: it is offline" be_offline "$job"
	check "$name: it is held" off "$job"
	check "$name: it goes" extsched off
	check "$name: the job runs at once" queuewatch "$job" running $QUEUES $RUNS_MS
	check "$name: it comes again" start_scheduler
	check "$name: classes are as they were" says_soon offline 1
	check "$name: the job is held again" off "$job"
	kill -KILL "$job" $online
	wait $online 2>/dev/null
	exec {from_online}<&-
	forget_job
	check "$name: nobody is in the driver's way, which goes" \
		kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	check "$name: the new one has none" extsched_is_off
}

extsched_is_off()
{
	[ "$(extsched says scheduler)" = off ]
}

# A GPU whose scheduler takes no orders: one failed preemption, and it is left alone.
gpu_dies()
{
	local name="dead GPU" holds resets
	check "$name: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW queue_preemption_timeout_ms=500
	check "$name: a job works" start_job
	check "$name: an online job comes" start_online --ticks 30 --every-ms 100
	check "$name: the scheduler starts" start_scheduler
	check "$name: one is offline" be_offline "$job"
	check "$name: one is online" be_online
	check "$name: requests come" requests_come 3
	check "$name: the job is held now and then" test "$(told holds)" -gt 0
	knob dead 1
	check "$name: it trips" says_soon tripped 1
	holds=$(told holds) resets=$(counter resets)
	check "$name: the driver still answers" extsched says scheduler
	check "$name: nothing more is tried" left_alone "$holds" "$resets"
	check "$name: resets were asked for, no more than two" test "$resets" -le 2
	kill -KILL "$job" $online
	wait $online 2>/dev/null
	exec {from_online}<&-
	forget_job
	check "$name: the scheduler ends" extsched off
}

# left_alone HOLDS RESETS: also in the next half second.
left_alone()
{
	local until=$(($(now_ms) + 500))
	while [ "$(now_ms)" -lt $until ]; do
		[ "$(told holds)" -eq "$1" ] || { echo "holds $(told holds), were $1" && return 1; }
	done
	[ "$(counter resets)" = "$2" ] || { echo "resets $(counter resets), were $2" && return 1; }
}

trouble()
{
	check "trouble: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	check "trouble: an online job comes" start_online --ticks 60 --every-ms 60
	check "trouble: the scheduler starts" start_scheduler
	check "trouble: one is online" be_online
	in_trouble "a job is killed" job_is_killed
	in_trouble "a job execs" job_execs
	in_trouble "a job forks" job_forks
	in_trouble "another debugger" somebody_debugs
	check "trouble: nothing the hardware would not take" nothing_bad
	scheduler_goes
	gpu_dies
}
