# SPDX-License-Identifier: MIT
# For scripts that install packages, sourced: apt-get without questions, as root or with sudo.

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

apt()
{
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 \
		-o Dpkg::Use-Pty=0 "$@" </dev/null >&2
}

# The version of a package, or nothing.
installed()
{
	dpkg-query -W -f '${db:Status-Abbrev}${Version}\n' "$1" 2>/dev/null | sed -n 's/^ii //p'
}
