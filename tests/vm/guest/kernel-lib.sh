# SPDX-License-Identifier: MIT
# For kernel-all, sourced: the scheduler in the driver, and what the driver says of it.
BOUND_MS=$((20 * ${SLOWNESS:-1})) # from a request's doorbell until nobody else starts anything
LOOK_US=1000

# start_scheduler [POLICY]: on every GPU.
start_scheduler()
{
	extsched on "${1:-priority}" $LOOK_US
}

# What it held runs then, and it holds nothing any more.
stop_scheduler()
{
	extsched off || return
	[ "$(extsched says held)" = 0 ] || { echo "$(extsched says held) are held" && return 1; }
}

# be_offline PID...: and seen as such.
be_offline()
{
	extsched class offline "$@" && says_soon offline $#
}

be_online()
{
	extsched class critical "$online" && says_soon online 1
}

# says_soon KEY VALUE [GPU]: the thread hears of it when it looks.
says_soon()
{
	local i value
	for i in {1..500}; do
		value=$(extsched says "$1" "${3:-0}") || return
		[ "$value" != "$2" ] || return 0
	done
	echo "$1 is $value, not $2"
	return 1
}

# Nobody in user space does it.
no_daemon()
{
	! pgrep gpreemptd
}

# told KEY [GPU]: a number; fails and prints nothing where it is off, so compare with -eq.
told()
{
	extsched says "$1" "${2:-0}"
}

# A guest's clock counts its instructions, but while it idles it is the host's, who may have others
# to think of. So it does not idle; whoever else wants to run does.
keep_busy()
{
	chrt --idle 0 bash -c 'while :; do :; done' &
	busy=$!
}

stop_busy()
{
	kill -KILL $busy
	wait $busy 2>/dev/null
}
