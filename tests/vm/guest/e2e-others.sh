# SPDX-License-Identifier: MIT
# For e2e-all, sourced: a hold among other things that happen to a job.
CHURN_ROUNDS=${CHURN_ROUNDS:-50}

# Sets $other when it is attached; it goes at the end of its standard input.
start_other()
{
	local line
	rm -f "$TMPDIR"/other.{in,out}
	mkfifo "$TMPDIR"/other.{in,out}
	otherdebugger "$job" <"$TMPDIR/other.in" >"$TMPDIR/other.out" &
	other=$!
	exec {to_other}>"$TMPDIR/other.in" {from_other}<"$TMPDIR/other.out"
	read -r -t 30 -u "$from_other" line && [ "$line" = attached ] || { echo "$line" && false; }
}

stop_other()
{
	exec {to_other}>&- {from_other}<&-
	wait $other
}

other_is_refused()
{
	exits_with 4 otherdebugger "$@" "$job" </dev/null
}

other_debugger()
{
	local name="another debugger"
	check "$name: a job has work" start_job
	check "$name: is there first" start_other
	check "$name: so a hold is refused" exits_with 4 "$gpreempt" hold "$job" --for 1
	check "$name: and the job runs" running "$job"
	check "$name: and its own session goes on" kill -0 $other
	check "$name: ends" stop_other
	check "$name: the job can be held" start_hold "$job"
	check "$name: that comes meanwhile is refused" other_is_refused
	check "$name: so is one that does not even trace" other_is_refused --no-seize
	check "$name: the job stays held" off "$job"
	check "$name: the holder is killed, the job runs" \
		queuewatch "$job" running $QUEUES $RUNS_MS kill -KILL $holder
	wait_hold >/dev/null
	check "$name: may come afterwards" start_other
	check "$name: the job runs with it" running "$job"
	check "$name: and ends" stop_other
	check "$name: the job can be held again" "$gpreempt" hold "$job" --for 0.1
}

# With the same job: queues come and go while it is held.
queues_change()
{
	local name="while held"
	check "$name: it is" start_hold "$job"
	tell_job create
	check "$name: a queue is created" job_says create
	check "$name: which is held too" off "$job"
	tell_job destroy
	check "$name: a queue's destruction waits" still_silent
	check "$name: it is let go, and all others run" \
		queuewatch "$job" running $QUEUES $RUNS_MS kill -TERM $holder
	check "$name: the queue is gone" job_says destroy
	wait_hold >/dev/null
	check "$name: the job can be held again" "$gpreempt" hold "$job" --for 0.1
	check "$name: every packet ran once, in order" stop_job
}

still_silent()
{
	local line
	! read -r -t 0.3 -u "$from_job" line
}

pid_namespace()
{
	local name="in a pid namespace"
	check "$name: a job has work" start_job unshare --pid --fork mkjob $QUEUES $TICKS
	read -r job <"/proc/$job_shell/task/$job_shell/children"
	check "$name: is listed" "$gpreempt" queues "$job"
	check "$name: is held" start_hold "$job"
	check "$name: none of its queues is on the GPU" off "$job"
	check "$name: the holder is killed, it runs" \
		queuewatch "$job" running $QUEUES $RUNS_MS kill -KILL $holder
	wait_hold >/dev/null
	check "$name: every packet ran once, in order" stop_job
}

each()
{
	local pid
	for pid in $pids; do
		"$@" "$pid" || return
	done
}

twenty()
{
	local name="twenty jobs"
	check "$name: have work" start_queues $((20 / ${SLOWNESS:-1})) --aql 1 --ticks $TICKS
	check "$name: are held" start_hold $pids
	check "$name: no queue is on the GPU" each off
	check "$name: the holder is killed" kill -KILL $holder
	check "$name: all run" each one_runs
	wait_hold >/dev/null
	check "$name: every packet ran once, in order" stop_queues
}

one_runs()
{
	queuewatch "$1" running 1 $RUNS_MS
}

# A tracer comes and is killed, again and again, at whatever moment of the job and of its own.
kill_tracers()
{
	local tracer word
	n_tracers=0 n_held=0
	while kill -0 "$job_shell"; do
		exec {from_hold}< <(exec "$gpreempt" hold "$job" --for 1 2>&1)
		tracer=$! word=''
		read -r -t "0.$((RANDOM % 10))" -u "$from_hold" word
		kill -KILL $tracer
		exec {from_hold}<&-
		wait $tracer
		n_tracers=$((n_tracers + 1))
		[[ "$word" != holding* ]] || n_held=$((n_held + 1))
	done
} 2>/dev/null

churn()
{
	local name="runtime starts and ends"
	check "$name: again and again" start_job mkjob --churn "$CHURN_ROUNDS"
	kill_tracers
	check "$name: to the last, all packets right" job_ends_right
	check "$name: some of the killed were holding" test $n_held -gt 0
	echo "# runtime rounds $CHURN_ROUNDS, tracers killed $n_tracers, of them holding $n_held"
}

others()
{
	check "others: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	other_debugger
	queues_change
	pid_namespace
	twenty
	churn
	check "others: nothing the hardware would not take" nothing_bad
}
