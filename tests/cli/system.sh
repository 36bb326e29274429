# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2094,SC2016,SC2086,SC2206,SC2034,SC1091 # $trace and $work come from run.sh; words split on purpose
# system.sh - recordings of the whole system, where the kernel allows them.

# record_system OUT ARG... - a recording; skips when the kernel refuses every source.
record_system() {
	local out=$1
	shift
	if ! longpole record --system -o "$out" "$@" >record.out 2>record.err; then
		grep -q 'does not show us the whole system' record.err && skip "$(head -n 1 record.err)"
		cat record.err >&2
		fail "longpole record --system $*"
	fi
	grep -q '^longpole: kernel events: [0-9]* through' record.err ||
		skip "$(grep -m 1 'kernel events' record.err || echo 'no kernel events')"
}

# Two processes, that hand a byte to and fro: each wake of one is the other's doing.
test_system_wakes() {
	local nr_switches nr_wakes
	record_system s.lpt -- python3 -c '
import os
a, b = os.pipe(), os.pipe()
if os.fork() == 0:
    for i in range(2000):
        os.read(a[0], 1); os.write(b[1], b"x")
    os._exit(0)
for i in range(2000):
    os.write(a[1], b"x"); os.read(b[0], 1)
os.wait()'
	longpole dump --json s.lpt >dump || fail "dump"
	nr_switches=$(grep -c '"kind":"cpu_out"' dump)
	nr_wakes=$(grep -c '"kind":"wake"' dump)
	((nr_switches >= 2000)) || fail "only $nr_switches switches"
	((nr_wakes >= 2000)) || fail "only $nr_wakes wakes"
}

test_system_alone() {
	record_system a.lpt --for=1
	longpole dump --json --definitions a.lpt >dump || fail "dump"
	grep -q '"kind":"context"' dump || fail "no context is defined"
	grep -q '"kind":"group"' dump || fail "no process has a group"
	grep -q '"kind":"wake"' dump || fail "nobody woke anybody in a second"
}

test_system_usage() {
	expect 125 longpole record --sched ladder
	has err 'need --system'
	expect 125 longpole record --system --sched --full ladder
	expect 125 longpole record --system --for=1 ladder
	expect 125 longpole record --system --for=0
	expect 2 longpole record --system --source=nothing ladder || true
}
