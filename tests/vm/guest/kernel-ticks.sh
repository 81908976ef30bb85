# SPDX-License-Identifier: MIT
# For kernel-figures, sourced: what a look of the scheduler's thread costs, and that there is none
# where nobody could be in the way.
WINDOWS=20
INSTRUCTION_NS=2  # as the guest's clock has it
LOOKS=20          # at least, in each
MOST=150000       # instructions of a look at 100 queues

# window: prints what a look took on average, in instructions.
window()
{
	local looks busy now more=0
	looks=$(told looks) && busy=$(told busy_ns) || return
	while [ $more -lt $LOOKS ]; do
		now=$(told looks) || return
		more=$((now - looks))
	done
	now=$(told busy_ns) || return
	echo $(((now - busy) / more / INSTRUCTION_NS))
}

windows()
{
	local i
	for ((i = 0; i < WINDOWS; i++)); do
		window
	done | sort -n >"$TMPDIR/windows"
	cat "$TMPDIR/windows"
	[ "$(wc -l <"$TMPDIR/windows")" = $WINDOWS ]
}

looks_at()
{
	[ "$(told offline)" = 10 ] && [ "$(told online)" = 1 ]
}

# no_looks_during COMMAND...: nobody looks while it runs, but who was about to when it began.
no_looks_during()
{
	local looks
	looks=$(told looks) || return
	"$@" || return
	[ "$(told looks)" -eq "$looks" ] || { echo "$(told looks) looks, were $looks" && return 1; }
}

ticks()
{
	local median
	check "ticks: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	check "ticks: an online job comes" start_online --ticks 5 --every-ms 50
	check "ticks: the scheduler starts" start_scheduler
	check "ticks: one is online" be_online
	check "ticks: a request comes" requests_come 1
	check "ticks: nobody looks where no offline job is" no_looks_during requests_come 5
	check "ticks: every request is done right" stop_online
	check "ticks: jobs work" start_queues 10 --aql 10 --ticks 1000000
	check "ticks: an idle online job comes" start_online --ticks 1 --every-ms 1000000
	check "ticks: they are offline" be_offline $pids
	check "ticks: one is online" be_online
	check "ticks: all are looked at" looks_at
	check "ticks: looks are timed" windows
	median=$(sed -n "$((WINDOWS / 2))p" "$TMPDIR/windows")
	check "ticks: a look at 100 queues takes no more than $MOST instructions" \
		test "$median" -le $MOST
	echo "# a look at 100 queues of 10 processes, every ms: $median instructions, the middle" \
		"of $WINDOWS windows from $(head -n 1 "$TMPDIR/windows")" \
		"to $(tail -n 1 "$TMPDIR/windows") (counted by QEMU, interrupts included)"
	kill -KILL $online
	wait $online 2>/dev/null
	kill -KILL $pids "$mk"
	wait "$mk" 2>/dev/null
	check "ticks: they are forgotten" says_soon offline 0
	check "ticks: so is the other" says_soon online 0
	check "ticks: nobody looks then" no_looks_during sleep 0.3
	check "ticks: the scheduler ends" stop_scheduler
}
