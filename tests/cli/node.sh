# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# node.sh - Node.js programs in their own words: functions of JavaScript, also in the interpreter, and collecting garbage.

need_node() {
	type -p node >/dev/null || skip 'no node here'
	node -e 0 >node.out 2>&1 || skip "node: $(head -n 1 node.out)"
	(($(node -p 'parseInt(process.versions.node)') >= 16)) || skip 'node is older than 16'
	unset NODE_EXTRA_CA_CERTS # reading them takes longer than these programs
}

# record_node NAME [ARGUMENT...] - of NAME.js, in NAME.lpt and NAME.txt; with its output and status as they are without us, and no file
# more than the trace. $options are node's.
record_node() {
	local name=$1 status=0
	shift
	# shellcheck disable=SC2086 # several
	node ${options-} "$name.js" "$@" >"$name.bare" 2>&1 || status=$?
	rm -rf files && mkdir files && cp ./*.js files
	# shellcheck disable=SC2086
	(cd files && longpole record -q -o ../"$name.lpt" node ${options-} "$name.js" "$@" >../"$name.out" 2>&1)
	node_status "$status" $?
	cmp -s "$name.bare" "$name.out" || fail "its output is another: $(<"$name.out")"
	[[ $(cd files && echo *) == $(echo ./*.js | sed 's/\.\///g') ]] || fail "files are left: $(ls files)"
	longpole report --full "$name.lpt" >"$name.txt" 2>err || fail "$(<err)"
	longpole dump "$name.lpt" >"$name.dump" 2>err || fail "$(<err)"
}

node_status() {
	(($1 == $2)) || fail "status $2, $1 without us"
}

# samples NAME TEXT - how many of the samples are in what has that name.
samples() {
	grep -cE " sample site=[0-9]+\($2" "$1.dump" || true
}

# about_thrice NAME A B - A has three times as many samples as B: they do the same, one three times as often.
about_thrice() {
	local a b
	a=$(samples "$1" "$2") b=$(samples "$1" "$3")
	((a + b >= 20)) || fail "of $(samples "$1" '') samples $a and $b are theirs"
	((a * 10 >= b * 17 && a <= b * 6 + 10)) || fail "$a samples and $b, not thrice as many"
}

# write_ladder ROUNDS UNITS - in ladder.js and work.js: `slow` does three times as much as `fast`.
write_ladder() {
	cat >work.js <<-'END'
		// a line before it
		function slow(n) {
		  let s = 0;
		  for (let i = 0; i < 3 * n; i++) s = (s * 31 + i) % 1000003;
		  return s;
		}
		const fast = (n) => { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; };
		module.exports = { slow, fast };
	END
	cat >ladder.js <<-END
		const { slow, fast } = require('./work.js');
		function climb(rounds) {
		  let sum = 0;
		  for (let r = 0; r < rounds; r++) sum += slow($2) + fast($2);
		  return sum;
		}
		console.log(climb(Number(process.argv[2] || $1)));
		process.exitCode = 3;
	END
}

test_node_compiled() {
	need_node
	write_ladder 20 1500000
	record_node ladder
	about_thrice ladder 'slow \([^)]*/work.js:2\)' 'fast \([^)]*/work.js:7\)'
	grep -E '^ +#1 .*running slow' ladder.txt >/dev/null || fail "$(<ladder.txt)"
	# (the compiler may have put it into its caller)
	grep -qE 'sample site=[0-9]+\(slow .* stack=[0-9]+\((climb \([^)]*/ladder.js:2\)|\(top level of ladder.js\) \([^)]*/ladder.js:1\))' ladder.dump ||
		fail 'no call path'
	! grep -q 'site=[0-9]*(v8::Locker' ladder.dump || fail "V8's own mutexes are in it"
	! grep -q 'code of no file' ladder.txt || fail "$(<ladder.txt)"
}

# What no compiler sees: each of its functions is known all the same, and what a bytecode does is the function's.
test_node_interpreted() {
	need_node
	write_ladder 20 60000
	options=--jitless record_node ladder
	about_thrice ladder 'slow \([^)]*/work.js:2\)' 'fast \([^)]*/work.js:7\)'
	grep -qE 'sample site=[0-9]+\(slow .* stack=[0-9]+\(climb \([^)]*/ladder.js:2\) < \(top level of ladder.js\) \([^)]*/ladder.js:1\) < Module._compile' \
		ladder.dump || fail 'no call path'
	(($(samples ladder 'Builtins_[A-Za-z]*Handler') * 10 <= $(samples ladder 'slow'))) ||
		fail "$(samples ladder 'Builtins_[A-Za-z]*Handler') samples are in the interpreter's own code"
}

# Baseline code, between both.
test_node_baseline() {
	need_node
	write_ladder 20 150000
	options='--no-opt --always-sparkplug' record_node ladder
	about_thrice ladder 'slow \([^)]*/work.js:2\)' 'fast \([^)]*/work.js:7\)'
}

# How long the loop was held, and by which function.
test_node_loop() {
	need_node
	cat >loop.js <<-'END'
		function slowHandler(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
		let rounds = 0, sum = 0;
		function next() {
		  sum += slowHandler(8000000);
		  if (++rounds < 15) setTimeout(next, 2);
		}
		next();
	END
	record_node loop
	longpole locks loop.lpt >locks.txt
	has locks.txt 'event loop of Node.js was held for' 'mostly running slowHandler'
	grep -q 'lock_release object=[0-9]*(event loop of Node.js)' loop.dump || fail 'it is never given up'
}

# Predicted, and made so.
test_node_whatif() {
	need_node
	write_ladder 20 1500000
	record_node ladder
	longpole whatif --json ladder.lpt scale slow=-50% >whatif.json || fail 'no prediction'
	is_json whatif.json '.result.scenarios[0].best.predicted_speedup > 1.05'
	sed -i 's/3 \* n/1.5 * n/' work.js
	mv ladder.lpt before.lpt
	record_node ladder
	longpole report --json ladder.lpt >changed.json || fail 'no report'
	# (timing gates nothing: both numbers are for readers of the log)
	echo "# slow half as long: predicted $(jq -r '.result | (.elapsed_ns / .scenarios[0].best.predicted_speedup / 1e6 | floor)' whatif.json) ms," \
		"made so it took $(jq -r '.result.elapsed_ns / 1e6 | floor' changed.json) ms" >&2
}

# Collecting garbage is a state, and ends.
test_node_garbage() {
	need_node
	cat >garbage.js <<-'END'
		const kept = [];
		function churn(n) {
		  for (let i = 0; i < n; i++) {
		    kept.push({ a: i, b: [i, i + 1] });
		    if (kept.length > 100000) kept.splice(0, 50000);
		  }
		}
		function compute(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
		for (let r = 0; r < 8; r++) { churn(150000); compute(4000000); }
		console.log(kept.length);
	END
	record_node garbage
	has garbage.txt 'collecting garbage' 'running compute'
	grep -q 'note_state state=[0-9]*(collecting garbage) flags=256' garbage.dump || fail 'no state'
	grep -q 'note_state state=0 flags=256' garbage.dump || fail 'it does not end'
	! grep -q 'begun' garbage.txt || fail "$(<garbage.txt)"
}

# A worker's function, in its own thread; the loop that waits for it does nothing.
test_node_worker() {
	need_node
	cat >worker.js <<-'END'
		const { Worker, isMainThread, parentPort } = require('worker_threads');
		function burn(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
		if (isMainThread) {
		  const w = new Worker(__filename);
		  w.on('message', (m) => console.log(m));
		  w.postMessage(30e6);
		} else parentPort.once('message', (n) => parentPort.postMessage(burn(n)));
	END
	record_node worker
	(($(samples worker 'burn \([^)]*/worker.js:2\)') >= 10)) || fail 'the worker has no function'
	grep -E '^ +#1 .*burn' worker.txt >/dev/null || fail "$(<worker.txt)"
	longpole actors worker.lpt >actors.txt 2>err || fail "$(<err)"
	has actors.txt 'node/worker thread' 'node/V8 worker #'
	grep -qE 'sample site=[0-9]+\(burn .* stack=[0-9]+\(\(anonymous worker.js:7\) ' worker.dump || fail 'its caller has no name of its own'
}

# What a program can see of itself is as without us, and so is what its code caches depend on.
test_node_sees_nothing() {
	need_node
	cat >sees.js <<-'END'
		const ours = /^(LD_PRELOAD|LONGPOLE_|_$|OLDPWD|PWD)/;
		console.log(JSON.stringify([process.argv.slice(2), process.execArgv, require('v8').cachedDataVersionTag(),
		  Object.keys(process.env).filter((name) => !ours.test(name)).sort()]));
	END
	record_node sees one two
}
