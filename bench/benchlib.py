# SPDX-License-Identifier: Apache-2.0
"""benchlib - what the benches share: rows and their JSON, runs side by side on a machine that others may use as well.

A machine is never quiet. Each run counts the processor time that others took meanwhile (all busy time less the run's own).
A run waits for a quiet moment, and is repeated when it shared the machine, both within limits. The rule looks at others'
time only, never at the result. Where it is allowed to, a bench gives itself the highest ordinary priority first.
"""
import argparse
import atexit
import json
import os
import resource
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

SOURCE = os.environ.get("LONGPOLE_SOURCE") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOREIGN_SHARE_MAX = 0.04
DISTURBED_SHARE_MIN = 2 * FOREIGN_SHARE_MAX
ATTEMPTS_MAX = 4
QUIET_WAIT_S = 5.0
QUIET_BUDGET_S = [120.0]  # of one bench, for waiting and repeating; then it takes what it gets


def raise_priority():
    """nice -20 for this process and all that it starts; again in a session of its own where sessions are what gets scheduled."""
    autogroup = "/proc/self/autogroup"
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        if not os.path.exists(autogroup):
            return
        if os.environ.get("LONGPOLE_BENCH_SESSION") is None and shutil.which("setsid"):
            os.environ["LONGPOLE_BENCH_SESSION"] = "1"
            sys.stdout.flush()
            os.execvp("setsid", ["setsid", "--wait", sys.executable, *sys.argv])
        with open(autogroup, "w", encoding="ascii") as file:
            file.write("-20")
    except OSError:
        pass  # not allowed: then the others' share says how good the measurement is


def keep_idle_shallow():
    """Until this process ends idle processors wake at once, as cyclictest has them; false: not allowed, or none sleeps deeper here.

    What waking a halted processor costs depends on whether something else, a recorder's samples say, wakes it now and then: the recorded
    run and the measured one would be two machines. On a virtual machine a ping-pong was 3 to 5 % faster when recorded."""
    try:
        file = os.open("/dev/cpu_dma_latency", os.O_WRONLY)
        os.write(file, struct.pack("i", 0))
    except OSError:
        return False
    return True


def find_longpole():
    candidates = [os.environ.get("LONGPOLE")]
    if os.environ.get("LONGPOLE_BUILD"):
        candidates.append(os.path.join(os.environ["LONGPOLE_BUILD"], "src", "cmd", "longpole"))
    candidates += [os.path.join(SOURCE, build, "src", "cmd", "longpole") for build in ("build-release", "build")]
    for path in candidates:
        if path and os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.abspath(path)
    sys.exit("bench: no longpole; run through ./dev bench, or set LONGPOLE")


def scratch_dir():
    path = tempfile.mkdtemp(prefix="longpole-bench-")
    atexit.register(shutil.rmtree, path, True)
    return path


def package_version(package):
    result = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True)
    return result.stdout if result.returncode == 0 and result.stdout else None


def c_compiler():
    """$CC, which may be several words."""
    return shlex.split(os.environ.get("CC", "gcc"))


def compile_c(source, output, *flags, compiler=None):
    """Builds one program of the source tree as a user would."""
    compiler = [compiler] if compiler else ["g++"] if source.endswith(".cc") else c_compiler()
    command = [*compiler, "-O2", "-g", "-fno-ipa-icf", "-D_GNU_SOURCE", "-I" + os.path.join(SOURCE, "include")]
    command += [os.path.join(SOURCE, source), "-o", output, "-pthread", *flags]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit("bench: %s\n%s" % (" ".join(command), result.stderr))


def busy_seconds():
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks[:8]
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Run:
    def __init__(self, seconds, foreign_share, stdout, status, stderr, cpu_seconds=None):
        self.seconds = seconds
        self.cpu_seconds = cpu_seconds  # of the command and all that it waited for
        self.foreign_share = foreign_share
        self.stdout = stdout
        self.status = status
        self.stderr = stderr


def run_once(command, env=None, cwd=None, timeout=300, keeps_output=True):
    """keeps_output: false for a program that writes much, which would wait for us to read it."""
    busy = busy_seconds()
    own, children = os.times(), children_seconds()
    begin = time.perf_counter()
    result = subprocess.run(command, stdout=subprocess.PIPE if keeps_output else subprocess.DEVNULL, stderr=subprocess.PIPE,
                            env=env, cwd=cwd, timeout=timeout, check=False, stdin=subprocess.DEVNULL)
    seconds = time.perf_counter() - begin
    now = os.times()
    used = sum(now[:4]) - sum(own[:4])
    foreign = max(0.0, busy_seconds() - busy - used) / (seconds * (os.cpu_count() or 1))
    return Run(seconds, foreign, result.stdout, result.returncode, result.stderr, children_seconds() - children)


def disturbed(others):
    """Why that was measured of no program alone: others' share of the machine, in the middle one of the runs that count; None: it was."""
    if others <= DISTURBED_SHARE_MIN:
        return None
    return "not measurable: others (the machine's host, too) had %.0f %% of it" % (others * 100)


def await_quiet():
    """Returns when nobody used a processor for a tenth of a second, or after QUIET_WAIT_S."""
    started = time.perf_counter()
    while time.perf_counter() < started + min(QUIET_WAIT_S, QUIET_BUDGET_S[0]):
        busy, begin = busy_seconds(), time.perf_counter()
        time.sleep(0.1)
        if busy_seconds() - busy <= 0.1 * (time.perf_counter() - begin):
            break
    QUIET_BUDGET_S[0] -= time.perf_counter() - started


def run_quiet(command, **options):
    """run_once, at a quiet moment, repeated while others used the machine; the quietest counts."""
    best = None
    for _ in range(ATTEMPTS_MAX):
        await_quiet()
        run = run_once(command, **options)
        if run.status:
            return run
        if best is None or run.foreign_share < best.foreign_share:
            best = run
        if best.foreign_share <= FOREIGN_SHARE_MAX or QUIET_BUDGET_S[0] <= 0:
            break
        QUIET_BUDGET_S[0] -= run.seconds
    return best


def stored_bytes(longpole, trace):
    """Bytes of a trace's file for each memory access in it."""
    run = subprocess.run([longpole, "ciat", "--json", trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return os.path.getsize(trace) / max(1, json.loads(run.stdout)["result"]["usage"]["data_accesses"])


def spread(values):
    """Median absolute deviation, as a share of the median."""
    middle = statistics.median(values)
    return statistics.median(abs(v - middle) for v in values) / middle if middle else 0.0


class Bench:
    def __init__(self, name, description):
        self.name = name
        self.rows = []
        self.foreign = []
        parser = argparse.ArgumentParser(prog="bench/" + name, description=description)
        parser.add_argument("--json", action="store_true", help="rows as JSON, nothing else on stdout")
        parser.add_argument("--quick", action="store_true", help="a smaller sample of the same rows")
        self.parser = parser
        self.args = None

    def parse(self):
        self.args = self.parser.parse_args()
        raise_priority()
        return self.args

    def say(self, text=""):
        if not self.args.json:
            print(text, flush=True)

    def note(self, text):
        print("%s: %s" % (self.name, text), file=sys.stderr, flush=True)

    def seen(self, run):
        self.foreign.append(run.foreign_share)
        return run

    def row(self, name, value, unit, goal=None, goal_is=None, peer=None, peer_version=None, runs=None, why=None,
            unmeasurable=None):
        """unmeasurable: why this machine could not measure it now; the goal is then neither met nor missed."""
        met = None
        if unmeasurable:
            why = "; ".join(filter(None, (unmeasurable, why)))
        elif value is not None and goal is not None:
            met = value <= goal if goal_is == "max" else value >= goal
        if isinstance(value, float):
            value = float("%.6g" % value)
        self.rows.append({"name": name, "value": value, "unit": unit, "goal": goal, "goal_is": goal_is, "met": met,
                          "peer": peer, "peer_version": peer_version, "runs": runs, "why": why})

    def finish(self):
        if self.foreign:
            shared = sum(share > FOREIGN_SHARE_MAX for share in self.foreign)
            if shared:
                self.note("others used the machine during %d of %d runs (more than %d %% of it)" %
                          (shared, len(self.foreign), FOREIGN_SHARE_MAX * 100))
        if self.args.json:
            json.dump({"bench": self.name, "rows": self.rows}, sys.stdout, indent=1)
            print()
            return
        width = max([len(row["name"]) for row in self.rows] + [4])
        print("\n%-*s  %12s %-10s %-12s %-4s %s" % (width, "row", "value", "unit", "goal", "met", "peer, runs, why"))
        for row in self.rows:
            value = "-" if row["value"] is None else "%.4g" % row["value"]
            goal = ""
            if row["goal"] is not None:
                goal = "%s %g" % ("<=" if row["goal_is"] == "max" else ">=", row["goal"])
            met = {True: "yes", False: "NO", None: "" if row["goal"] is None else "?"}[row["met"]]
            tail = []
            if row["peer"]:
                tail.append("%s %s" % (row["peer"], row["peer_version"] or ""))
            if row["runs"]:
                tail.append("%d runs" % row["runs"])
            if row["why"]:
                tail.append(row["why"])
            print("%-*s  %12s %-10s %-12s %-4s %s" % (width, row["name"], value, row["unit"] or "", goal, met, "; ".join(tail)))
