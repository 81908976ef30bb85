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
	check "a job is killed: requests go on" requests_come 3
}

job_execs()
{
	tell_job exec
	check "a job execs: it is let go" attached 0
	check "a job execs: requests go on" requests_come 3
	kill -KILL "$job"
	forget_job
}

job_forks()
{
	local child
	tell_job fork
	check "a job forks: it does, held or not" job_says fork
	child=$(pgrep -P "$job")
	check "a job forks: requests go on" requests_come 3
	check "a job forks: it is still the only one attached" attached 1
	check "a job forks: nobody traces the child" untraced "$child"
	check "a job forks: which has no queues" no_queues_of "$child"
	check "a job forks: every packet ran once, in order" stop_job
	check "a job forks: nobody is attached then" attached 0
}

no_queues_of()
{
	[ ! -e "/sys/class/kfd/kfd/proc/$1" ]
}

somebody_debugs()
{
	check "another debugger: is refused while the daemon has the job" other_is_refused
	check "another debugger: the daemon pauses" "$gpreempt" pause
	check "another debugger: nobody traces the job" untraced "$job"
	check "another debugger: comes" start_other
	check "another debugger: the daemon goes on" "$gpreempt" continue
	check "another debugger: requests go on" requests_come 3
	check "another debugger: the daemon cannot attach and says so" job_is_refused
	check "another debugger: goes" stop_other
	check "another debugger: every packet ran once, in order" stop_job
}

# On level K3 the daemon is no debugger: one more does not matter.
somebody_debugs_too()
{
	check "another debugger: comes while the daemon has the job" start_other
	check "another debugger: the job is held all the same" held_once
	check "another debugger: requests go on" requests_come 3
	check "another debugger: the daemon has the job still" attached 1
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
	local name="the driver goes"
	check "$name: a policy is chosen" "$gpreempt" policy rotate
	check "$name: a class is asked for" "$gpreempt" class name:mkjob offline --priority 7
	check "$name: somebody reads events" start_reader
	check "$name: the daemon pauses" "$gpreempt" pause
	check "$name: and is the same process" same_daemon
	check "$name: which the driver does not count" test ! -e /sys/class/kfd/kfd/proc/$daemon
	check "$name: and has nothing of it open" nothing_open
	check "$name: to pause again does no harm" "$gpreempt" pause
	check "$name: nobody is in its way" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	check "$name: the daemon continues on the new one" "$gpreempt" continue
	check "$name: and is the same process still" same_daemon
	check "$name: the policy is the one that was chosen" policy_is rotate
	check "$name: a job comes" offline start_job
	check "$name: an online job comes" start_online --ticks 100 --every-ms 100
	check "$name: the job is attached" attached 1
	check "$name: and of the class that was asked for" grep -q '"source": *"request"' \
		"$TMPDIR/status"
	check "$name: it is held now and then" held_once
	check "$name: requests come" requests_come 3
	check "$name: every request is done right" stop_online
	check "$name: every packet ran once, in order" stop_job
	check "$name: the reader of events heard it all" reader_heard
}

start_reader()
{
	"$gpreempt" events >"$TMPDIR/events" 2>&1 &
	reader=$!
	"$gpreempt" policy share # until it hears something
	until [ -s "$TMPDIR/events" ]; do
		kill -0 $reader || return
		"$gpreempt" policy rotate >/dev/null
	done
	"$gpreempt" policy rotate # it may have heard of the other
}

reader_heard()
{
	kill -TERM $reader
	wait $reader
	grep -i paused "$TMPDIR/events" && grep -i continued "$TMPDIR/events" ||
		{ cat "$TMPDIR/events" && return 1; }
}

same_daemon()
{
	local comm
	read -r comm </proc/$daemon/comm
	"$gpreempt" status | tee "$TMPDIR/status"
	[ "$comm" = gpreemptd ] && grep -q "pid $daemon," "$TMPDIR/status"
}

nothing_open()
{
	ls -l /proc/$daemon/fd | tee "$TMPDIR/open"
	! grep -q 'kfd\|/proc/\|handover' "$TMPDIR/open"
}

policy_is()
{
	"$gpreempt" policy | tee "$TMPDIR/policy"
	grep -q "^\* $1" "$TMPDIR/policy"
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
	check "$name: requests come" requests_come 3
	knob dead 1
	check "$name: the GPU trips" tripped 1
	check "$name: said in the log" \
		grep -q "no more preemptions on this GPU until: gpreempt rearm" "$TMPDIR/daemon.log"
	check "$name: the daemon still answers, and tells what happened" tells_what_happened
	check "$name: and makes no more preemptions" no_more_preemptions
	resets=$(counter resets)
	check "$name: nor again" no_more_preemptions
	check "$name: resets do not go on" test "$(counter resets)" = "$resets"
	check "$name: one for the failed suspend, one at most for letting go" test "$resets" -le 2
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

tells_what_happened()
{
	local file
	"$gpreempt" status >"$TMPDIR/status"
	cat "$TMPDIR/status"
	grep -q "^  |   asked: suspend process $job " "$TMPDIR/status" &&
		grep -q "^  |   result: -[0-9]* (.*)" "$TMPDIR/status" &&
		grep -q "^  |     process $job .*offline" "$TMPDIR/status" &&
		grep -q "^gpreemptd: trip:   asked: suspend process $job " \
			"$TMPDIR/daemon.log" || return
	file=$(sed -n 's/.* trip: this is also in //p' "$TMPDIR/daemon.log")
	grep -q "asked: suspend process $job " "$file"
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
	in_trouble "a job forks" job_forks
	if [ $LEVEL = K2 ]; then
		in_trouble "another debugger" somebody_debugs
	else
		in_trouble "another debugger" somebody_debugs_too
	fi
	check "trouble: every request is done right" stop_online
	device_goes
	check "trouble: the daemon ends" stop_daemon
	check "trouble: nothing the hardware would not take" nothing_bad
	scheduler_dies
}
