# SPDX-License-Identifier: MIT
# For e2e-all, sourced: each command on a job of the real driver, with sense and with nonsense.

# answers STATUS COMMAND...: what a command says in JSON is in $said.
answers()
{
	local want=$1 got=0
	shift
	said=$("$gpreempt" --json "$@") || got=$?
	echo "$said"
	[ $got = "$want" ] || { echo "exit status $got, expected $want" && false; }
}

# says PATTERN...: all are in the answer, each a regular expression.
says()
{
	local pattern
	for pattern in "$@"; do
		[[ "$said" =~ $pattern ]] || { echo "no $pattern in $said" && return 1; }
	done
}

# tool NAME STATUS COMMAND... -- PATTERN...
tool()
{
	local name=$1 command=()
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		command+=("$1")
		shift
	done
	check "tools: $name" answers "${command[@]}"
	printf '%s\n' "$said" >>"$TMPDIR/answers"
	[ $# -le 1 ] || check "tools: $name, and it says so" says "${@:2}"
}

# One JSON object a line, as every reader of them takes for granted.
all_are_json()
{
	python3 -S -c 'import json, sys
for line in sys.stdin: assert isinstance(json.loads(line), dict), line' <"$TMPDIR/answers"
}

looking()
{
	local samples=5
	[ "${SLOWNESS:-1}" = 1 ] || samples='[2-5]' # it passes over those it is too late for
	tool "the doctor knows the chip" 0 doctor -- '"backend":"kfd"' '"gfx":"gfx942"' \
		'"hqd_total":24' '"scheduler":"hws"' '"level":"K2","available":true'
	tool "the job is listed" 0 list -- "\"pid\":$job," "\"queues\":$QUEUES"
	tool "the queues of the job" 0 queues "$job" -- '"queue_id":0' '"queue_id":3' \
		'"type":"compute-aql"' '"read_index":[1-9]' '"by_type":\{"compute-aql":4\}'
	tool "all queues of the machine" 0 queues --all -- "\"pid\":$job,"
	tool "a while of watching" 0 monitor "$job" --duration 0.4 --interval 0.1 -- \
		"\"stats\":\\{\"samples\":$samples," '"min":4,"max":4' '"stable":true' \
		'"ids":\[0,1,2,3\]'
	tool "the slots" 0 hqd -- '"queues":4,"total":24,"active":4,"free":20'
	tool "nothing is held" 0 release -- '^\{"released":\[\]\}$'
}

preempting()
{
	tool "rounds are counted" 0 bench "$job" -n 5 --work 5 -- '"rounds":5,"ok":5,"failed":0' \
		'"modelled":true' '"queues":4' '"suspend_us":\{"min":[1-9]' '"saved_bytes":[1-9]'
	tool "a hold is timed" 0 hold "$job" --for 0.1 -- '"modelled":true' '"suspend_us":[1-9]'
	tool "what we claim holds" 0 accept "$job" -n 6 -o "$TMPDIR/report" -- '"complete":true' \
		'"modelled":true' '"name":"stops","result":"pass","figure":0' \
		'"name":"continues","result":"pass"' '"name":"holder-killed","result":"pass"' \
		'"name":"queues","result":"(pass|skip)"' '"name":"placement","result":"pass"'
	check "tools: and is in the report" grep -q 'failed, .* skipped; complete' "$TMPDIR/report"
	check "tools: which claims no hardware" grep -q 'a software GPU is behind the' \
		"$TMPDIR/report"
}

# Until it has begun to suspend and resume; sets $accept.
start_accept()
{
	local line=''
	exec {from_accept}< <(exec "$gpreempt" accept "$job" -n 100000 -o "$TMPDIR/killed" 2>&1)
	accept=$!
	while [[ "$line" != process:* ]]; do
		read -r -t 30 -u "$from_accept" line || return
	done
}

# What queuewatch sees, at once.
is_off()
{
	local pasid line
	read -r pasid <"/sys/class/kfd/kfd/proc/$job/pasid" || return
	printf -v pasid 'pasid %#x ' "$pasid"
	while read -r line; do
		[[ "$line" != *"$pasid"* ]] || return
	done <"/sys/kernel/debug/kfdsim/0/queues"
}

# Stopped while the job is off the GPU it cannot let go any more.
stop_in_a_hold()
{
	local tries
	for tries in {1..50}; do
		stop $accept || return
		! is_off || return 0
		kill -CONT $accept
		read -r -t "0.1$((RANDOM % 10))" -u "$from_accept" _ # longer than a guard's look
	done
	echo "it never held the job"
	return 1
}

in_the_middle()
{
	check "tools: accepting goes on" start_accept
	check "tools: it is stopped in the middle of a hold" stop_in_a_hold
	check "tools: it is killed there, and the job runs" \
		queuewatch "$job" running $QUEUES $RUNS_MS kill -KILL $accept
	exec {from_accept}<&-
	wait $accept 2>/dev/null
	check "tools: nobody traces the job" untraced "$job"
	check "tools: its report does not say it was complete" \
		exits_with 1 grep complete "$TMPDIR/killed"
}

nonsense()
{
	tool "a report stays as it is" 1 accept "$job" -o "$TMPDIR/report" -- 'File exists'
	tool "a report cannot be where nothing can" 1 accept "$job" -o /report -- 'Read-only'
	tool "nobody cannot be accepted" 3 accept 999999 -o "$TMPDIR/nobody" -- 'no process 999999'
	check "tools: and leaves no report" [ ! -e "$TMPDIR/nobody" ]
	tool "a process without a GPU has no queues" 3 queues $$ -- '"code":3'
	tool "nor can it be measured" 3 bench $$ -- '"code":3'
	tool "a word is no pid" 2 monitor word -- "'word'"
	tool "no time is no duration" 2 monitor "$job" --duration 0 -- '--duration'
	tool "no such level" 2 bench "$job" --level K9 -- 'K9'
	tool "no extension" 4 bench "$job" --level K3 -- 'K3'
	tool "no such class" 2 list --class patient -- 'patient'
	tool "no such command" 2 accpet "$job" -- 'accpet'
	tool "a device that is not there" 2 --device toaster hqd -- 'toaster'
}

tools()
{
	rm -f "$TMPDIR"/{answers,report,killed}
	check "tools: loads" kfdsim-load gc=0x090403 num_xcc=1 $SLOW
	check "tools: a job has work" start_job
	looking
	preempting
	in_the_middle
	nonsense
	check "tools: every answer is JSON" all_are_json
	check "tools: the job runs" running "$job"
	check "tools: nobody traces it" untraced "$job"
	check "tools: every packet ran once, in order" stop_job
	check "tools: nothing the hardware would not take" nothing_bad
}
