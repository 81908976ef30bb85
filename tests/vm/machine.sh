# SPDX-License-Identifier: MIT
# The virtual machine that tests/vm/run starts, sourced; needs common.sh and what it sets, and
#
#     $image $initramfs   what it boots
#     $cpus               how many it has
#     $instruction        nanoseconds each takes, where it has one CPU: 1, 2, 4 or 8
#     $helpers            where tsckhz is
#
# A guest with one CPU has the count of its instructions for a clock while it works, and the host's
# clock while it idles: a busy machine makes it slower for us, not for itself. It is booted once, up
# to where it would look at the host's files, and frozen; runs continue from there. One with several
# CPUs has the host's clock and is booted each time.

# What an emulated CPU is slow at and the driver does not miss: wide registers to save and restore,
# bytewise string instructions, five levels of page tables, grace periods that wait for timers,
# hardening.
quick="mitigations=off clearcpuid=rep_good rcupdate.rcu_expedited=1"
quick="$quick rcutree.jiffies_till_first_fqs=0 rcutree.jiffies_till_next_fqs=0"
quick="$quick lsm=yama audit=0 init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off"
READY_S=300 # a guest that has not booted by then never will

# plan_machine: sets $machine, QEMU's command line but for what differs from run to run.
plan_machine()
{
	local clock=() told
	if [ "$cpus" = 1 ]; then
		case $instruction in
		1) clock=(-icount "shift=0,sleep=on") ;;
		2) clock=(-icount "shift=1,sleep=on") ;;
		4) clock=(-icount "shift=2,sleep=on") ;;
		8) clock=(-icount "shift=3,sleep=on") ;;
		*) fail "an instruction takes 1, 2, 4 or 8 ns, not '$instruction'" ;;
		esac
		# The counter of a machine with such a clock counts nanoseconds.
		told="tsc=reliable tsc_early_khz=1000000 gpreempt.wait"
	else
		told="tsc=reliable tsc_early_khz=$("$helpers/tsckhz")"
	fi
	# Without cx16: after a cmpxchg16b QEMU 7.2 was seen to leave nonsense in the flags.
	machine=(qemu-system-x86_64 -M q35 -cpu qemu64,-cx16,+rdrand,+fsgsbase
		-accel "tcg,thread=$([ "$cpus" = 1 ] && echo single || echo multi),tb-size=512"
		-smp "$cpus" -m "${GPREEMPT_VM_MEMORY:-3072}" -nodefaults -no-user-config
		-display none -no-reboot "${clock[@]}" -kernel "$image" -initrd "$initramfs"
		# The log is long enough that no warning is lost to what is said after it.
		-append "console=ttyS1 quiet log_buf_len=16M panic=-1 nokaslr no_timer_check \
$told $quick")
}

# show_folders OUT: adds to $machine the host's root, and a folder to write to.
show_folders()
{
	machine+=(-device isa-debug-exit,iobase=0xf4,iosize=0x04
		-fsdev "local,id=h,path=/,security_model=none,readonly=on,multidevs=remap"
		-device virtio-9p-pci,fsdev=h,mount_tag=host
		-fsdev "local,id=o,path=$1,security_model=none"
		-device virtio-9p-pci,fsdev=o,mount_tag=out)
}

# freeze FILE: boots, and keeps the machine's state when its init waits.
freeze()
{
	local new=$1.new said=$1.said waited=0 monitor
	: >"$said"
	coproc monitor {
		exec setpriv --pdeathsig TERM nice -n 5 "${machine[@]}" -serial "file:$said" \
			-serial "file:$1.console" -monitor stdio >/dev/null
	}
	until grep -q '^ready' "$said"; do
		waited=$((waited + 1))
		if [ $waited -ge $((READY_S * 10)) ] || [ ! -e "/proc/${monitor_PID:-none}" ]; then
			say "the guest does not boot"
			[ -z "${monitor_PID:-}" ] || kill -KILL "$monitor_PID"
			tail -n 30 "$1.console" >&2
			return 1
		fi
		sleep 0.1
	done
	printf '%s\n' "migrate_set_parameter max-bandwidth 16G" \
		"migrate \"exec:cat >$new\"" quit >&"${monitor[1]}"
	wait ${monitor_PID:+"$monitor_PID"} || true
	rm -f "$said" "$1.console"
	mv "$new" "$1"
}

# find_frozen: sets $frozen, made where there is none; empty for a machine with several CPUs.
find_frozen()
{
	local key status=0
	frozen=
	[ "$cpus" = 1 ] || return 0
	key=$(qemu-system-x86_64 --version && printf '%s\n' "${machine[@]/path=$out/}")
	key=$(sha256sum <<<"$key")
	frozen=${initramfs%/*}/frozen-${key:0:16}
	[ ! -s "$frozen" ] || return 0
	exec {lock}>"$frozen.lock"
	flock "$lock"
	[ -s "$frozen" ] || freeze "$frozen" {lock}>&- || status=1
	exec {lock}>&-
	return $status
}
