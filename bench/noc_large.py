# SPDX-License-Identifier: Apache-2.0
"""noc_large - inference from traces that are too long to be held: time and memory against their length.

rows(bench, longpole, scratch) adds the rows. Base run and four skewed ones of a graph of 1 million packets (rand, 64 nodes), each written
so often one after the other; `longpole noc infer window_packets=1000000` of them. The largest wants 8 GB of scratch space.
"""
import glob
import json
import os
import subprocess
import time

PIECE, QUICK_PIECE = 1000000, 100000
TIMES, QUICK_TIMES = (1, 10, 100), (4, 8)
WINDOW = 1000000
PERIOD_CYCLES = 10**9
RUNS = 4
GROWTH_GOAL = 1.1  # memory of the longest against the second


def tool(longpole, scratch):
    from benchlib import SOURCE, compile_c  # pylint: disable=import-outside-toplevel
    build = os.path.dirname(os.path.dirname(os.path.dirname(longpole)))
    path = os.path.join(scratch, "noc-repeat")
    libraries = [glob.glob(os.path.join(build, "src/**/liblongpole-%s.a" % layer), recursive=True)[0] for layer in ("noc", "trace", "base")]
    compile_c("bench/noc_repeat.c", path, "-std=gnu17", "-I" + os.path.join(SOURCE, "src"), *libraries, "-lzstd", "-lxxhash",
              "-lm", "-lpthread")
    return path


def measured(command):
    """Seconds, and the largest resident set in MB."""
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - began, usage.ru_maxrss / 1024, out, process.returncode


def rows(bench, longpole, scratch):
    quick = bench.args.quick
    piece, window = (QUICK_PIECE, QUICK_PIECE) if quick else (PIECE, WINDOW)
    graph, prefix = os.path.join(scratch, "large.lpt"), os.path.join(scratch, "large")
    subprocess.run([longpole, "noc", "gen", "-q", "-o", graph, "packets=%d" % piece], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([longpole, "noc", "sample", "-q", "-o", prefix, graph, "runs=%d" % RUNS], check=True, stdout=subprocess.DEVNULL)
    repeat, memory = tool(longpole, scratch), []
    for times in QUICK_TIMES if quick else TIMES:
        traces = ["%s-%d.lpt" % (prefix, run) for run in range(RUNS + 1)]
        long = ["%s-%d-long.lpt" % (prefix, run) for run in range(RUNS + 1)]
        for one, many in zip(traces, long):
            subprocess.run([repeat, one, many, str(times), str(PERIOD_CYCLES)], check=True)
        rate = {}
        for threads in (1, os.cpu_count() or 1):
            seconds, peak_mb, out, status = measured([longpole, "noc", "infer", "-q", "--json", *long, "threads=%d" % threads,
                                                      "window_packets=%d" % window])
            packets = json.loads(out)["result"]["packets"] if not status else 0
            name = "windows: %.1f M packets, m=%d, %d thread(s)" % (times * piece / 1e6, RUNS, threads)
            bench.row(name, packets / seconds / 1e6, "M packets/s", why="all of it: reading five files, inferring")
            rate[threads] = packets / seconds
        if len(rate) > 1:
            bench.row("windows: %.1f M packets, speed-up of %d threads" % (times * piece / 1e6, max(rate)), rate[max(rate)] / rate[1], "x",
                      why="five files are read and decoded by threads of their own")
        bench.row("windows: %.1f M packets, largest memory" % (times * piece / 1e6), peak_mb, "MB")
        memory.append(peak_mb)
        for path in long:
            os.unlink(path)
    bench.row("windows: memory of the longest / of the one before", memory[-1] / memory[-2], "x", GROWTH_GOAL if not quick else None,
              "max" if not quick else None)
