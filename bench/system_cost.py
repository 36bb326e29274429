# SPDX-License-Identifier: Apache-2.0
"""What recording the whole system costs, how many bytes an event takes, and that drops are counted.

Two threads on each processor hand a token to and fro with work in between (handoff.c): no processor is ever idle, so the recorder takes its
share from the workload. The work is chosen so that there are 200,000 (10,000) switches a second when nobody records.
"""
import os
import re
import shutil
import signal
import statistics
import subprocess
import time

from benchlib import compile_c, package_version, spread

GOALS = {("sched", 200000): 10.0, ("full", 200000): 15.0, ("sched", 10000): 1.0}
GOAL_BYTES = 6.0
EVENTS_A_SECOND, EVENTS_A_HANDOFF = 1e6, 3.4  # 4.7 of --full are recorded of one; that makes it slower than it was unrecorded
RECORDERS = {
    "sched": ["record", "--system", "--sched"],
    "full": ["record", "--system", "--full"],
    "sched, perf rings": ["record", "--system", "--sched", "--source=perf"],
}


class Recorder:
    """One that runs beside a workload; None as command: nobody records."""

    def __init__(self, command, trace):
        self.trace, self.process, self.text = trace, None, ""
        if not command:
            return
        if os.path.exists(trace):
            os.unlink(trace)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True)
        deadline = time.monotonic() + 10
        while not os.path.exists(trace) and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.1)

    def stop(self):
        if not self.process:
            return
        self.process.send_signal(signal.SIGINT)
        self.text = self.process.communicate(timeout=60)[1]


def number(command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return float(result.stdout) if result.returncode == 0 and result.stdout.strip() else None


def iterations_for(program, rate):
    """Of work between two handoffs, so that there are `rate` of them a second."""
    few, many = 0, 20000
    a, b = (1.0 / max(number([program, "0.5", str(n)]) for _ in range(2)) for n in (few, many))
    each = (b - a) / (many - few)
    return max(0, int((1.0 / rate - a) / each))


def perf_record(scratch):
    if not shutil.which("perf"):
        return None, None
    trace = os.path.join(scratch, "perf.data")
    return ["perf", "record", "-q", "-a", "-e", "sched:sched_switch,sched:sched_waking", "-o", trace], trace


def side_by_side(variants, run, rounds):
    """{name: [rate]}: in turns; the text of the last recording of each."""
    rates, texts = {name: [] for name in variants}, {}
    for _ in range(rounds):
        for name, (command, trace) in variants.items():
            recorder = Recorder(command, trace)
            rate = run()
            recorder.stop()
            texts[name] = recorder.text
            if rate is not None:
                rates[name].append(rate)
    return rates, texts


def slower(rates, name):
    """Percent, of each round against its own unrecorded run; the median and how far they are apart."""
    percents = [100 * (1 - recorded / bare) for recorded, bare in zip(rates[name], rates["none"])]
    return (statistics.median(percents), percents) if percents else (None, [])


def variants_of(longpole, scratch, names, with_perf):
    variants = {"none": (None, "")}
    for name in names:
        trace = os.path.join(scratch, "system-%s.lpt" % re.sub(r"\W", "-", name))
        variants[name] = ([longpole, *RECORDERS[name], "-o", trace], trace)
    command, trace = perf_record(scratch) if with_perf else (None, None)
    if command:
        variants["perf record"] = (command, trace)
    return variants


def why_of(texts, name, percents, rate):
    refused = re.search(r"error: (.*)", texts.get(name) or "")
    if refused:
        return refused.group(1)
    return "%.0f switches/s unrecorded; rounds %s" % (rate, " ".join("%.1f" % p for p in percents))


def bench_switches(bench, longpole, scratch, rate, names, with_perf):
    rounds, seconds = (3, "1") if bench.args.quick else (9, "3")
    program = os.path.join(scratch, "handoff")
    if not os.path.exists(program):
        compile_c("bench/handoff.c", program)
    iterations = iterations_for(program, rate)
    variants = variants_of(longpole, scratch, names, with_perf)
    rates, texts = side_by_side(variants, lambda: number([program, seconds, str(iterations)]), rounds)
    bare = statistics.median(rates["none"])
    for name in variants:
        if name == "none":
            continue
        percent, percents = slower(rates, name)
        peer = "perf record" if name == "perf record" else None
        bench.row("%d switches/s, %s: slower" % (rate, name), percent, "%", GOALS.get((name, rate)),
                  "max" if (name, rate) in GOALS else None, peer=peer,
                  peer_version=package_version("linux-perf") if peer else None, runs=len(percents),
                  why=why_of(texts, name, percents, bare))
    return variants, texts


def events_of(text):
    found = re.search(r"kernel events: (\d+) through (\w+)", text or "")
    return int(found.group(1)) if found else None


def bench_bytes(bench, variants, texts):
    for name in ("sched", "full"):
        events = events_of(texts.get(name))
        if not events:
            bench.row("bytes an event on disk, %s" % name, None, "bytes", GOAL_BYTES, "max", why="no recording")
            continue
        size = os.path.getsize(variants[name][1])
        bench.row("bytes an event on disk, %s" % name, size / events, "bytes", GOAL_BYTES, "max",
                  why="%d events, %d bytes; a switch is two records" % (events, size))


def bench_drops(bench, longpole, scratch):
    """A million events a second, which the reader must keep up with; then as fast as the machine can switch; then with a reader that stands
    still: what does not fit must be counted."""
    program, trace = os.path.join(scratch, "handoff"), os.path.join(scratch, "drops.lpt")
    command = [longpole, *RECORDERS["full"], "-o", trace]
    goal_rate = iterations_for(program, EVENTS_A_SECOND / EVENTS_A_HANDOFF)
    for name, iterations, stopped in (("a million a second", goal_rate, False), ("as many as the machine makes", 0, False),
                                      ("as many, a reader that is stopped for 2 s", 0, True)):
        recorder = Recorder(command, trace)
        begin = time.monotonic()
        load = subprocess.Popen([program, "3", str(iterations)], stdout=subprocess.DEVNULL)
        if stopped:
            time.sleep(0.5)
            recorder.process.send_signal(signal.SIGSTOP)
            time.sleep(2)
            recorder.process.send_signal(signal.SIGCONT)
        load.wait()
        seconds = time.monotonic() - begin
        recorder.stop()
        events = events_of(recorder.text)
        found = re.search(r"caveat: (\d+) kernel_dropped", recorder.text)
        lost = int(found.group(1)) if found else 0
        has_goal = iterations > 0
        if events is None:
            bench.row("events dropped, " + name, None, "events", 0 if has_goal else None, "max" if has_goal else None,
                      why=recorder.text.strip()[-200:] or "no recording")
            continue
        bench.row("events dropped, " + name, lost, "events", 0 if has_goal else None, "max" if has_goal else None,
                  why="%.0f events/s written, %.0f/s offered%s" % (
                      events / seconds, (events + lost) / seconds, "" if has_goal else "; dropped ones must be counted, not silent"))


class Namespaces:
    """Two, joined by a veth; why: None, or why not."""

    NAMES = ("longpole-bench-a", "longpole-bench-b")

    def __init__(self):
        self.why = None
        a, b = self.NAMES
        for words in (["netns", "add", a], ["netns", "add", b],
                      ["link", "add", "lpb0", "netns", a, "type", "veth", "peer", "name", "lpb1", "netns", b],
                      ["-n", a, "addr", "add", "10.213.0.1/24", "dev", "lpb0"],
                      ["-n", b, "addr", "add", "10.213.0.2/24", "dev", "lpb1"],
                      ["-n", a, "link", "set", "lpb0", "up"], ["-n", b, "link", "set", "lpb1", "up"]):
            try:
                result = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
            except OSError as error:
                self.why = str(error)
                return
            if result.returncode:
                self.why = "ip %s: %s" % (" ".join(words[:2]), result.stderr.strip())
                return

    def close(self):
        for name in self.NAMES:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def bench_tcp(bench, longpole, scratch):
    rounds, seconds = (3, "1") if bench.args.quick else (7, "3")
    program = os.path.join(scratch, "tcp_rr")
    compile_c("bench/tcp_rr.c", program)
    spaces = Namespaces()
    try:
        if spaces.why:
            bench.row("TCP request/response, full: slower", None, "%", why=spaces.why)
            return
        a, b = spaces.NAMES

        def run():
            server = subprocess.Popen(["ip", "netns", "exec", b, program, "serve", "10.213.0.2"])
            rate = number(["ip", "netns", "exec", a, program, "ask", "10.213.0.2", seconds])
            server.kill()
            server.wait()
            return rate

        variants = variants_of(longpole, scratch, ["sched", "full"], False)
        rates, texts = side_by_side(variants, run, rounds)
        for name in ("sched", "full"):
            percent, percents = slower(rates, name)
            events = events_of(texts[name])
            bench.row("TCP request/response, %s: slower" % name, percent, "%", runs=len(percents),
                      why="%.0f round trips/s unrecorded (spread %.0f %%); %s events; every event of a message is on one path" % (
                          statistics.median(rates["none"]), 100 * spread(rates["none"]), events))
    finally:
        spaces.close()


def rows(bench, longpole, scratch):
    bench.note("cost: 200,000 switches/s")
    variants, texts = bench_switches(bench, longpole, scratch, 200000, list(RECORDERS), True)
    bench_bytes(bench, variants, texts)
    bench.note("cost: 10,000 switches/s")
    bench_switches(bench, longpole, scratch, 10000, ["sched", "full"], False)
    bench.note("drops")
    bench_drops(bench, longpole, scratch)
    bench.note("TCP in namespaces")
    bench_tcp(bench, longpole, scratch)
