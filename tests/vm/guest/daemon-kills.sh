# SPDX-License-Identifier: MIT
# For daemon-all, sourced: whatever happens to the daemon, the jobs it held run again.
KILLS=${KILLS:-20} STOPS=${STOPS:-5}
kill_table=$TMPDIR/kills

# One daemon lives until SIGNAL comes, at a moment of the kind; then all queues run in time.
strike()
{
	local signal=$1 when=$2 sight ms
	start_daemon_again && attached 1 || return
	sight=$(killmoment $daemon $signal $RUN/journal $when 1500) || return
	ms=$(queuewatch $pids running $QUEUES $RUNS_MS) || ms=never
	kill -KILL $daemon 2>/dev/null
	wait $daemon 2>/dev/null
	echo "$signal $sight ms $ms" | tee -a "$kill_table"
	[ $ms != never ]
}

# Of ten: six while something is held, two while somebody is inside the driver, two at any time.
moment()
{
	case $(($1 % 10)) in
	[0-5]) echo held ;;
	[67]) echo ioctl ;;
	*) echo random ;;
	esac
}

strike_often()
{
	local signal=$1 n=$2 i
	for ((i = 0; i < n; i++)); do
		strike "$signal" "$(moment $i)" || { echo "round $i" && return 1; }
	done
}

# end_hold NAME COMMAND...: done to a daemon that holds the job; COMMAND may use $daemon and $guard.
end_hold()
{
	local name=$1 ms
	shift
	start_daemon_again && attached 1 && off $pids || return
	read -r guard < <(cat /proc/$daemon/task/*/children)
	ms=$(queuewatch $pids running $QUEUES $RUNS_MS bash -c "$(eval "echo \"$*\"")") || ms=never
	kill -KILL $daemon 2>/dev/null
	wait $daemon 2>/dev/null
	echo "# $name: all run again after $ms ms"
	[ $ms != never ]
}

# Everything but what is struck at random.
other_ends()
{
	check "the daemon aborts" end_hold "SIGABRT" 'kill -ABRT $daemon'
	check "the daemon crashes" end_hold "SIGSEGV" 'kill -SEGV $daemon'
	check "its guard is killed" end_hold "guard killed" 'kill -KILL $guard'
	check "both are killed at once" end_hold "both killed" 'kill -KILL $daemon $guard'
	check "the guard is killed, the daemon stopped" \
		end_hold "guard killed, daemon stopped" 'stop $daemon; kill -KILL $guard'
	check "it is asked to end" end_hold "SIGTERM" 'kill -TERM $daemon'
	check "the time of day jumps by a day" end_hold "clock jump and SIGKILL" \
		'date -s @$((EPOCHSECONDS + 86400)) >/dev/null; kill -KILL $daemon'
}

hits()
{
	awk -v signal="$1" -v c="$2" '$1 == signal && $c > 0 { n++ } END { print n + 0 }' \
		"$kill_table"
}

kills()
{
	local name="the daemon is struck"
	: >"$kill_table"
	check "$name: loads" kfdsim-load gc=0x090403 num_xcc=8 $SLOW
	knob preempt_us 10000
	check "$name: an offline job works" \
		offline start_queues 1 --aql $QUEUES --ticks $TICKS
	check "$name: a daemon writes its configuration" start_daemon
	check "$name: and ends" stop_daemon
	check "$name: an online job comes" start_online --ticks 100 --every-ms 100
	cat <&"$from_online" >"$TMPDIR/requests" & # it must not wait for us
	check "$name: SIGKILL, $KILLS times" strike_often 9 "$KILLS"
	check "$name: half of them in a hold" test "$(hits 9 3)" -ge $((KILLS / 2))
	check "$name: some in the driver" test "$(hits 9 5)" -ge $((KILLS / 20))
	check "$name: SIGSTOP, $STOPS times" strike_often 19 "$STOPS"
	other_ends
	check "$name: the next cleans up and ends" "$gpreemptd" --clean-up --run-dir $RUN
	kill -KILL $online
	wait $online 2>/dev/null
	exec {from_online}<&-
	check "$name: every packet ran once, in order" stop_queues
	check "$name: nothing the hardware would not take" nothing_bad
	echo "# SIGKILL $(grep -c '^9 ' "$kill_table"), in a hold $(hits 9 3), in the driver" \
		"$(hits 9 5); SIGSTOP $(grep -c '^19 ' "$kill_table"), in a hold $(hits 19 3);" \
		"longest until all ran again $(awk '$7 > m { m = $7 } END { print m + 0 }' \
			"$kill_table") ms"
}
