# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For scripts that make something of the whole tree; they run in its first folder.

# The one place that says it; debian/changelog, the spec file and NEWS are compared with it.
version_in()
{
	sed -n "s/^    version: '\([^']*\)',$/\1/p" "$1"
}

version()
{
	version_in meson.build
}

# What git does not ignore, or everything but build folders where this is not git's, NUL-ended.
tree_files()
{
	if [ -e .git ]; then
		# What was deleted and is still git's is not there.
		git ls-files -z --cached --others --exclude-standard |
			xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh
	else
		find . \( -path './build*' -o -name __pycache__ \) -prune -o \
			-type f ! -name '*.o' -printf '%P\0'
	fi
}

# copy_tree FOLDER
copy_tree()
{
	tree_files | tar -c --null --no-recursion -T - -f - | tar -x -C "$1" -f -
}
