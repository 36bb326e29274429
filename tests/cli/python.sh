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
