# SPDX-License-Identifier: MIT
# For the daemon's parts and kernel-all, sourced: the daemon, online jobs, and what it says of them.
gpreemptd=$BUILD/cmd/gpreemptd/gpreemptd
RUN=/run/gpreempt
rights=() # a command that leaves it fewer
LEVEL=K2
[ "$KFDSIM_MODULE" != kfdsim-ext ] || LEVEL=K3
BOUND_MS=$((100 * ${SLOWNESS:-1})) # from a request's doorbell until nobody else starts anything
LONG=4 # requests longer than that, at least: in shorter ones nobody could be seen intruding

# start_daemon [LINE]...: more lines of its configuration, which come first. Sets $daemon when it
# answers.
start_daemon()
{
	{
		printf '%s\n' "$@"
		cat <<-END
			[log]
			level = debug
			[look]
			scan = ${SCAN:-20ms}
			[hold]
			attach_age = 10ms
			[rule batch]
			environment = GPREEMPT_TEST=offline
			class = offline
			[rule serving]
			uid = 0
			environment = GPREEMPT_TEST=online
			class = online
			latency_critical = yes
		END
	} >"$TMPDIR/gpreempt.conf"
	start_daemon_again
}

start_daemon_again()
{
	"${rights[@]}" "$gpreemptd" --device kfd --config "$TMPDIR/gpreempt.conf" --run-dir "$RUN" \
		>>"$TMPDIR/daemon.log" 2>&1 &
	daemon=$!
	until "$gpreempt" status >"$TMPDIR/status" 2>&1; do
		kill -0 $daemon || { tail -n 5 "$TMPDIR/daemon.log" && return 1; }
	done
	grep -q "level $LEVEL" "$TMPDIR/status" || { cat "$TMPDIR/status" && return 1; }
}

# It ends by itself and well.
stop_daemon()
{
	kill -TERM $daemon
	wait $daemon || { echo "exit status $?" && tail -n 5 "$TMPDIR/daemon.log" && return 1; }
}

offline()
{
	GPREEMPT_TEST=offline "$@"
}

# start_online OPTION...: mkonline, sets $online and $pasid when it is there.
start_online()
{
	local word
	rm -f "$TMPDIR"/online.out "$TMPDIR"/came
	mkfifo "$TMPDIR/online.out"
	GPREEMPT_TEST=online mkonline "$@" >"$TMPDIR/online.out" &
	online=$!
	exec {from_online}<"$TMPDIR/online.out"
	read -r -t 60 -u "$from_online" word _ _ pasid && [ "$word" = ready ]
}

# Its requests are then in $TMPDIR/requests.
online_ends_right()
{
	local status=0
	touch "$TMPDIR/came"
	timeout 120 cat "$TMPDIR/came" - <&"$from_online" >"$TMPDIR/requests"
	wait $online || status=$?
	exec {from_online}<&-
	tail -n 1 "$TMPDIR/requests"
	[ $status = 0 ]
}

stop_online()
{
	kill -TERM $online
	online_ends_right
}

clear_log()
{
	knob log 0
}

# The next N, kept for the judge.
requests_come()
{
	local i word rest
	for ((i = 0; i < $1; i++)); do
		read -r -t 30 -u "$from_online" word rest && [ "$word" = request ] || return
		echo "$word $rest" >>"$TMPDIR/came"
	done
}

# judge [GPU]: nobody else started anything in a request's way, though there was time to.
judge()
{
	packetjudge "${1:-0}" "$pasid" $BOUND_MS $LONG <"$TMPDIR/requests" >"$TMPDIR/verdict"
	local status=$?
	cat "$TMPDIR/verdict"
	return $status
}

# attached N: waits until the daemon is ready to hold so many.
attached()
{
	local i
	for i in {1..200}; do
		"$gpreempt" status --json >"$TMPDIR/status" 2>&1
		grep -q "\"attached\": *$1\>" "$TMPDIR/status" && return
	done
	cat "$TMPDIR/status"
	return 1
}

# status_says KEY: a number of the daemon's status.
status_says()
{
	"$gpreempt" status --json | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" | head -n 1
}
