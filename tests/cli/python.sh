# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# python.sh - CPython programs in their own words: lines of Python for what waits, the GIL as a lock.

# need_python - $python is one whose frames are known, without shims that are shells.
need_python() {
	local found
	for found in $(type -ap python3 python3.11 python3.12 python3.13); do
		python=$("$found" -c 'import sys, sysconfig
known = (3, 11) <= sys.version_info[:2] <= (3, 13) and not sysconfig.get_config_var("Py_GIL_DISABLED")
print(sys.executable if known else "")' 2>/dev/null) || python=
		[[ -z $python ]] || return 0
	done
	skip 'no Python 3.11 to 3.13 here'
}

# record_python NAME [ARGUMENT...] - of NAME.py, in NAME.lpt and NAME.txt; with its output and status as they are without us.
record_python() {
	local name=$1 status=0
	shift
	"$python" -S "$name.py" "$@" >"$name.bare" 2>&1 || status=$?
	longpole record -q -o "$name.lpt" "$python" -S "$name.py" "$@" >"$name.out" 2>&1
	expect_status "$status" $?
	cmp -s "$name.bare" "$name.out" || fail "its output is another: $(<"$name.out")"
	longpole report --full "$name.lpt" >"$name.txt" 2>err || fail "$(<err)"
}

expect_status() {
	(($1 == $2)) || fail "status $2, $1 without us"
}

# A producer that a slow consumer holds up: the consumer's line is first, and the producer waits where it puts.
test_python_slow_consumer() {
	need_python
	cat >slow.py <<-'END'
		import queue, sys, threading, time
		q = queue.Queue(4)
		def slow_consume():
		    while (item := q.get()) is not None:
		        time.sleep(0.02)
		def produce():
		    for i in range(50):
		        q.put(i)
		    q.put(None)
		t = threading.Thread(target=slow_consume)
		t.start()
		produce()
		t.join()
		print("done")
		sys.exit(3)
	END
	record_python slow
	grep -E '^ +#1 .*sleeping +slow.py:5' slow.txt >/dev/null || fail "$(<slow.txt)"
	longpole dump slow.lpt | grep 'token_wait .*site=[0-9]*(produce ([^ ]*slow.py:8))' >waits.txt || fail 'the producer does not wait at its line'
	grep -q 'stack=[0-9]*(Condition.wait .* < Queue.put .* < produce' waits.txt || fail "no Python frames: $(head -n 1 waits.txt)"
	longpole locks slow.lpt >locks.txt
	has locks.txt 'made by'
}

# The other side: the consumer waits for a slow producer.
test_python_slow_producer() {
	need_python
	cat >slow.py <<-'END'
		import queue, threading, time
		q = queue.Queue(4)
		def consume():
		    while q.get() is not None:
		        pass
		t = threading.Thread(target=consume)
		t.start()
		def slow_produce():
		    for i in range(50):
		        time.sleep(0.02)
		        q.put(i)
		slow_produce()
		q.put(None)
		t.join()
	END
	record_python slow
	grep -E '^ +#1 .*sleeping +slow.py:10' slow.txt >/dev/null || fail "$(<slow.txt)"
	longpole dump slow.lpt >dump.txt
	grep -q 'token_wait .*site=[0-9]*(consume ([^ ]*slow.py:4))' dump.txt || fail 'the consumer does not wait at its line'
}

# A lock that is held while its holder sleeps.
test_python_lock() {
	need_python
	cat >lock.py <<-'END'
		import threading, time
		lock = threading.Lock()
		def save():
		    with lock:
		        time.sleep(0.02)
		def work():
		    for i in range(20):
		        save()
		threads = [threading.Thread(target=work) for i in range(3)]
		for t in threads: t.start()
		for t in threads: t.join()
	END
	record_python lock
	grep -E '^ +#1 .*lock.py:5' lock.txt >/dev/null || fail "$(<lock.txt)"
	longpole locks lock.lpt >locks.txt
	has locks.txt 'semaphore made by <module> (lock.py:2)'
}

# One slow task of a pool.
test_python_executor() {
	need_python
	cat >pool.py <<-'END'
		import time
		from concurrent.futures import ThreadPoolExecutor
		def task(i):
		    if i == 3:
		        return slow_task()
		    time.sleep(0.01)
		def slow_task():
		    time.sleep(1)
		with ThreadPoolExecutor(4) as pool:
		    list(pool.map(task, range(8)))
	END
	record_python pool
	grep -E '^ +#1 .*sleeping +pool.py:8' pool.txt >/dev/null || fail "$(<pool.txt)"
}

# Two threads that compute: the lock is the pole, and what is predicted without it is what processes take.
test_python_gil() {
	need_python
	cat >gil.py <<-'END'
		import sys, threading, multiprocessing
		def parse(n):
		    total = 0
		    for i in range(n):
		        total += i * i % 7
		    return total
		if __name__ == "__main__":
		    make = threading.Thread if sys.argv[1] == "threads" else multiprocessing.get_context("fork").Process
		    workers = [make(target=parse, args=(6000000,)) for i in range(2)]
		    for w in workers: w.start()
		    for w in workers: w.join()
	END
	record_python gil threads
	has gil.txt 'interpreter lock GIL' 'parse (gil.py'
	head -n 4 gil.txt | tr '\n' ' ' >head.txt
	grep -q 'interpreter lock GIL: its holders compute.* in parse' head.txt || fail "$(<head.txt)"
	longpole locks gil.lpt >locks.txt
	has locks.txt 'interpreter lock GIL'
	! grep -q 'ceval\|take_gil' locks.txt || fail "the lock's insides are in it"
	longpole dump gil.lpt >dump.txt
	grep -q 'lock_wait .*GIL.*site=[0-9]*(parse ([^ ]*gil.py' dump.txt || fail 'no wait for the GIL in parse()'
	# who computed had it, whoever waited for it was the other: without it both compute at once
	longpole whatif --json gil.lpt remove GIL >whatif.json || fail 'no prediction'
	is_json whatif.json '.result.scenarios[0].edits[0] | .example == "waiting for interpreter lock GIL" and .waited_ns > 0'
	longpole record -q -o processes.lpt "$python" -S gil.py processes >out 2>&1 || fail "$(<out)"
	longpole report --json processes.lpt >processes.json || fail 'no report of processes'
	# (timing gates nothing: both numbers are for who reads the log)
	echo "# without the GIL: $(jq -r '.result | "\(.elapsed_ns / 1e6 | floor) ms become \(.scenarios[0].best | .predicted_speedup * 100 | floor / 100)x shorter"' whatif.json)," \
		"processes took $(jq -r '.result.elapsed_ns / 1e6 | floor' processes.json) ms" >&2
}

# seen_computing TRACE FUNCTION - the share of the trace's samples that have it innermost; of those that have any function of computing.py.
seen_computing() {
	longpole dump "$1" >dump.txt
	awk -v name="($2 (" '/ sample / && /computing.py/ {
			of++
			sub(/ stack=.*/, "") # only where it is innermost
			seen += index($0, name) > 0
		} END { print of ? seen / of : 0 }' dump.txt
}

# What computes belongs to Python's functions, as much as they take by the clock: in the first thread, in a fork's child, and in a C function
# that Python calls.
test_python_computing() {
	local burn light
	need_python
	cat >computing.py <<-'END'
		import sys, time, multiprocessing
		def burn(n):
		    x = 0
		    for i in range(n):
		        x += i * i
		    return x
		def lighter(n):
		    x = 0
		    for i in range(n):
		        x ^= i
		    return x
		def sort_all():
		    for i in range(10):
		        sorted(range(300000), key=str)
		def work():
		    took = [0, 0]
		    while sum(took) < 0.8:
		        a = time.process_time()
		        burn(30000)
		        b = time.process_time()
		        lighter(30000)
		        took[0] += b - a
		        took[1] += time.process_time() - b
		    print(took[0] / sum(took), file=sys.stderr)
		if sys.argv[1] == "fork":
		    child = multiprocessing.get_context("fork").Process(target=work)
		    child.start()
		    child.join()
		elif sys.argv[1] == "sort":
		    sort_all()
		else:
		    work()
	END
	for how in here fork; do
		expect 0 longpole record -q -o $how.lpt "$python" -S computing.py $how
		burn=$(seen_computing $how.lpt burn) light=$(seen_computing $how.lpt lighter)
		# (on a busy machine few looks come while the program runs: the shares are for who reads the log)
		echo "# $how: burn() $burn and lighter() $light of the samples; by the clock burn() takes $(tail -n 1 err)" >&2
		awk -v burn="$burn" -v light="$light" 'BEGIN { exit !(burn > 0.35 && light > 0.1 && burn + light > 0.8) }' || fail "$how: $burn $light"
	done
	longpole report here.lpt >here.txt
	head -n 3 here.txt | grep -q 'burn' || fail "$(<here.txt)"
	expect 0 longpole whatif here.lpt scale burn=-50%
	expect 0 longpole record -q -o sort.lpt "$python" -S computing.py sort
	longpole dump sort.lpt >dump.txt
	grep -q ' sample .*(sort_all (.*computing.py:14.*stack=[1-9][0-9]*(<module> (' dump.txt || fail "nothing is seen in sort_all(): $(grep -c sample dump.txt)"
}

# The same of a process that is joined.
test_python_computing_joined() {
	local pid
	need_python
	cat >joined.py <<-'END'
		import time
		def crunch():
		    x = 0
		    for i in range(10000):
		        x += i * i
		end = time.time() + 60
		print("on", flush=True)
		while time.time() < end:
		    crunch()
		    time.sleep(0.0001)
	END
	"$python" -S joined.py >joined.out &
	pid=$!
	for _ in {1..600}; do
		[[ ! -s joined.out ]] || break
		sleep 0.1
	done
	longpole record -q -p "$pid" --for=2s -o joined.lpt >out 2>err || { grep -q 'not permitted\|refused' err && skip "$(<err)"; fail "$(<err)"; }
	kill "$pid"
	wait "$pid" || true
	longpole dump joined.lpt >dump.txt
	grep -q ' sample .*(crunch (.*joined.py:' dump.txt || { longpole report joined.lpt >&2; cat err >&2; fail 'crunch() is not seen'; }
}
