# SPDX-License-Identifier: MIT
# For the hostile parts, sourced: one attack, and all that nobody else may notice of it.
declare -A figures

# figure NAME: $took, for the line at the end.
figure()
{
	figures[$1]=$took
}

# Nobody else's jobs stand still, nobody waits for an answer or for a class.
others_notice_nothing()
{
	local name=$1 asker
	keep_asking &
	asker=$!
	check "$name: somebody else's new job has its class in time" newcomer stranger $STRANGER
	figure stranger
	check "$name: another job of the attacker's has its class in time" newcomer sister $ATTACKER
	figure sister
	took=$(standstill)
	figure still
	check "$name: the others never stand still for longer than they may" \
		within "$took" $STILL_MS
	touch "$TMPDIR/enough"
	wait $asker
	took=$(longest_answer)
	figure status
	check "$name: status always answers in time" within "$took" $ANSWER_MS
}

# Whatever became of the daemon, the next does its work. Where the driver's list of queues does not
# answer (OUT_OF_SIGHT=yes) it cannot see who has work, and says so.
killed_and_replaced()
{
	local name=$1
	check "$name: the daemon is killed, the others run again" strike
	figure killed
	check "$name: --clean-up ends well" \
		ends_well_within $END_MS "$gpreemptd" --clean-up --run-dir $RUN
	figure clean_up
	check "$name: the next daemon answers" begin_daemon
	if [ "${OUT_OF_SIGHT:-}" ]; then
		check "$name: and says that work goes unseen" says_blind
	else
		check "$name: and holds the others" daemon_works
	fi
}

says_blind()
{
	local began=${EPOCHREALTIME/[.,]/}
	until "$gpreempt" status | grep -q '^blind: .*a process keeps it'; do
		[ "$(since_ms $began)" -le $END_MS ] || { "$gpreempt" status && return 1; }
	done
}

killed_and_released()
{
	local name=$1
	check "$name: that is killed, the others run again" strike
	figure killed_again
	check "$name: release --all ends" ends_within $END_MS "$gpreempt" release --all
	figure release
}

tell_figures()
{
	echo "# $1: stood still ${figures[still]} ms, status after ${figures[status]}, class" \
		"after ${figures[stranger]} and ${figures[sister]}; killed: ran after" \
		"${figures[killed]} and ${figures[killed_again]}, clean-up ${figures[clean_up]}," \
		"release ${figures[release]}"
}

newcomers_end()
{
	local job wrong=0
	for job in stranger sister; do
		[ -n "${shell[$job]:-}" ] || continue
		kill -TERM "${shell[$job]}"
		user_job_ended_right $job || wrong=1
		unset "shell[$job]"
	done
	return $wrong
}

# attack NAME ATTACK CLASS DUTY [FOLDER]: by a job with that class, which is to "work" or be "idle".
# Where it is idle the daemon is killed at once, when it asks the driver nothing.
attack()
{
	local name=$1 what=$2 class=$3 duty=$4
	figures=()
	check "$name: a daemon answers" begin_daemon
	check "$name: and holds the others" daemon_works
	check "$name: the attacker comes" start_hostile "$what" "$class" "${@:5}"
	check "$name: the attack begins" attack_begins "$what" "$class" "$duty"
	if [ "$duty" = idle ]; then
		killed_and_replaced "$name"
		others_notice_nothing "$name"
	else
		others_notice_nothing "$name"
		killed_and_replaced "$name"
	fi
	killed_and_released "$name"
	check "$name: the attack ends, the attacker's packets ran once, in order" attack_ends
	check "$name: those of the new jobs, too" newcomers_end
	check "$name: nobody is left" nobody_is_left
	tell_figures "$name"
}

# attacks_begin OPTION...: of the online job.
attacks_begin()
{
	jobs_begin "$@"
	check "a file system" start_fs
}

attacks_end()
{
	jobs_end
	check "the file system ends" stop_fs
	echo "# daemons killed $n_kills, while they held all three $n_hits"
}
