# SPDX-License-Identifier: MIT
# For kernel-all, sourced: requests come, offline jobs make room and come back, nothing is lost. By
# the software GPU's log, not by what the scheduler says.

# judged NAME: offline jobs work, an online one has come; both have their classes.
judged()
{
	local name=$1
	check "$name: the log begins" clear_log
	check "$name: requests come" requests_come 7
	check "$name: offline jobs were held" test "$(told holds)" -gt 0
	check "$name: every request is done right" stop_online
	check "$name: nobody starts anything in its way" judge
	echo "# $name: $(cat "$TMPDIR/verdict"), bound $BOUND_MS ms, modelled GPU, guest's clock"
}

basic()
{
	local name=$1
	shift
	check "$name: loads" kfdsim-load "$@" $SLOW
	knob log_packets 1
	check "$name: an offline job works" start_queues 1 --aql 4 --ticks 20 --waves 8
	check "$name: an online job comes" start_online --ticks 100 --every-ms 150
	check "$name: the scheduler starts" start_scheduler
	check "$name: one is offline" be_offline $pids
	check "$name: one is online" be_online
	judged "$name"
	check "$name: the offline job runs again" queuewatch $pids running 4 $RUNS_MS
	check "$name: the scheduler ends" stop_scheduler
	check "$name: every packet ran once, in order" stop_queues
	check "$name: nothing the hardware would not take" nothing_bad
}

# Each GPU has a scheduler of its own: who is on the other is not disturbed.
two_gpus()
{
	local name="two GPUs" first first_mk first_out unmaps
	check "$name: loads" kfdsim-load gc=0x090403 num_xcc=1 gpus=2 $SLOW
	knob log_packets 1
	check "$name: a job works on the first" start_queues 1 --aql 2 --ticks 20 --gpu 0
	first=$pids first_mk=$mk first_out=$out
	check "$name: another on the second" start_queues 1 --aql 2 --ticks 20 --gpu 1
	check "$name: an online job comes on the first" start_online --ticks 100 --every-ms 150
	check "$name: the scheduler starts" start_scheduler
	check "$name: both are offline" extsched class offline $first $pids
	check "$name: the first GPU hears of it" says_soon offline 1 0
	check "$name: the second too" says_soon offline 1 1
	check "$name: one is online" be_online
	unmaps=$(counter unmaps 1)
	check "$name: requests come" requests_come 2
	check "$name: no list of the second is changed" test "$(counter unmaps 1)" = "$unmaps"
	judged "$name"
	check "$name: nobody was held on the second" test "$(told holds 1)" -eq 0
	check "$name: the scheduler ends" stop_scheduler
	check "$name: every packet of the second ran once" stop_queues
	mk=$first_mk out=$first_out
	check "$name: and of the first" stop_queues
	check "$name: nothing the hardware would not take" nothing_bad
}

# More queues than slots.
many()
{
	local name="80 offline and 20 online queues"
	check "$name: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	knob log_packets 1
	check "$name: offline jobs work" start_queues 8 --aql 10 --ticks 100
	check "$name: an online job comes" start_online --queues 20 --ticks 100 --every-ms 200
	check "$name: the scheduler starts" start_scheduler
	check "$name: eight are offline" be_offline $pids
	check "$name: one is online" be_online
	judged "$name"
	check "$name: the scheduler ends" stop_scheduler
	check "$name: every packet ran once, in order" stop_queues
	check "$name: nothing the hardware would not take" nothing_bad
}

policies()
{
	local name="policies switched live" policy pid
	check "$name: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	check "$name: offline jobs work" start_queues 3 --aql 2 --ticks 20
	check "$name: an online job comes" start_online --ticks 30 --every-ms 100
	check "$name: the scheduler starts" start_scheduler
	check "$name: three are offline" be_offline $pids
	check "$name: one is online" be_online
	for policy in rotate share deadline none priority rotate priority; do
		check "$name: $policy" extsched on $policy $LOOK_US
		check "$name: $policy: it is" says_soon policy $policy
		check "$name: $policy: requests go on" requests_come 3
	done
	check "$name: an unknown one is refused" exits_with 1 extsched on nonsense
	check "$name: and the last one stays" says_soon policy priority
	check "$name: every request is done right" stop_online
	for pid in $pids; do
		check "$name: all offline jobs run" queuewatch "$pid" running 2 $FOREVER_MS
	done
	check "$name: the scheduler ends" stop_scheduler
	check "$name: every packet ran once, in order" stop_queues
	check "$name: nothing the hardware would not take" nothing_bad
}
