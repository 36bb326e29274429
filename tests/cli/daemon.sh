# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# daemon.sh - programs that outlive what was started: with --wait-all the run ends with the last process.

make_daemon() {
	cc -O1 -g -pthread -D_GNU_SOURCE "$LONGPOLE_SOURCE/tests/cli/daemon.c" -o daemon 2>cc.err || { cat cc.err >&2; fail 'daemon.c does not build'; }
}

# ends_with_daemon TRACE - the path goes through the daemon's threads up to the end of their work of 300 ms.
ends_with_daemon() {
	longpole report --json "$1" >report.json 2>err || fail "$(<err)"
	is_json report.json '.result.elapsed_ns > 290000000'
	is_json report.json '[.result.path[] | select(.actor | test("daemon_worker|daemon")) | .path_ns] | add > 250000000'
}

test_wait_all_daemon() {
	make_daemon
	local how
	for how in plain pair killed; do
		expect 0 longpole record --wait-all -q -o $how.lpt ./daemon $how
		ends_with_daemon $how.lpt
		grep -q daemon_worker report.json || fail "$how: the daemon's threads are not in the path"
	done
	# without the flag the run is what was started
	expect 0 longpole record -q -o short.lpt ./daemon plain
	longpole report --json short.lpt >report.json
	is_json report.json '.result.elapsed_ns < 200000000'
}

test_wait_all_daemon_of_the_system() {
	make_daemon
	longpole record --system --wait-all -q -o all.lpt ./daemon plain >out 2>err || skip "$(head -n 1 err)"
	! grep -q 'only the program' err || skip 'the rest of the system cannot be seen here'
	ends_with_daemon all.lpt
}

# What the first recording said counts: it is whose run the merged one is.
test_wait_all_daemon_merged() {
	make_daemon
	expect 0 longpole record -q -o before.lpt ladder
	expect 0 longpole record --wait-all -q -o daemon.lpt ./daemon plain
	expect 0 longpole record -q -o after.lpt ladder
	expect 0 longpole merge -q -o first.lpt daemon.lpt after.lpt
	ends_with_daemon first.lpt
	expect 0 longpole merge -q -o second.lpt before.lpt daemon.lpt
	expect 0 longpole report --json second.lpt
	! grep -q daemon_worker out || fail 'the path of the ladder ends in the daemon'
}

# Window by window: those after the end of what was started are the daemon's.
test_wait_all_daemon_top() {
	make_daemon
	expect 0 longpole record --wait-all -q -o daemon.lpt ./daemon plain
	longpole top --interval=60ms daemon.lpt >out 2>err || fail "$(<err)"
	(($(grep -c 'daemon_worker' out) >= 3)) || fail 'the daemon is in fewer than 3 windows'
}
