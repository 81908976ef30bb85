# SPDX-License-Identifier: MIT
# What the scripts of tests/vm share. Sourced; sets $root, $cache and the functions below.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=$(realpath -m "${GPREEMPT_VM_CACHE:-$root/build/vm}")
kernel=${GPREEMPT_VM_KERNEL:-debian} # or debug: see tests/vm/debug
SKIPPED=77
tools=(qemu-system-x86_64 busybox cpio modinfo xz make gcc flock)

say()
{
	echo "vm: $*" >&2
}

# Nobody may mistake "could not look" for "all is well".
skip()
{
	say "SKIPPED: $*"
	say "SKIPPED: nothing was tested against the real driver"
	exit $SKIPPED
}

fail()
{
	say "$*"
	exit 1
}

# worse STATUS: than $worst, which becomes the worst of several. Any failure is worse than not to
# have looked.
worse()
{
	if [ "$worst" = 0 ] || [ "$worst" = $SKIPPED ]; then
		worst=$1
	elif [ "$1" != $SKIPPED ] && [ "$1" -gt "$worst" ]; then
		worst=$1
	fi
}

# Neither the kernel's build nor QEMU's options take any path.
case $cache in
*[[:space:],:]*) fail "no folder to build in: '$cache'; name another in GPREEMPT_VM_CACHE" ;;
esac
