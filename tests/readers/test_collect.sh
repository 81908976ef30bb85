#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: test_collect.sh SCRIPT TREES
#
# What scripts/collect-kfd.sh packs is the tree it was shown.
set -eu
script=$1 trees=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
echo 1..4

case_is()
{
	n=$((${n:-0} + 1))
	name=$1
	shift
	if "$@" >"$dir/said" 2>&1; then
		echo "ok $n - $name"
	else
		sed 's/^/# /' "$dir/said"
		echo "not ok $n - $name"
		failed=1
	fi
}

packs_the_tree()
{
	KFD_ROOT=$trees/mi308x "$script" "$dir/a.tar.gz" &&
		tar -C "$dir" -xzf "$dir/a.tar.gz" &&
		diff -r "$dir/kfd/sys" "$trees/mi308x/sys" &&
		cmp "$dir/kfd/proc/4242/status" "$trees/mi308x/proc/4242/status"
}

names_what_it_could_not_read()
{
	grep -q '/debug/kfd/mqds$' "$dir/kfd/missed"
}

overwrites_nothing()
{
	! KFD_ROOT=$trees/mi308x "$script" "$dir/a.tar.gz" && tar -tzf "$dir/a.tar.gz"
}

says_so_without_a_driver()
{
	! KFD_ROOT=$dir "$script" "$dir/b.tar.gz" 2>"$dir/why" && [ ! -e "$dir/b.tar.gz" ] &&
		grep -q 'no KFD driver' "$dir/why"
}

case_is "packs the tree it was shown" packs_the_tree
case_is "names what it could not read" names_what_it_could_not_read
case_is "overwrites nothing" overwrites_nothing
case_is "says so without a driver" says_so_without_a_driver
exit "${failed:-0}"
