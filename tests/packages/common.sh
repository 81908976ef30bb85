# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the tests of packages share; sourced in the tree's first folder.
. tests/vm/guest/tap.sh
. scripts/release.sh

TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf --one-file-system "$TMPDIR"' EXIT

# skip NAME REASON
skip()
{
	n_cases=$((n_cases + 1))
	echo "ok $n_cases - $1 # SKIP $2"
	echo "packages: SKIPPED: $1: $2" >&2
}

scripts/deps build packages || {
	echo 'packages: SKIPPED: no tools to make packages with: nothing was tested' >&2
	exit 77
}
