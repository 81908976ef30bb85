# SPDX-License-Identifier: MIT
# For daemon-all, sourced: requests come, offline jobs make room and come back, nothing is lost. By
# the software GPU's log, not by what the daemon says.

# judged NAME N: an online job has come to N offline ones that work; requests it gets once all these
# can be held.
judged()
{
	local name=$1
	check "$name: all offline jobs are attached" attached "$2"
	check "$name: the log begins" clear_log
	check "$name: requests come" requests_come 6
	check "$name: nobody traces the online job" untraced "$online"
	check "$name: offline jobs were held" test "$(status_says preemptions)" -gt 0
	check "$name: every request is done right" stop_online
	check "$name: nobody starts anything in its way" judge
	echo "# $name: $(cat "$TMPDIR/verdict")"
}

basic()
{
	local name=$1
	shift
	check "$name: loads" kfdsim-load "$@" $SLOW
	knob log_packets 1
	check "$name: an offline job works" offline start_queues 1 --aql 4 --ticks 20 --waves 8
	check "$name: the daemon starts" start_daemon
	check "$name: an online job comes" start_online --ticks 250 --every-ms 500
	judged "$name" 1
	check "$name: the offline job runs again" queuewatch $pids running 4 $RUNS_MS
	check "$name: the daemon ends" stop_daemon
	check "$name: every packet ran once, in order" stop_queues
	check "$name: nothing the hardware would not take" nothing_bad
}

# Jobs that are one gang by configuration stop together, on both GPUs.
two_gpus()
{
	local name="two GPUs" first first_mk first_out
	check "$name: loads" kfdsim-load gc=0x090403 num_xcc=1 gpus=2 $SLOW
	knob log_packets 1
	check "$name: one rank works" offline start_queues 1 --aql 2 --ticks 20 --gpu 0
	first=$pids first_mk=$mk first_out=$out
	check "$name: the other too" offline start_queues 1 --aql 2 --ticks 20 --gpu 1
	check "$name: the daemon starts" start_daemon "[rule ring]" "command = *mkqueues*" \
		"class = offline" "gang = ring"
	check "$name: an online job comes on the first" start_online --ticks 250 --every-ms 500
	judged "$name" 2
	check "$name: the second rank was held with the first" both_were_held $first $pids
	check "$name: the daemon ends" stop_daemon
	check "$name: every packet of the second ran once" stop_queues
	mk=$first_mk out=$first_out
	check "$name: and of the first" stop_queues
	check "$name: nothing the hardware would not take" nothing_bad
}

both_were_held()
{
	local pid
	for pid; do
		grep -q "held.*\<$pid\>" "$TMPDIR/daemon.log" || { echo "not $pid" && return 1; }
	done
}

# More queues than slots and more processes than address spaces.
many()
{
	local name="80 offline and 20 online queues"
	local BOUND_MS=$((4 * BOUND_MS)) # eight suspends, one after the other
	check "$name: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	knob log_packets 1
	check "$name: offline jobs work" offline start_queues 8 --aql 10 --ticks 100
	check "$name: the daemon starts" start_daemon
	check "$name: an online job comes" start_online --queues 20 --ticks 500 --every-ms 1000
	judged "$name" 8
	check "$name: the daemon ends" stop_daemon
	check "$name: every packet ran once, in order" stop_queues
	check "$name: nothing the hardware would not take" nothing_bad
}

policies()
{
	local name="policies switched live" policy
	check "$name: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	check "$name: offline jobs work" offline start_queues 3 --aql 2 --ticks 20
	check "$name: the daemon starts" start_daemon
	check "$name: an online job comes" start_online --ticks 30 --every-ms 200
	for policy in rotate share deadline none priority rotate priority; do
		check "$name: $policy" "$gpreempt" policy $policy
		check "$name: $policy: requests go on" requests_come 3
	done
	check "$name: an unknown one is refused" exits_with 2 "$gpreempt" policy nonsense
	check "$name: every request is done right" stop_online
	check "$name: all offline jobs run" each running_two
	check "$name: the daemon ends" stop_daemon
	check "$name: every packet ran once, in order" stop_queues
	check "$name: nothing the hardware would not take" nothing_bad
}

running_two()
{
	queuewatch "$1" running 2 $FOREVER_MS
}
