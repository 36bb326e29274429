# SPDX-License-Identifier: Apache-2.0
"""What `longpole top` of the whole system costs on a busy redis-server: throughput under redis-benchmark with and without, in
turns, and the processor time and memory of longpole itself (recorder and analysis are one process). Needs root."""
import contextlib
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import time

import benchlib

PORT = 17379
INTERVAL = "500ms"
LOSS_MAX = 0.10  # the issue's, at 200,000 switches a second


@contextlib.contextmanager
def redis(scratch):
    command = ["redis-server", "--port", str(PORT), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", scratch]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORT), timeout=1):
                break
            time.sleep(0.05)
        try:
            yield server
        finally:
            server.terminate()


def requests(n):
    """(requests a second, others' share of the machine)."""
    busy, begin = benchlib.busy_seconds(), time.perf_counter()
    command = ["redis-benchmark", "-p", str(PORT), "-n", str(n), "-c", "20", "-t", "set", "--csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    busy = (benchlib.busy_seconds() - busy) / (time.perf_counter() - begin)
    return float(re.search(r'"SET","([0-9.]+)"', done.stdout).group(1)), busy


class Top:
    """`longpole top` beside what runs; what it took."""

    def __init__(self, longpole, scratch):
        self.path = os.path.join(scratch, "top.jsonl")
        self.begin = time.perf_counter()
        self.process = subprocess.Popen(
            [longpole, "top", "--json", "--interval=" + INTERVAL, "--process=redis-server", "--output=" + self.path],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        _, self.stderr = self.process.communicate(timeout=60)
        self.seconds = time.perf_counter() - self.begin
        with open(self.path, encoding="utf-8") as lines:
            self.windows = [json.loads(line) for line in lines]


def measured(longpole, scratch, n):
    """(requests a second, share of a processor, records a second, windows)."""
    top = Top(longpole, scratch)
    with open("/proc/%d/stat" % top.process.pid, encoding="ascii") as stat:
        before = stat.read().rsplit(")", 1)[1].split()[11:13]
    begin = time.perf_counter()
    rate, _ = requests(n)
    seconds = time.perf_counter() - begin
    with open("/proc/%d/stat" % top.process.pid, encoding="ascii") as stat:
        after = stat.read().rsplit(")", 1)[1].split()[11:13]
    with open("/proc/%d/status" % top.process.pid, encoding="ascii") as status:
        peak = int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1))
    top.stop()
    cpu = (sum(map(int, after)) - sum(map(int, before))) / os.sysconf("SC_CLK_TCK") / seconds
    busy = [w for w in top.windows if w["records"]]
    records = max([w["records"] / (w["to_ns"] - w["from_ns"]) * 1e9 for w in busy], default=0)
    return rate, cpu, records, peak, busy


def rows(bench, longpole, scratch):
    names = ("throughput lost to longpole top", "longpole top: share of a processor", "longpole top: memory at most",
             "longpole top: records a second", "longpole top: explained share of redis-server's path")
    units = ("share", "share", "MiB", "1/s", "share")
    check = subprocess.run([longpole, "top", "--count=1", "--interval=100ms"], capture_output=True, text=True, check=False)
    if check.returncode:
        for name, unit in zip(names, units):
            bench.row(name, None, unit, why=(check.stderr.strip() or "longpole top failed").splitlines()[0][:200])
        return
    n, rounds = (100000, 3) if bench.args.quick else (400000, 7)
    plain, watched, cpu, records, memory, explained = [], [], [], [], [], []
    with redis(scratch):
        requests(n // 4)  # warm
        for _ in range(rounds):
            plain.append(requests(n)[0])
            rate, share, per_s, peak, busy = measured(longpole, scratch, n)
            watched.append(rate)
            cpu.append(share)
            records.append(per_s)
            memory.append(peak / 1024)
            explained += [w["explained_share"] for w in busy if w["paths"]]
            bench.say("%.0f requests/s, with top %.0f (%.1f %% of a processor, %.0f records/s)" % (plain[-1], rate, share * 100, per_s))
    lost = 1 - statistics.median(watched) / statistics.median(plain)
    version = benchlib.package_version("redis-server")
    noise = "spread %.0f %% without, %.0f %% with" % (benchlib.spread(plain) * 100, benchlib.spread(watched) * 100)
    bench.row(names[0], lost, units[0], LOSS_MAX, "max", "redis-server", version, rounds, noise)
    bench.row(names[1], statistics.median(cpu), units[1], runs=rounds, why="recorder and analysis together, windows of " + INTERVAL)
    bench.row(names[2], max(memory), units[2], runs=rounds)
    bench.row(names[3], statistics.median(records), units[3], runs=rounds, why="the busiest window")
    bench.row(names[4], statistics.median(explained) if explained else None, units[4], 0.95, "min", runs=rounds)
