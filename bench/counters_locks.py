# SPDX-License-Identifier: Apache-2.0
"""counters_locks - rows of bench/counters: what counting and recording locks costs, a pair and a program.

The floor is a lock and unlock with two bare rdtsc between: what any tool that times holds has to pay.
"""
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import time

from benchlib import compile_c, package_version, run_quiet, spread
from servers import SERVERS

GOAL_DEFAULT_NS, GOAL_FLOOR_RATIO = 8, 1.3
# how a program's locks are recorded: options, goal in % of processor time
APP = {
    "sampled": (["--locks=sampled"], 3),
    "sampled, heap named": (["--locks=sampled", "--heap"], 3),  # what longpole locks -- PROG does
    "holds": (["--locks=holds"], 8),  # two stamps a pair, added up in the program
    "stamps": (["--locks=stamps"], 8),  # two stamps a pair, and a record of each
}
PROGRAMS = ("redis", "memcached", "memcached-batches", "mariadb")
CONTROL, FLOOR = "unrecorded again", "two bare stamps a pair"
SAMPLED_S, LOADED_S, STARTS = 5, 120, 4
MODES = ("count", "sampled", "holds", "stamps", "full")


def first_number(run):
    words = run.stdout.split()
    return float(words[0]) if not run.status and words else None


def bench_pairs(bench, longpole, scratch, quick):
    cost, reads = os.path.join(scratch, "lock_cost"), os.path.join(scratch, "lock_reads")
    compile_c("bench/lock_cost.c", cost)
    compile_c("bench/lock_reads.c", reads, "-ldl")
    bursts = "--bursts=%d" % (60 if quick else 200)
    trace, uftrace_dir = os.path.join(scratch, "pair.lpt"), os.path.join(scratch, "uftrace-pair")
    variants = {"bare": [cost, bursts], "floor": [cost, bursts, "--floor=1"]}
    for mode in MODES:
        variants[mode] = [longpole, "record", "-q", "--locks=" + mode, "--sample-hz=0", "--no-switches", "-o", trace, "--", cost, bursts]
    variants.update({"perf read": [reads, "perf"], "PAPI_read": [reads, "papi"], "PAPI_get_virt_nsec": [reads, "papi-time"],
                      "CLOCK_THREAD_CPUTIME_ID": [reads, "cputime"]})
    if shutil.which("uftrace"):
        variants["uftrace"] = ["uftrace", "record", "--force", "--no-event", "-d", uftrace_dir, cost, "--bursts=10"]
    if shutil.which("ltrace"):
        variants["ltrace"] = ["ltrace", "-e", "pthread_mutex_lock+pthread_mutex_unlock", "-o", "/dev/null", cost, "--bursts=3", "--pairs=300"]
    runs = 3 if quick else 9
    ns, why, lttng = {name: [] for name in variants}, {}, None
    record = os.path.join(os.path.dirname(__file__), "record")
    if shutil.which("lttng") and shutil.which("lttng-sessiond"):
        from importlib.machinery import SourceFileLoader
        from importlib.util import module_from_spec, spec_from_loader
        spec = spec_from_loader("bench_record", SourceFileLoader("bench_record", record))
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        lttng = module.Lttng(scratch)
        why["LTTng-UST"], ns["LTTng-UST"] = lttng.why, []
    for _ in range(runs):
        for name, command in variants.items():
            run = bench.seen(run_quiet(command))
            value = first_number(run)
            if value is None:
                why[name] = run.stderr.decode(errors="replace").strip()[-160:] or "exit status %d" % run.status
            else:
                ns[name].append(value)
        if lttng and not lttng.why:
            value = first_number(bench.seen(run_quiet([cost, bursts], env=lttng.environment())))
            if value is not None:
                ns["LTTng-UST"].append(value)
    if lttng:
        lttng.close()
    bare = statistics.median(ns["bare"])
    added = {name: statistics.median(values) - bare for name, values in ns.items() if values}
    bench.row("lock and unlock, bare", bare, "ns", runs=runs)
    bench.row("floor: two bare rdtsc, added", added["floor"], "ns", runs=runs)
    for mode in MODES:
        if mode not in added:
            bench.row("locks %s, added" % mode, None, "ns", why=why.get(mode))
            continue
        goal = (GOAL_DEFAULT_NS, "max") if mode in ("count", "sampled") else (None, None)
        bench.row("locks %s, added" % mode, added[mode], "ns", *goal, runs=runs, why="spread %.1f %%" % (spread(ns[mode]) * 100))
    for mode in ("holds", "stamps"):
        if mode in added:
            bench.row("locks %s, pair / the floor's pair" % mode, (added[mode] + bare) / (added["floor"] + bare), "ratio", GOAL_FLOOR_RATIO,
                      "max", runs=runs)
            bench.row("locks %s, added / the floor's" % mode, added[mode] / added["floor"], "ratio", runs=runs)
    packages = {"uftrace": "uftrace", "LTTng-UST": "liblttng-ust1", "ltrace": "ltrace", "PAPI_read": "libpapi7.0", "PAPI_get_virt_nsec": "libpapi7.0", "perf read": None,
                "CLOCK_THREAD_CPUTIME_ID": None}
    for name, package in packages.items():
        version = package_version(package) if package else os.uname().release
        if name in added and "sampled" in added:
            bench.row("%s, added" % name, added[name], "ns", peer=name, peer_version=version, runs=runs)
            bench.row("%s, added / locks sampled" % name, added[name] / max(added["sampled"], 0.1), "ratio", peer=name,
                      peer_version=version, runs=runs)
        else:
            bench.row("%s, added" % name, None, "ns", peer=name, peer_version=version, why=why.get(name) or name + " is not installed")


def run_load(server):
    """(operations a second, processor time an operation in us, operations), or None."""
    before = server.cpu_seconds()
    load = server.load()
    cpu = server.cpu_seconds() - before
    return (load[0] / load[1], cpu / load[0] * 1e6, load[0]) if load else None


def share_inside(server, prefix, place):
    """% of the server's samples that are in longpole's libraries: at least so much it pays, however noisy the machine is; None: no perf."""
    data = os.path.join(place, "perf.data")
    if not shutil.which("perf") or not server.start(prefix):
        return None
    with subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", "2000", "-o", data, "-p", ",".join(map(str, server.pids()))],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as perf:
        until = time.monotonic() + SAMPLED_S  # perf needs a while to begin
        while time.monotonic() < until:
            server.load()
        perf.send_signal(signal.SIGINT)
    server.stop()
    report = subprocess.run(["perf", "report", "-i", data, "--stdio", "--sort", "dso"], capture_output=True, text=True, check=False).stdout
    return sum(float(share) for share in re.findall(r"([0-9.]+)% +liblongpole-", report)) if "%" in report else None


def pairs_of(longpole, trace, operations):
    """Pairs of lock and unlock an operation, of a trace that counts; None: not known."""
    run = subprocess.run([longpole, "locks", "--json", trace], capture_output=True, check=False)
    if run.returncode:
        return None
    result = json.loads(run.stdout)["result"]
    return sum(lock["acquisitions"] for lock in result["locks"]) / operations


def prefix_of(longpole, mode, place):
    if mode == FLOOR:
        library = os.path.join(place, "lock_floor.so")
        compile_c("bench/lock_floor.c", library, "-shared", "-fPIC", "-fno-plt", "-Wl,-z,now")
        return ["env", "LD_PRELOAD=" + library]
    trace = os.path.join(place, "app.lpt")
    return [longpole, "record", "-q", "--sample-hz=0", "--no-switches", *APP[mode][0], "-o", trace, "--"] if mode in APP else []


class Variants:
    """A server as it is, the same again (what their difference is, is noise), and recorded in each mode, and
    with the least that times locks at all: all at once, loaded in turns."""

    def __init__(self, name, modes, longpole, scratch):
        self.servers, self.operations, self.longpole, self.why = {}, 0, longpole, None
        self.random, self.counted = random.Random(1), next(iter(modes))
        for mode in (None, CONTROL, FLOOR, *modes):
            place = os.path.join(scratch, name, (mode or "bare").replace(" ", "-").replace(",", ""))
            os.makedirs(place, exist_ok=True)
            self.servers[mode] = server = SERVERS[name](place, True)  # short loads, and many
            if not server.why:
                server.prepare()
            self.why = self.why or server.why

    def start(self):
        self.operations = 0
        for mode, server in self.servers.items():
            if not self.why and not server.start(prefix_of(self.longpole, mode, server.scratch)):
                self.why = server.why

    def round(self):
        """What run_load() says of each, or None; the order is random, since what ran before changes what it finds in the caches."""
        order, result = list(self.servers), {}
        self.random.shuffle(order)
        for mode in order:
            result[mode] = run_load(self.servers[mode])
        self.operations += result[self.counted][2] if result[self.counted] else 0
        return result if all(result.values()) else None

    def stop(self):
        for server in self.servers.values():
            server.stop()


def rounds_of(variants, quick):
    """Two of the same server differ by some percent for as long as they run (what lies where in memory): so each is started several times."""
    runs = []
    for _ in range(0 if variants.why else STARTS):
        variants.start()
        until = time.monotonic() + LOADED_S / (3 if quick else 1) / STARTS
        if not variants.why:
            variants.round()  # warms up
        while not variants.why and time.monotonic() < until:
            runs.append(variants.round())
        variants.stop()
    return [run for run in runs if run]


def interval_of_median(values):
    """In which 95 % of the medians of values drawn anew are."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(1000))
    return medians[25], medians[974]


def bench_programs(bench, longpole, scratch, quick):
    """More processor time an operation: it counts what the recorder adds in the program, and a busy machine changes it little."""
    app = {mode: of for mode, of in APP.items() if not bench.args.mode or mode == bench.args.mode}
    for name in PROGRAMS if not bench.args.program else [bench.args.program]:
        began, floor, inside = time.monotonic(), 0, {}
        variants = Variants(name, app, longpole, scratch)
        runs = rounds_of(variants, quick)
        if runs:
            counted = variants.servers[variants.counted]
            pairs = pairs_of(longpole, os.path.join(counted.scratch, "app.lpt"), variants.operations)
            floor = statistics.median((run[FLOOR][1] / run[None][1] - 1) * 100 for run in runs)
            inside = {mode: share_inside(variants.servers[mode], prefix_of(longpole, mode, variants.servers[mode].scratch),
                                         variants.servers[mode].scratch) for mode in app}
        bench.note("%s took %.0f s" % (name, time.monotonic() - began))
        for mode, (_options, goal) in {CONTROL: ([], None), FLOOR: ([], None), **app}.items():
            if goal and floor > goal:
                goal = None  # nobody who times locks can: the row says what the floor is
            if inside.get(mode) is not None:
                bench.row("%s under load, locks %s: samples in longpole's libraries" % (name, mode), inside[mode], "%", goal, "max", runs=1,
                          peer="perf", peer_version=package_version("linux-perf"))
            row = "%s under load, %s%s: more processor time an operation" % (name, "locks " if mode in APP else "", mode)
            package = SERVERS[name].package
            if not runs:
                bench.row(row, None, "%", goal, "max", why=variants.why or "no load came through")
                continue
            more = [(run[mode][1] / run[None][1] - 1) * 100 for run in runs]
            fewer = [(1 - run[mode][0] / run[None][0]) * 100 for run in runs]
            low, high = interval_of_median(more)
            least = "; %.2f pairs of lock and unlock an operation" % pairs if pairs and mode == FLOOR else ""
            bench.row(row, statistics.median(more), "%", goal, "max" if goal else None, runs=len(more),
                      why="95 %% interval %.1f to %.1f; %s %s, %.1f us an operation; %.1f %% fewer operations a second" % (
                          low, high, package, package_version(package),
                          statistics.median(run[None][1] for run in runs), statistics.median(fewer)) + least)


def bench_exact(bench, longpole, scratch, quick):
    """Counts beside the program's own: tests/exact."""
    del scratch, quick
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    result = subprocess.run([os.path.join(source, "tests", "exact", "run.sh")], capture_output=True, text=True, check=False, timeout=600,
                            env=dict(os.environ, LONGPOLE=longpole))
    lines = result.stdout.splitlines()
    good = sum(line.startswith("ok ") for line in lines)
    bad = [line for line in lines if line.startswith("not ok")]
    bench.row("exact counts: ways of locking that differ", len(bad), "ways", 0, "max", runs=1, why="%d agree%s" % (good, "; " + bad[0] if bad else ""))


PARTS = {"locks": bench_pairs, "programs": bench_programs, "exact": bench_exact}
