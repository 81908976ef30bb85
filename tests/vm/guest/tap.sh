# SPDX-License-Identifier: MIT
# For guest scripts, sourced: cases as TAP, and processes with queues.
n_cases=0 n_failed=0

# check NAME COMMAND...: what the command says is shown when it fails.
check()
{
	local name=$1
	shift
	n_cases=$((n_cases + 1))
	if "$@" >"$TMPDIR/said" 2>&1; then
		echo "ok $n_cases - $name"
		return
	fi
	n_failed=$((n_failed + 1))
	echo "not ok $n_cases - $name"
	printf '# %s\n' "$*"
	sed 's/^/# /' "$TMPDIR/said"
}

finish()
{
	echo "1..$n_cases"
	exit $((n_failed != 0))
}

# load_chip PARAMETER...: where the kernel watches itself, with a GPU that leaves the processes of a
# guest some of its time; a holder that gets none is killed.
load_chip()
{
	[ "${SLOWNESS:-1}" = 1 ] || set -- "$@" tick_us=1000
	kfdsim-load "$@"
}

# start_queues PROCESSES OPTION...: sets $pids when all have work.
start_queues()
{
	local n=$1 word pid
	shift
	coproc mkqueues { exec mkqueues --processes "$n" "$@"; }
	mk=$mkqueues_PID pids=''
	exec {out}<&"${mkqueues[0]}" # the shell's own goes with the process
	while [ "$(wc -w <<<"$pids")" -lt "$n" ]; do
		read -r -t 60 -u "$out" word pid || return
		[ "$word" != ready ] || pids="$pids $pid"
	done
}

# What processes that were told to end, or come to their end, have to say. Fails if work was lost.
wait_queues()
{
	cat <&"$out"
	wait "$mk"
}

kill_queues()
{
	{
		kill -KILL "$mk"
		wait "$mk"
	} 2>/dev/null
}

stop_queues()
{
	kill -TERM "$mk"
	wait_queues
}

# counter NAME [GPU]: without a process of its own, which takes its time here.
counter()
{
	local name value
	while read -r name value; do
		[ "$name" != "$1" ] || echo "$value"
	done <"/sys/kernel/debug/kfdsim/${2:-0}/counters"
}

knob()
{
	echo "$2" >"/sys/kernel/debug/kfdsim/${3:-0}/$1"
}

# Nothing that any GPU would not take, and nothing it lost.
nothing_bad()
{
	local gpu c
	for gpu in /sys/kernel/debug/kfdsim/[0-9]*; do
		gpu=${gpu##*/}
		for c in bad damaged resets queue_resets; do
			[ "$(counter $c "$gpu")" = 0 ] ||
				{ echo "GPU $gpu: $c $(counter $c "$gpu")" && return 1; }
		done
	done
}
