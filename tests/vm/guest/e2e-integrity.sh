# SPDX-License-Identifier: MIT
# For e2e-all, sourced: many suspends of random queues at random moments, and not a packet is lost.
SUSPENDS=${SUSPENDS:-1000}
PACKETS=${PACKETS:-100000}

suspend_randomly()
{
	LD_LIBRARY_PATH=$BUILD/lib "$BUILD/tests/vm/randsuspend" $pids "$SUSPENDS" >"$TMPDIR/tally"
	local status=$?
	cat "$TMPDIR/tally"
	return $status
}

tally()
{
	sed -n "s/.*\<$1 \([0-9]*\).*/\1/p" "$TMPDIR/tally"
}

integrity()
{
	local name="integrity"
	check "$name: loads" kfdsim-load gc=0x090403 num_xcc=8
	check "$name: work" start_queues 1 --aql 4 --ticks 2 --waves 8 --depth 64
	check "$name: random suspends" suspend_randomly
	check "$name: as many as wanted" test "$(tally suspends)" = "$SUSPENDS"
	check "$name: at least half caught a dispatch" test "$(tally caught)" -ge $((SUSPENDS / 2))
	check "$name: the hardware saved state as often" \
		test "$(counter saves)" -ge "$(tally caught)"
	until [ "$(counter packets)" -ge "$PACKETS" ]; do
		read -r -t 0.2 -u "$out" _ && break # it may only speak when something is wrong
	done
	check "$name: every packet ran once, in order" stop_queues
	check "$name: as many as wanted" test "$(counter packets)" -ge "$PACKETS"
	check "$name: nothing the hardware would not take" nothing_bad
	echo "# gfx942, 8 XCC: packets $(counter packets), $(cat "$TMPDIR/tally")," \
		"saves $(counter saves), saved_waves $(counter saved_waves)"
}
