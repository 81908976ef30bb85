# SPDX-License-Identifier: MIT
# For e2e-all, sourced: whatever ends a hold, the job's queues run again at once. By the software
# GPU, not by what the tool says.

row()
{
	printf '# %-42s %6s\n' "$1" "$2" >>"$table"
}

# run_again NAME LIMIT COMMAND...: COMMAND ends the hold.
run_again()
{
	local name=$1 limit=$2 ms
	shift 2
	ms=$(queuewatch "$job" running $QUEUES "$limit" "$@") || { row "$name" never && return 1; }
	row "$name" "$ms"
}

# ending NAME LIMIT COMMAND...: COMMAND may use $holder, $guard and $job. One job lives through
# many: what a hold leaves behind in some half state cannot be held again.
ending()
{
	local name=$1 limit=$2
	shift 2
	check "$name: the job is held" start_hold "$job"
	check "$name: none of its queues is on the GPU" off "$job"
	check "$name: all run again" run_again "$name" "$limit" bash -c "$(eval "echo \"$*\"")"
	check "$name: the holder ends" wait_hold
	[[ "$name" != SIG@(TERM|INT) ]] || check "$name: well" hold_ended_with 0
	check "$name: nobody traces the job" untraced "$job"
}

time_over()
{
	local name="--for is over" ms
	check "$name: the job is held" start_hold "$job" --for 1
	check "$name: none of its queues is on the GPU" off "$job"
	ms=$(queuewatch "$job" running $QUEUES $((1000 + RUNS_MS))) || ms=''
	check "$name: all run again" test -n "$ms"
	row "$name" "$((${ms:-99999} > 1000 ? ${ms:-99999} - 1000 : 0))"
	check "$name: the holder ends" wait_hold
	check "$name: well" test "$hold_status" = 0
}

# The runtime's end makes the driver resume what is held; the program then ends in order.
runtime_ends()
{
	local name="the job's runtime shuts down"
	check "$name: the job is held" start_hold "$job"
	check "$name: all run again" run_again "$name" $RUNS_MS \
		sh -c "echo shutdown >$TMPDIR/job.in"
	check "$name: it does" job_says shutdown
	check "$name: the holder ends" wait_hold
	check "$name: every packet ran once, in order" stop_job
}

main_thread_ends()
{
	local name="the job's main thread ends"
	check "$name: a job has work" start_job
	check "$name: it is held" start_hold "$job"
	tell_job leave
	check "$name: it ends" job_says leave
	check "$name: all run again" run_again "$name, holder killed" $RUNS_MS kill -KILL $holder
	check "$name: the holder ends" wait_hold
	check "$name: every packet ran once, in order" stop_job
}

kill_job()
{
	kill -KILL "$job"
}

# The queues go with the program: what must run at once are those of the next.
job_goes()
{
	local name=$1 began gone=$job ms
	shift
	check "$name: it is held" start_hold "$job"
	began=$(now_ms)
	"$@"
	wait_hold >/dev/null
	row "$name (holder gone)" $(($(now_ms) - began))
	check "$name: the holder says so" hold_ended_with 3
	kill -KILL "$gone" 2>/dev/null
	forget_job
	check "$name: bystanders run" running "$bystander" 1
	began=$(now_ms)
	check "$name: the next has work" start_job
	check "$name: all its queues run" running "$job"
	ms=$(($(now_ms) - began))
	row "$name (queues of the next job)" $ms
}

print_table()
{
	printf '# %-42s %s\n' ending "queues running again after ms"
	cat "$table"
}

endings()
{
	check "endings: loads" kfdsim-load gc=0x090403 num_xcc=8 $SLOW
	check "endings: bystanders" start_queues 1 --aql 1 --ticks $TICKS --waves 8
	bystander=${pids# }
	: >"$table"
	check "endings: a job has work" start_job
	ending "SIGTERM" $RUNS_MS 'kill -TERM $holder'
	ending "SIGINT" $RUNS_MS 'kill -INT $holder'
	ending "SIGKILL" $RUNS_MS 'kill -KILL $holder'
	ending "SIGABRT" $RUNS_MS 'kill -ABRT $holder'
	ending "SIGSTOP" $RUNS_MS 'kill -STOP $holder'
	ending "guard killed" $RUNS_MS 'kill -KILL $guard'
	ending "holder stopped, guard killed" $RUNS_MS 'stop $holder; kill -KILL $guard'
	ending "gpreempt release" $RUNS_MS '$gpreempt release $job'
	ending "gpreempt release, holder stopped" $RUNS_MS \
		'stop $holder; $gpreempt release $job'
	time_over
	runtime_ends
	main_thread_ends
	check "endings: another job has work" start_job
	job_goes "the job is killed" kill_job
	job_goes "the job execs" tell_job exec
	check "endings: the last job's packets ran once, in order" stop_job
	check "endings: bystanders' packets ran once, in order" stop_queues
	check "endings: nothing the hardware would not take" nothing_bad
	print_table
}
