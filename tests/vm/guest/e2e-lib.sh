# SPDX-License-Identifier: MIT
# For the end-to-end parts, sourced: jobs, holds of them, and what the software GPU says of both.
. "$TREE/tests/vm/guest/tap.sh"
gpreempt=$BUILD/cmd/gpreempt/gpreempt
QUEUES=4             # of a job
SLOW=tick_us=1000    # for the module: the guest has time for the rest
TICKS=20             # of a dispatch
RUNS_MS=$((2000 * ${SLOWNESS:-1})) # all queues run again within
FOREVER_MS=30000     # nothing is expected to take so long
table=$TMPDIR/table

now_ms()
{
	echo $((${EPOCHREALTIME/[.,]/} / 1000))
}

# start_job [COMMAND...]: mkjob, sets $job when its queues have work.
start_job()
{
	local word
	rm -f "$TMPDIR"/job.{in,out}
	mkfifo "$TMPDIR"/job.{in,out}
	[ $# -gt 0 ] || set -- mkjob $QUEUES $TICKS
	"$@" <>"$TMPDIR/job.in" >"$TMPDIR/job.out" &
	job_shell=$!
	exec {to_job}<>"$TMPDIR/job.in" {from_job}<"$TMPDIR/job.out"
	read -r -t 60 -u "$from_job" word job && [ "$word" = ready ]
}

# tell_job WORD: without waiting until it is done.
tell_job()
{
	echo "$1" >&"$to_job"
}

# job_says WORD: next.
job_says()
{
	local line
	read -r -t 30 -u "$from_job" line
	[ "$line" = "$1" ] || { echo "it says '$line'" && false; }
}

# All packets ran once, in order.
job_ends_right()
{
	local said status=0
	said=$(timeout 60 cat <&"$from_job") || status=$?
	wait "$job_shell" || status=$?
	exec {to_job}>&- {from_job}<&-
	echo "$said"
	[ $status = 0 ] && [[ "$said" == *'done '*' wrong 0' ]]
}

stop_job()
{
	tell_job stop
	job_ends_right
}

forget_job()
{
	exec {to_job}>&- {from_job}<&-
	wait "$job_shell" 2>/dev/null
}

running()
{
	queuewatch "$1" running "${2:-$QUEUES}" $FOREVER_MS
}

off()
{
	queuewatch "$1" off $FOREVER_MS
}

# start_hold OPTION...: sets $holder and $guard when the job is off the GPU. A shell without job
# control lets what it starts ignore Ctrl-C, and the tool respects that.
start_hold()
{
	local line
	rm -f "$TMPDIR/hold.out"
	mkfifo "$TMPDIR/hold.out"
	env --default-signal=INT,QUIT "$gpreempt" hold "$@" >"$TMPDIR/hold.out" 2>&1 &
	holder=$!
	exec {from_hold}<"$TMPDIR/hold.out"
	read -r -t 60 -u "$from_hold" line
	read -r guard < <(cat /proc/$holder/task/*/children)
	[[ "$line" == holding* ]] || { echo "$line" && false; }
}

# Sets $hold_status and $hold_said. Fails if the holder has to be made to end.
wait_hold()
{
	local stays=''
	hold_status=0
	hold_said=$(timeout 20 cat <&"$from_hold") || stays=yes
	exec {from_hold}<&-
	[ ! $stays ] || kill -KILL $holder
	wait $holder 2>/dev/null || hold_status=$?
	echo "$hold_said"
	[ ! $stays ]
}

hold_ended_with()
{
	[ "$hold_status" = "$1" ] || { echo "exit status $hold_status: $hold_said" && false; }
}

# stop PID: until all its threads have, it could still do something about what comes next. Starts
# nothing: its guard does not wait long.
stop()
{
	kill -STOP "$1" || return
	until all_stopped "$1"; do
		:
	done
}

all_stopped()
{
	local stat line
	for stat in /proc/"$1"/task/*/stat; do
		read -r line <"$stat" || return 0 # killed
		[[ "$line" == *') '[TZ]' '* ]] || return
	done
}
export -f stop all_stopped

untraced()
{
	local word value
	while read -r word value; do
		[ "$word" != TracerPid: ] || [ "$value" = 0 ] || { echo "$value does" && return 1; }
	done <"/proc/$1/status"
}

exits_with()
{
	local want=$1 got=0
	shift
	"$@" || got=$?
	[ $got = "$want" ] || { echo "exit status $got, expected $want" && false; }
}
