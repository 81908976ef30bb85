# SPDX-License-Identifier: MIT
# Sources for kfdsim in a folder $work where they are built. Sourced, after common.sh; $amd is
# drivers/gpu/drm/amd of $version.

# A file that stays the same keeps its time: make does no work twice.
copy()
{
	cmp -s "$1" "$2" || cp "$1" "$2"
}

# copy_sources AMDKFD: all but kfd_chardev.c.
copy_sources()
{
	local f
	mkdir -p "$work"/{amdkfd/abi,abi,kernel/kfdsim}
	for f in "$work"/kernel/kfdsim/*.[ch]; do
		[ -e "$root/kernel/kfdsim/${f##*/}" ] || rm -f "$f" "${f%.c}.o"
	done
	for f in "$1"/*.[ch] "$1"/core/*/*.[ch] "$1"/Makefile; do
		[ -e "$f" ] && [ "${f##*/}" != kfd_chardev.c ] || continue
		mkdir -p "$work/amdkfd/$(dirname "${f#"$1/"}")"
		copy "$f" "$work/amdkfd/${f#"$1/"}"
	done
	for f in "$root"/abi/*.h; do
		copy "$f" "$work/abi/${f##*/}"
		copy "$f" "$work/amdkfd/abi/${f##*/}"
	done
	for f in "$root"/kernel/kfdsim/*.[ch]; do
		copy "$f" "$work/kernel/kfdsim/${f##*/}"
	done
	copy "$root/kernel/kfdsim/Kbuild" "$work/Kbuild"
	[ -d "$1/core" ] || return 0
	mkdir -p "$work/tests/core"
	for f in "$root"/tests/core/{policy_c,cases_}*.[ch]; do
		copy "$f" "$work/tests/core/${f##*/}"
	done
}

# patch_driver FOLDER: makes it, with amdkfd/ and our extension in it.
patch_driver()
{
	mkdir -p "$1"
	cp -r "$amd/amdkfd" "$1/"
	"$root/kernel/ext/make-patch" --apply "$1" || fail "the extension does not fit $version"
}
