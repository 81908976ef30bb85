# SPDX-License-Identifier: MIT
# For hostile-looks, sourced: "gpreempt hold" of several jobs on level K1, one of which is the
# attacker's, with descriptors of a file system that does not answer.

# It holds all of them.
pause_begins()
{
	tell_hostile work && tell_hostile go && tell_fs "silent attributes" || return
	"$gpreempt" hold --level K1 ${victims//,/ } "$hostile" >"$TMPDIR/pause" 2>&1 &
	pause=$!
	all_off || { cat "$TMPDIR/pause" && return 1; }
}

pauses()
{
	local name="held on level K1"
	check "$name: the attacker comes" start_hostile descriptor none
	check "$name: nobody waits for it" pause_begins
	took=$(queuewatch "$victims" running $ALL_QUEUES $RUNS_MS \
		bash -c "kill -KILL $pause; true") || took=never
	check "$name: the holder is killed, the others run" test "$took" != never
	echo "# $name: killed: ran after $took ms"
	check "$name: release --all ends" ends_within $END_MS "$gpreempt" release --all
	check "$name: the attack ends, the attacker's packets ran once, in order" attack_ends
	check "$name: nobody is left" nobody_is_left
}
