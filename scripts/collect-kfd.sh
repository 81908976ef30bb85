#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: scripts/collect-kfd.sh [FILE.tar.gz]
#
# Packs what KFD shows of this machine into a tar file for a bug report: the topology, the
# processes that use it, module parameters and, where readable (root), the driver's debugfs
# files. Only reads; opens no device and attaches to nothing. The tree inside can be given to
# the readers as their root.
#
# What it tells about you: kernel version, GPU models and their unique ids (PCI and serial),
# pids and commands of GPU processes, and from debugfs addresses in their memory. Look at it
# before you send it.
set -eu
umask 077

die()
{
	echo "collect-kfd.sh: $*" >&2
	exit 1
}

case ${1:-} in
-h | --help)
	sed -n '4,/^set /{ /^set /d; s/^# \{0,1\}//; p; }' "$0"
	exit 0
	;;
-*) die "unknown option '$1'; try --help" ;;
esac
[ $# -le 1 ] || die "one file name at most; try --help"

root=${KFD_ROOT:-}
sysfs=$root/sys/class/kfd/kfd
params=$root/sys/module/amdgpu/parameters
debugfs=$root/sys/kernel/debug/kfd
out=${1:-kfd-$(uname -n)-$(date +%Y%m%d-%H%M%S).tar.gz}
[ -d "$sysfs/topology" ] || die "no KFD driver here ($sysfs/topology is missing)"
[ ! -e "$out" ] || die "$out exists already"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
tree=$work/kfd
missed=$work/missed

# Files of sysfs have no size and may vanish or refuse at any moment: each is read by itself.
copy()
{
	from=$1 to=$tree/${1#"$root"/}
	mkdir -p "$(dirname "$to")"
	if ! timeout 10 cat "$from" >"$to" 2>/dev/null; then
		rm -f "$to"
		echo "$from" >>"$missed"
	fi
}

copy_below()
{
	find "$1/" -type f -readable ! -size +1024k 2>/dev/null | sort | while read -r file; do
		copy "$file"
	done
}

mkdir -p "$tree"
copy_below "$sysfs/topology"
[ ! -d "$sysfs/proc" ] || copy_below "$sysfs/proc"
[ ! -d "$params" ] || copy_below "$params"
for name in mqds hqds rls; do
	if [ -r "$debugfs/$name" ]; then
		copy "$debugfs/$name"
	else
		echo "$debugfs/$name" >>"$missed"
	fi
done
# Directories without files say something too: a process without queues.
[ ! -d "$sysfs/proc" ] || find "$sysfs/proc/" -type d 2>/dev/null | while read -r dir; do
	mkdir -p "$tree/${dir#"$root"/}"
done
for dir in "$sysfs"/proc/*; do
	pid=${dir##*/}
	for name in stat status; do
		[ ! -r "$root/proc/$pid/$name" ] || copy "$root/proc/$pid/$name"
	done
done

{
	uname -srvm
	cat "$root/sys/module/amdgpu/version" 2>/dev/null || echo "amdgpu of the kernel itself"
} >"$tree/about"
[ ! -e "$missed" ] || sort -u "$missed" >"$tree/missed"

tar -C "$work" -czf "$out" kfd
files=$(find "$tree" -type f | wc -l)
echo "$out: $files files"
if [ -e "$tree/missed" ]; then
	echo "$(wc -l <"$tree/missed") could not be read (listed inside); root can read debugfs"
fi
