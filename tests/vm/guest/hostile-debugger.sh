# SPDX-License-Identifier: MIT
# For hostile-locks, sourced: the attacker debugs a process of its own that keeps its lock, and then
# the debugger ends. Its end waits for that lock, and the end of every other process that uses the
# driver waits for it (Linux 6.12 kfd_process.c, kfd_processes_srcu): a holder that dies lets go of
# nobody.

# tracer_of PID: the process, not the thread.
tracer_of()
{
	local tid
	tid=$(awk '/^TracerPid/ { print $2 }' "/proc/$1/status")
	awk '/^Tgid/ { print $2 }' "/proc/$tid/status"
}

debugger_waits()
{
	local began=${EPOCHREALTIME/[.,]/}
	kill -TERM "${shell[debugger]}"
	until grep -q kfd_process_notifier_release "/proc/${shell[debugger]}/stack"; do
		[ "$(since_ms $began)" -le $END_MS ] || return
	done
}

debugger_begins()
{
	tell_hostile work &&
		start_user_job debugger $ATTACKER otherdebugger "$hostile" &&
		tell_fs "silent read" && tell_hostile go && fs_says waits && debugger_waits
}

# Kills who holds the first of the jobs.
strike_holder()
{
	local first=${victims%%,*}
	n_kills=$((n_kills + 1))
	! all_off $STILL_MS >/dev/null 2>&1 || n_hits=$((n_hits + 1))
	took=$(queuewatch "$first" running 2 $RUNS_MS kill -KILL "$(tracer_of "$first")") ||
		took=never
	[ "$took" != never ]
}

debugger()
{
	local name="a debugger that waits" holder
	figures=()
	check "$name: a daemon answers" begin_daemon
	check "$name: and holds the others" daemon_works
	check "$name: the attacker comes" start_hostile wave none
	check "$name: the attack begins" debugger_begins
	check "$name: a holder is killed, its job runs again" strike_holder
	holder=$took
	killed_and_replaced "$name"
	others_notice_nothing "$name"
	killed_and_released "$name"
	check "$name: the attack ends, the attacker's packets ran once, in order" attack_ends
	wait "${shell[debugger]}"
	check "$name: those of the new jobs, too" newcomers_end
	check "$name: nobody is left" nobody_is_left
	tell_figures "$name"
	echo "# $name: holder killed: ran after $holder ms"
}
