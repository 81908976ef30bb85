# SPDX-License-Identifier: MIT
# For the hostile parts, sourced: jobs of three users, which a daemon holds for an online job, and
# one of a fourth, who means them harm (mkhostile), with a file system that he can have fall silent
# (silentfs). What happened is told by the software GPU, not by the daemon.
for part in e2e-lib daemon-lib; do
	. "$TREE/tests/vm/guest/$part.sh"
done
USERS=(2001 2002 2003)
ATTACKER=2004
STRANGER=2005
LONGEST_MS=3000      # no hold is longer; longer than a guard is patient
ALL_QUEUES=$((2 * ${#USERS[@]}))
STILL_MS=$((LONGEST_MS + RUNS_MS)) # nobody stands still for longer
WATCH_S=$((STILL_MS / 1000 + 1))
LONG_WATCH_S=$((WATCH_S + 12)) # what a guard gives a call of the driver, too
ANSWER_MS=$((1000 * ${SLOWNESS:-1})) # status, and the class of who is new
END_MS=$((10000 * ${SLOWNESS:-1}))   # --clean-up, release and the next start
folder=/run/silent over=/run/silent-over
programs=/run/hostile
n_kills=0 n_hits=0

# since_ms MICROSECONDS: the milliseconds since then.
since_ms()
{
	echo $(((${EPOCHREALTIME/[.,]/} - $1) / 1000))
}

# within MS LIMIT
within()
{
	echo "$1 ms of $2"
	[ "$1" != never ] && [ "$1" -le "$2" ]
}

# Lets the others have the processor: waits for nothing, for so many seconds.
pass()
{
	read -r -t "$1" -u "$nothing"
	return 0
}

# ends_within MS COMMAND...: sets $took and $status; one that does not end is left behind.
ends_within()
{
	local limit=$1 began=${EPOCHREALTIME/[.,]/} child
	shift
	"$@" &
	child=$!
	while kill -0 $child 2>/dev/null; do
		took=$(since_ms $began)
		[ "$took" -le "$limit" ] || { took=never status=none && return 1; }
		pass 0.02
	done
	took=$(since_ms $began) status=0
	wait $child || status=$?
}

# as_user UID COMMAND...
as_user()
{
	exec setpriv --reuid "$1" --regid "$1" --clear-groups "$programs/$2" "${@:3}"
}

# The devices are everybody's, as udev makes them for the group of users, and the programs too.
open_to_users()
{
	local program
	chmod 666 /dev/kfd /dev/dri/render*
	mkdir -p $programs
	for program in mkqueues mkhostile otherdebugger; do
		cp "$(command -v $program)" $programs || return
	done
}

# ---- the file system ----

# Sets $to_fs and $from_fs.
start_fs()
{
	mkdir -p $folder $over /run/silent-empty
	rm -f "$TMPDIR"/fs.{in,out}
	mkfifo "$TMPDIR"/fs.{in,out}
	silentfs $folder <>"$TMPDIR/fs.in" >"$TMPDIR/fs.out" &
	fs=$!
	exec {to_fs}<>"$TMPDIR/fs.in" {from_fs}<"$TMPDIR/fs.out"
	fs_says mounted &&
		mount -t overlay -o lowerdir=$folder:/run/silent-empty overlay $over
}

# fs_says LINE: sooner or later.
fs_says()
{
	local line
	while read -r -t 10 -u "$from_fs" line; do
		[ "$line" != "$1" ] || return 0
	done
	echo "the file system does not say '$1'"
	return 1
}

tell_fs()
{
	echo "$1" >&"$to_fs"
	fs_says "$1"
}

stop_fs()
{
	umount $over && umount $folder
	kill $fs
	wait $fs 2>/dev/null
	exec {to_fs}>&- {from_fs}<&-
}

# ---- jobs ----

# start_user_job NAME UID PROGRAM ARGUMENT...: sets $started when it says so; its other end of a
# conversation is ${to[NAME]} and ${from[NAME]}, its shell ${shell[NAME]}.
declare -A to from shell
start_user_job()
{
	local name=$1 word in out
	shift
	rm -f "$TMPDIR/$name".{in,out}
	mkfifo "$TMPDIR/$name".{in,out}
	as_user "$@" <>"$TMPDIR/$name.in" >"$TMPDIR/$name.out" &
	shell[$name]=$!
	exec {in}<>"$TMPDIR/$name.in" {out}<"$TMPDIR/$name.out"
	to[$name]=$in from[$name]=$out
	read -r -t 60 -u "$out" word started && [[ "$word" == ready || "$word" == attached ]]
}

# user_job_says NAME WORD
user_job_says()
{
	local line
	read -r -t 30 -u "${from[$1]}" line
	[ "$line" = "$2" ] || { echo "$1 says '$line'" && return 1; }
}

# user_job_ended_right NAME: all packets ran once, in order.
user_job_ended_right()
{
	local said in=${to[$1]} out=${from[$1]}
	said=$(timeout 60 cat <&"$out")
	exec {in}>&- {out}<&-
	echo "$said"
	wait "${shell[$1]}" && [[ "$said" == *'done '*' wrong 0' ]]
}

# Sets $victims, as queuewatch wants them.
start_victims()
{
	local uid
	victims=''
	for uid in "${USERS[@]}"; do
		GPREEMPT_TEST=offline start_user_job "job$uid" "$uid" mkqueues --aql 2 \
			--ticks $TICKS --stall-ms 60000 || return
		victims=$victims${victims:+,}$started
	done
}

stop_victims()
{
	local uid wrong=0
	for uid in "${USERS[@]}"; do
		kill -TERM "${shell["job$uid"]}"
	done
	for uid in "${USERS[@]}"; do
		user_job_ended_right "job$uid" || wrong=1
	done
	return $wrong
}

# ---- the daemon ----

write_config()
{
	cat >"$TMPDIR/gpreempt.conf" <<-END
		[look]
		scan = 20ms
		[hold]
		attach_age = 10ms
		longest = ${LONGEST_MS}ms
		[rule batch]
		environment = GPREEMPT_TEST=offline
		class = offline
		[rule serving]
		uid = 0
		environment = GPREEMPT_TEST=online
		class = online
		latency_critical = yes
	END
}

# A daemon that answers; sets $daemon.
begin_daemon()
{
	local began=${EPOCHREALTIME/[.,]/}
	"$gpreemptd" --device kfd --config "$TMPDIR/gpreempt.conf" --run-dir "$RUN" \
		>>"$TMPDIR/daemon.log" 2>&1 &
	daemon=$!
	until timeout 2 "$gpreempt" status >"$TMPDIR/status" 2>&1 &&
		grep -q "pid $daemon," "$TMPDIR/status"; do
		if ! kill -0 $daemon 2>/dev/null || [ "$(since_ms $began)" -gt $END_MS ]; then
			cat "$TMPDIR/status"
			tail -n 5 "$TMPDIR/daemon.log"
			return 1
		fi
	done
}

# attached_soon N: at least so many can be held.
attached_soon()
{
	local began=${EPOCHREALTIME/[.,]/}
	until [ "$(timeout 2 "$gpreempt" status --json | grep -o '"attached":[0-9]*' |
		cut -d : -f 2)" -ge "$1" ] 2>/dev/null; do
		if ! kill -0 $daemon 2>/dev/null || [ "$(since_ms $began)" -gt $END_MS ]; then
			timeout 2 "$gpreempt" status
			return 1
		fi
	done
}

all_off()
{
	queuewatch "$victims" off "${1:-$END_MS}"
}

# It has them attached, and holds them.
daemon_works()
{
	attached_soon ${#USERS[@]} && all_off
}

# ---- the attacker ----

# start_hostile ATTACK CLASS [FOLDER]: sets $hostile.
start_hostile()
{
	GPREEMPT_TEST=$2 start_user_job hostile $ATTACKER mkhostile "$1" "${3:-$folder}"
	local status=$?
	hostile=$started
	return $status
}

tell_hostile()
{
	echo "$1" >&"${to[hostile]}"
	user_job_says hostile "$1"
}

# Some do their worst before they have a queue, some before the file system is silent, most after.
attack_begins()
{
	case $1 in
	exec) tell_fs "silent read" && tell_hostile go && fs_says waits && tell_hostile "$3" ;;
	descriptor) tell_hostile "$3" && tell_hostile go && tell_fs "silent attributes" ;;
	*)
		tell_hostile "$3" || return
		[ "$2" = none ] || attached_soon $((${#USERS[@]} + 1)) || return
		tell_fs "silent read" && all_off && tell_hostile go && fs_says waits
		;;
	esac
}

attack_ends()
{
	tell_fs speak && echo stop >&"${to[hostile]}" && user_job_ended_right hostile
}

# ---- what is asked during an attack ----

# Asks for the status again and again until $TMPDIR/enough is there: lines of milliseconds.
keep_asking()
{
	local began
	rm -f "$TMPDIR/enough"
	while [ ! -e "$TMPDIR/enough" ]; do
		began=${EPOCHREALTIME/[.,]/}
		if timeout 10 "$gpreempt" status >/dev/null 2>&1; then
			since_ms $began
		else
			echo never
		fi
		pass 0.1
	done >"$TMPDIR/asked"
}

# longest_answer: of those, or "never".
longest_answer()
{
	awk '$1 == "never" { never = 1 } $1 > most { most = $1 + 0 }
		END { print never || !NR ? "never" : most + 0 }' "$TMPDIR/asked"
}

# The longest that any queue of the victims got nothing done, while it is looked at.
standstill()
{
	knob waits 1
	pass $WATCH_S
	knob waits 1
	awk -v pids=",$victims," '
		index(pids, "," $2 ",") && $6 > most { most = $6 }
		index(pids, "," $2 ",") && $8 > most { most = $8 }
		END { print int(most / 1000000) }' /sys/kernel/debug/kfdsim/0/waits
}

# newcomer NAME UID: a job comes; sets $took to how long it had work and no class.
newcomer()
{
	local began
	GPREEMPT_TEST=offline start_user_job "$1" "$2" mkqueues --ticks $TICKS --stall-ms 60000 ||
		return
	began=${EPOCHREALTIME/[.,]/}
	until timeout 2 "$gpreempt" status --json 2>/dev/null |
		grep -q "\"pid\":$started,[^}]*\"class\":\"offline\""; do
		took=$(since_ms $began)
		[ "$took" -le $((3 * ANSWER_MS)) ] || { took=never && return 1; }
	done
	took=$(since_ms $began)
	[ "$took" -le $ANSWER_MS ]
}

# Kills the daemon while it holds all of them; sets $took to how long it was until all ran again.
strike()
{
	n_kills=$((n_kills + 1))
	! all_off $STILL_MS >/dev/null 2>&1 || n_hits=$((n_hits + 1))
	took=$(queuewatch "$victims" running $ALL_QUEUES $RUNS_MS \
		bash -c "kill -KILL $daemon; true") || took=never
	[ "$took" != never ]
}

ends_well_within()
{
	ends_within "$@" && echo "exit status $status after $took ms" && [ "$status" = 0 ]
}

nobody_is_left()
{
	local began=${EPOCHREALTIME/[.,]/}
	while pgrep '^gpreempt' >/dev/null; do
		[ "$(since_ms $began)" -le $END_MS ] || { pgrep -l '^gpreempt' && return 1; }
	done
}

# ---- the whole ----

# jobs_begin OPTION...: of the online job.
jobs_begin()
{
	mkfifo "$TMPDIR/nothing"
	exec {nothing}<>"$TMPDIR/nothing"
	check "loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	check "users may use it" open_to_users
	write_config
	check "three users' jobs work" start_victims
	check "an online job comes" start_online "$@"
	cat <&"$from_online" >"$TMPDIR/requests" & # it must not wait for us
}

jobs_end()
{
	kill -KILL $online
	wait $online 2>/dev/null
	check "every packet of the three users' ran once, in order" stop_victims
	check "nothing the hardware would not take" nothing_bad
}
