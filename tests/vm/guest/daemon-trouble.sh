# SPDX-License-Identifier: MIT
# For daemon-all, sourced: what happens to jobs and GPUs while the daemon has them.

# in_trouble NAME COMMAND...: a job, a daemon and requests; COMMAND does something to the job.
in_trouble()
{
	local name=$1
	shift
	check "$name: a job works" offline start_job
	check "$name: it is attached" attached 1
	check "$name: it is held now and then" held_once
	"$@"
}

# Waits until $job is off the GPU.
held_once()
{
	off "$job"
}

job_is_killed()
{
	kill -KILL "$job"
	forget_job
	check "a job is killed: the daemon goes on" attached 0
	check "a job is killed: requests go on" request_comes
}

job_execs()
{
	tell_job exec
	check "a job execs: it is let go" attached 0
	check "a job execs: requests go on" request_comes
	kill -KILL "$job"
	forget_job
}

somebody_debugs()
{
	check "another debugger: is refused while the daemon has the job" other_is_refused
	check "another debugger: the daemon pauses" "$gpreempt" pause
	check "another debugger: nobody traces the job" untraced "$job"
	check "another debugger: comes" start_other
	check "another debugger: the daemon goes on" "$gpreempt" continue
	check "another debugger: requests go on" request_comes
	check "another debugger: the daemon cannot attach and says so" job_is_refused
	check "another debugger: goes" stop_other
	check "another debugger: every packet ran once, in order" stop_job
}

job_is_refused()
{
	local i
	for i in {1..100}; do
		grep -q "$job.*\(debug\|trace\)" "$TMPDIR/daemon.log" && return
		"$gpreempt" status >/dev/null || return
	done
	tail -n 5 "$TMPDIR/daemon.log"
	return 1
}

# The driver is taken away and comes back.
device_goes()
{
	check "the driver goes: the daemon pauses" "$gpreempt" pause
	check "the driver goes: nobody has it open" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	check "the driver goes: the daemon continues on the new one" "$gpreempt" continue
}

# A scheduler that takes no orders: one failed preemption, and the GPU is left alone.
scheduler_dies()
{
	local name="dead scheduler" resets
	echo 'amdgpu.*\|kfd.*\|.*preempt.*\|.*HWS.*\|.*hang.*\|.*reset.*' >>/run/kfdsim/allow
	check "$name: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW \
		queue_preemption_timeout_ms=1000
	check "$name: a job works" offline start_job
	check "$name: the daemon starts" start_daemon
	check "$name: an online job comes" start_online --ticks 30 --every-ms 200
	check "$name: the job is attached" attached 1
	check "$name: requests come" request_comes
	knob dead 1
	check "$name: the GPU trips" tripped 1
	check "$name: said in the log" \
		grep -q "no more preemptions on this GPU until: gpreempt rearm" "$TMPDIR/daemon.log"
	resets=$(counter resets)
	check "$name: the daemon still answers" "$gpreempt" status
	check "$name: and makes no more preemptions" no_more_preemptions
	check "$name: no more than one reset" test "$resets" -le 1
	kill -KILL "$job" $online
	wait $online 2>/dev/null
	forget_job
	check "$name: the daemon ends" stop_daemon
}

tripped()
{
	local i
	for i in {1..300}; do
		[ "$(status_says trips)" -lt "$1" ] || return 0
	done
	"$gpreempt" status
	return 1
}

no_more_preemptions()
{
	local before
	before=$(status_says preemptions)
	for i in {1..20}; do
		"$gpreempt" status >/dev/null || return
	done
	[ "$(status_says preemptions)" = "$before" ]
}

trouble()
{
	check "trouble: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	check "trouble: the daemon starts" start_daemon
	check "trouble: an online job comes" start_online --ticks 100 --every-ms 100
	in_trouble "a job is killed" job_is_killed
	in_trouble "a job execs" job_execs
	in_trouble "another debugger" somebody_debugs
	check "trouble: every request is done right" stop_online
	device_goes
	check "trouble: the daemon ends" stop_daemon
	check "trouble: nothing the hardware would not take" nothing_bad
	scheduler_dies
}
