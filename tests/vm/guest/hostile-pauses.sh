# SPDX-License-Identifier: MIT
# For hostile-looks, sourced: "gpreempt hold" of several jobs on level K1, one of which is the
# attacker's, with a descriptor that nobody can ask about.

# Until it waits for the file system.
pause_begins()
{
	tell_hostile work && tell_hostile go && tell_fs "silent attributes" || return
	"$gpreempt" hold --level K1 ${victims//,/ } "$hostile" >"$TMPDIR/pause" 2>&1 &
	pause=$!
	fs_says waits || { cat "$TMPDIR/pause" && return 1; }
}

# Nobody traces them within the time they are to run again in.
let_go()
{
	local began=${EPOCHREALTIME/[.,]/} pid
	kill -KILL $pause
	for pid in ${victims//,/ }; do
		until untraced "$pid"; do
			took=$(since_ms $began)
			[ "$took" -le $RUNS_MS ] || { took=never && return 1; }
			pass 0.02
		done
	done
	took=$(since_ms $began)
}

pauses()
{
	local name="held on level K1" ms let_go
	check "$name: the attacker comes" start_hostile descriptor none
	check "$name: the hold waits for it" pause_begins
	ms=$(queuewatch "$victims" running $ALL_QUEUES $RUNS_MS) || ms=never
	check "$name: the others run" test "$ms" != never
	check "$name: the holder is killed, nobody holds the others" let_go
	let_go=$took
	check "$name: release --all ends" ends_within $END_MS "$gpreempt" release --all
	check "$name: the attack ends, the attacker's packets ran once, in order" attack_ends
	check "$name: nobody is left" nobody_is_left
	echo "# $name: let go after $let_go ms, release $took"
}
