# SPDX-License-Identifier: MIT
# For kernel-figures, sourced: 100 offline queues on 24 slots, some of them kept for online ones.
JOBS=50
JOB_QUEUES=2
ONLINE_PERMILLE=80   # of 24 slots: 2
OFFLINE_PERMILLE=920 # 22
LEAST_PERCENT=85     # of the slots' time they are to have a queue with work
ROUNDS=6             # requests, while it is looked at

# slots NAME: the counter's growth since mark_slots.
declare -A marked
mark_slots()
{
	local name
	for name in slot_ns slot_taken_ns slot_used_ns rotations; do
		marked[$name]=$(counter $name)
	done
}

grown()
{
	echo $(($(counter "$1") - ${marked[$1]}))
}

# Of the slots' time, in tenths of a percent.
share()
{
	echo $(($(grown "$1") * 1000 / $(grown slot_ns)))
}

# Lines "PID PACKETS" of $pids.
packets_of()
{
	awk -v pids=" $pids " '$1 == "pid" && index(pids, " " $2 " ") { print $2, $10 }' \
		/sys/kernel/debug/kfdsim/0/processes | sort
}

# Every one of them did something since $TMPDIR/packets.
all_went_on()
{
	packets_of >"$TMPDIR/packets.now"
	join "$TMPDIR/packets" "$TMPDIR/packets.now" | awk -v jobs=$JOBS '
		$3 > $2 { n++ }
		$3 <= $2 { print "process", $1, "did nothing" }
		END { if (n != jobs) { print n + 0, "of", jobs, "went on"; exit 1 } }'
}

# end_period: waits of the GPU from now on.
end_period()
{
	knob waits 1
}

# longest_wait PID: milliseconds, in the period that end_period ended.
longest_wait()
{
	awk -v pid="$1" '
		$2 == pid { n++ }
		$2 == pid && $8 > most { most = $8 }
		END { if (!n) { print "unknown"; exit 1 } print int(most / 1000000) }' \
		/sys/kernel/debug/kfdsim/0/waits
}

finds_slot_at_once()
{
	waited=$(longest_wait "$online") || { echo "no wait of $online is known" && return 1; }
	echo "it waited for $waited ms"
	[ "$waited" -le $BOUND_MS ]
}

crowd()
{
	local name="100 queues on 24 slots" waited taken used
	check "$name: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	check "$name: the scheduler starts" start_scheduler
	check "$name: slots are kept" extsched reserve $ONLINE_PERMILLE $OFFLINE_PERMILLE
	check "$name: jobs work" start_queues $JOBS --aql $JOB_QUEUES --ticks 20
	check "$name: an online job comes" start_online --ticks 4 --every-ms 500
	check "$name: all jobs are offline" be_offline $pids
	check "$name: one is online" be_online
	check "$name: requests come" requests_come 2
	packets_of >"$TMPDIR/packets"
	mark_slots
	end_period
	check "$name: more requests come" requests_come $ROUNDS
	end_period
	taken=$(share slot_taken_ns) used=$(share slot_used_ns)
	check "$name: the online queue finds a slot at once" finds_slot_at_once
	check "$name: the list never has more than there are slots" test "$(grown rotations)" = 0
	check "$name: every job goes on" all_went_on
	check "$name: $LEAST_PERCENT % of the slots' time is used" \
		test "$used" -ge $((LEAST_PERCENT * 10))
	echo "# $name: $((taken / 10)).$((taken % 10)) % of the slots' time has a queue," \
		"$((used / 10)).$((used % 10)) % one with work; the online queue waited for" \
		"$(longest_wait "$online") ms at most (counted in the software GPU, guest's clock)"
	check "$name: every request is done right" stop_online
	check "$name: the scheduler ends" stop_scheduler
	check "$name: every packet ran once, in order" stop_queues
	check "$name: nothing the hardware would not take" nothing_bad
}
