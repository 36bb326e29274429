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
	grep -E '^ +#1 .*semaphore made by <module>.* lock.py:4 ' lock.txt >/dev/null || fail "$(<lock.txt)"
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
	# (timing gates nothing: both numbers are for readers of the log)
	echo "# without the GIL: $(jq -r '.result | "\(.elapsed_ns / 1e6 | floor) ms become \(.scenarios[0].best | .predicted_speedup * 100 | floor / 100)x shorter"' whatif.json)," \
		"processes took $(jq -r '.result.elapsed_ns / 1e6 | floor' processes.json) ms" >&2
}

# The frames of a wait are those that faulthandler writes at that moment: 40 times, below calls by chance.
test_python_frames() {
	need_python
	cat >frames.py <<-'END'
		import faulthandler, random, sys, threading
		lock = threading.Lock()
		def leaf(depth):
		    faulthandler.dump_traceback(file=sys.stderr, all_threads=False); lock.acquire(timeout=0.001)
		def left(depth):
		    descend(depth - 1)
		def right(depth):
		    sum(descend(depth - 1) or 0 for _ in range(1))
		def descend(depth):
		    (leaf if depth <= 0 else random.choice((left, right)))(depth)
		random.seed(1)
		lock.acquire()
		for i in range(40):
		    descend(random.randrange(4))
	END
	expect 0 longpole record -q -o frames.lpt "$python" -S frames.py
	longpole dump frames.lpt >dump.txt
	"$python" - err dump.txt <<-'END' || fail 'other frames'
		import re, sys
		true = open(sys.argv[1]).read().split("Stack (most recent call first):\n")[1:]
		seen = re.findall(r"token_wait .* stack=[1-9]\d*\((leaf .*)\)$", open(sys.argv[2]).read(), re.M)
		assert len(true) == len(seen) == 40, (len(true), len(seen))
		for a, b in zip(true, seen):
		    a = re.findall(r'line (\d+) in (.*)', a)
		    b = [(line, name.rsplit(".", 1)[-1]) for name, line in re.findall(r"(\S+) \(\S+:(\d+)\)", b)]
		    assert a[:len(b)] == b and len(b) >= min(len(a), 12), (a, b)
	END
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
		# (on a busy machine few looks come while the program runs: the shares are for
		# readers of the log)
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

# need_asyncio - ... and whose module _asyncio is a library of its own.
need_asyncio() {
	need_python
	"$python" -c 'import _asyncio; _asyncio.__file__' 2>/dev/null || skip "$python has _asyncio in itself"
}

# is_explained TRACE - at least 95 % of its path, without what other programs on this machine did to it.
is_explained() {
	longpole report --json "$1" >explained.json || fail "no report of $1"
	is_json explained.json '.result.explained_share >= 0.95'
}

# whatif_of TRACE EDIT CHANGED - what the edit is predicted to give, and what the changed program
# took: for readers of the log.
whatif_of() {
	longpole whatif --json "$1" scale "$2" >whatif.json || fail "no prediction of $2"
	is_json whatif.json '.result.scenarios[0].best.predicted_speedup > 1.02'
	longpole report --json "$3" >changed.json || fail "no report of $3"
	echo "# $2: predicted $(jq -r '.result | (.elapsed_ns / .scenarios[0].best.predicted_speedup / 1e6 | floor)' whatif.json) ms," \
		"made so it took $(jq -r '.result.elapsed_ns / 1e6 | floor' changed.json) ms" >&2
}

# A task that holds the loop up: it is first, by its own line, and what waits for it says so.
test_python_asyncio_blocks() {
	need_asyncio
	cat >block.py <<-'END'
		import asyncio, sys, time
		async def blocker(s):
		    for i in range(20):
		        await asyncio.sleep(0.005)
		        time.sleep(s)
		async def ticker():
		    for i in range(20):
		        await asyncio.sleep(0.01)
		async def main():
		    await asyncio.gather(blocker(float(sys.argv[1])), ticker())
		asyncio.run(main())
		print("done")
		sys.exit(3)
	END
	record_python block 0.05
	grep -E '^ +#1 .*sleeping +block.py:5' block.txt >/dev/null || fail "$(<block.txt)"
	is_explained block.lpt
	longpole actors block.lpt >actors.txt || fail 'no actors'
	grep -q '/blocker' actors.txt && grep -q '/ticker' actors.txt || fail "$(<actors.txt)"
	# the ticker's time comes while the loop is the blocker's
	longpole dump block.lpt >dump.txt
	grep -q 'turn_due task=[0-9]* timed=1 .*(ticker (' dump.txt || fail 'its time does not come'
	longpole locks --site block.lpt >locks.txt
	has locks.txt 'event loop of asyncio' 'blocker (block.py:4)'
	mv block.lpt before.lpt
	record_python block 0.025
	whatif_of before.lpt 'sleeping=-50%' block.lpt
}

# A queue between two tasks, either of which is slow: the slow one's line is first, and the other one waits where it does.
test_python_asyncio_queue() {
	need_asyncio
	cat >queue.py <<-'END'
		import asyncio, sys
		put, get = float(sys.argv[1]), float(sys.argv[2])
		async def consume(q):
		    while await q.get() is not None:
		        if get:
		            await asyncio.sleep(get)
		async def produce(q):
		    for i in range(40):
		        if put:
		            await asyncio.sleep(put)
		        await q.put(i)
		    await q.put(None)
		async def main():
		    q = asyncio.Queue(4)
		    await asyncio.gather(produce(q), consume(q))
		asyncio.run(main())
	END
	mv queue.py two.py
	record_python two 0 0.02
	grep -E '^ +#1 .*sleeping in consume +two.py:6' two.txt >/dev/null || fail "$(<two.txt)"
	is_explained two.lpt
	longpole actors --all two.lpt >actors.txt || fail 'no actors'
	has actors.txt 'waiting at Queue.put in produce'
	mv two.lpt before.lpt
	record_python two 0 0.01
	whatif_of before.lpt 'sleeping in consume=-50%' two.lpt
	record_python two 0.02 0
	grep -E '^ +#1 .*sleeping in produce +two.py:10' two.txt >/dev/null || fail "$(<two.txt)"
	longpole actors --all two.lpt >actors.txt || fail 'no actors'
	has actors.txt 'waiting at Queue.get in consume'
	are_of_one_moment two.lpt
}

# The loop is given up, a turn begins or ends, and the loop is taken: one stamp for all, at each turn. A wait between two
# turns gives the global lock up and takes it at one line.
are_of_one_moment() {
	longpole dump "$1" >dump.txt || fail 'no dump'
	awk '$3 ~ /^turn_(begin|end)$/ {turn = $1; nr++; wrong += before != $1}
		$3 == "lock_release" && /event loop/ {before = $1}
		$3 == "lock_acquire" && /event loop/ && turn {wrong += turn != $1; turn = 0}
		$3 == "lock_release" && /interpreter lock/ {freed[$2] = $NF; waits[$2] = 0}
		$3 == "poll_begin" {waits[$2] = 1}
		$3 == "lock_acquire" && /interpreter lock/ && waits[$2] {polls++; wrong += freed[$2] != $NF}
		END {print nr + 0, polls + 0, wrong + 0; exit !(nr > 80 && polls > 40 && !wrong)}' dump.txt >moments.txt ||
		fail "turns, polls, wrong: $(<moments.txt)"
}

# The slow one of those that are gathered; a function in a thread; a semaphore.
test_python_asyncio_others() {
	need_asyncio
	cat >gather.py <<-'END'
		import asyncio
		async def slow():
		    for i in range(10):
		        await asyncio.sleep(0.05)
		async def fast():
		    for i in range(10):
		        await asyncio.sleep(0.01)
		async def main():
		    await asyncio.gather(fast(), slow(), fast())
		asyncio.run(main())
	END
	record_python gather
	grep -E '^ +#1 .*sleeping in slow +gather.py:4' gather.txt >/dev/null || fail "$(<gather.txt)"
	is_explained gather.lpt
	cat >tothread.py <<-'END'
		import asyncio, time
		def slow_work():
		    time.sleep(0.05)
		async def work():
		    for i in range(10):
		        await asyncio.to_thread(slow_work)
		async def quick():
		    for i in range(10):
		        await asyncio.sleep(0.01)
		async def main():
		    await asyncio.gather(work(), quick())
		asyncio.run(main())
	END
	record_python tothread
	grep -E '^ +#1 .*sleeping +tothread.py:3' tothread.txt >/dev/null || fail "$(<tothread.txt)"
	is_explained tothread.lpt
	cat >semaphore.py <<-'END'
		import asyncio
		async def use(s):
		    async with s:
		        await asyncio.sleep(0.05)
		async def main():
		    s = asyncio.Semaphore(2)
		    await asyncio.gather(*(use(s) for i in range(20)))
		asyncio.run(main())
	END
	record_python semaphore
	grep -E '^ +#1 .*sleeping in use +semaphore.py:4' semaphore.txt >/dev/null || fail "$(<semaphore.txt)"
	is_explained semaphore.lpt
	longpole actors --all semaphore.lpt >actors.txt || fail 'no actors'
	has actors.txt 'waiting at Semaphore.acquire in use'
}

# Turns within turns (tasks that begin at once), two loops in two threads, tasks that are cancelled or end by an error.
test_python_asyncio_odd() {
	need_asyncio
	cat >odd.py <<-'END'
		import asyncio, os, sys, threading
		async def nap(n):
		    for i in range(n):
		        await asyncio.sleep(0.001)
		    return n
		async def fails():
		    await asyncio.sleep(0)
		    raise ValueError("no")
		async def main():
		    if sys.version_info >= (3, 12):
		        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
		    t = asyncio.create_task(nap(1000))
		    try:
		        await asyncio.wait_for(asyncio.shield(nap(1000)), 0.02)
		    except asyncio.TimeoutError:
		        print("too late")
		    t.cancel()
		    print(await asyncio.gather(t, fails(), nap(3), return_exceptions=True))
		    async for i in agen():
		        print(i)
		    p = await asyncio.create_subprocess_exec("true")
		    print(await p.wait())
		async def agen():
		    for i in range(3):
		        await asyncio.sleep(0.001)
		        yield i
		threads = [threading.Thread(target=lambda: asyncio.run(nap(50))) for i in range(2)]
		for t in threads: t.start()
		for t in threads: t.join()
		asyncio.run(main())
		if not os.fork():
		    asyncio.run(nap(2))
		    os._exit(0)
		os.wait()
	END
	record_python odd
	longpole dump odd.lpt >dump.txt
	(($(grep -c 'turn_begin' dump.txt) > 100)) || fail 'no turns'
}

# One that is joined, and joined again.
test_python_asyncio_joined() {
	local pid
	need_asyncio
	cat >server.py <<-'END'
		import asyncio, time
		async def tick():
		    while time.time() < end:
		        await asyncio.sleep(0.005)
		async def main():
		    await asyncio.gather(tick(), tick())
		end = time.time() + 60
		print("on", flush=True)
		asyncio.run(main())
	END
	"$python" -S server.py >server.out &
	pid=$!
	for _ in {1..600}; do
		[[ ! -s server.out ]] || break
		sleep 0.1
	done
	for i in 1 2; do
		longpole record -q -p "$pid" --for=1s -o joined$i.lpt >out 2>err || { kill "$pid"; grep -q 'not permitted\|refused' err && skip "$(<err)"; fail "$(<err)"; }
		longpole dump joined$i.lpt >dump.txt
		(($(grep -c 'turn_end .*(tick (' dump.txt) > 5)) || { kill "$pid"; fail "no turns when it is joined for the ${i}. time"; }
	done
	kill -0 "$pid" || fail 'it has ended'
	kill "$pid"
	wait "$pid" || true
}
