# SPDX-License-Identifier: Apache-2.0
"""Copies of waiting threads: how long one takes, how long its original is stopped, and that a thousand looks do no harm.

Rows of bench/deadlock; the programs are those of tests/target.
"""
import os
import re
import subprocess

MEDIANS = re.compile(r"times (\d+) copies (\d+) copy_ns (\d+) ghost_ns (\d+) stopped_ns (\d+) stopped_max_ns (\d+)")
SOURCES = {"BPF": [], "ptrace": ["--ptrace"]}
GOAL_STOPPED_MS = {"BPF": 0.0, "ptrace": 0.25}


class Program:
    """One that prints READY PID, and ends with its standard input."""

    def __init__(self, path, *words):
        self.process = subprocess.Popen([path, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = next(line.split()[1] for line in self.process.stdout if line.startswith("READY"))

    def end(self):
        out = self.process.communicate(timeout=120)[0]
        return out, self.process.returncode


def looks(ahead, pid, times, words):
    """(None, medians) or (why not, None)"""
    result = subprocess.run([ahead, "--times=%d" % times, *words, pid], capture_output=True, text=True, check=False)
    found = MEDIANS.search(result.stdout)
    if not found or (not words and "without BPF" in result.stderr):
        return result.stderr.strip()[-200:] or "status %d" % result.returncode, None
    return None, [int(number) for number in found.groups()]


def bench_copies(bench, programs, times):
    for source, words in SOURCES.items():
        program = Program(os.path.join(programs, "deadlock_waits"))
        why, medians = looks(os.path.join(programs, "deadlock_ahead"), program.pid, times, words)
        program.end()
        name = "registers by %s: " % source
        if why:
            bench.row(name + "a copy run ahead to its end", None, "us", why=why)
            continue
        _, copies, copy_ns, ghost_ns, stopped_ns, stopped_max_ns = medians
        bench.row(name + "a copy run ahead to its end, median", copy_ns / 1000, "us", runs=copies)
        bench.row(name + "the ghost for a look, median", ghost_ns / 1000, "us", runs=times)
        bench.row(name + "thread stopped, median", stopped_ns / 1e6, "ms", runs=copies)
        bench.row(name + "thread stopped, worst", stopped_max_ns / 1e6, "ms", GOAL_STOPPED_MS[source], "max", runs=copies,
                  why="from when it stopped (our wait for a processor included) to PTRACE_DETACH" if words else "never attached")


def bench_harm(bench, programs, name, what, times, words):
    program = Program(os.path.join(programs, name))
    why, medians = looks(os.path.join(programs, "deadlock_ahead"), program.pid, times, words)
    out, status = program.end()
    wrong = [line for line in out.splitlines() if re.search(r"LEAK|errors [1-9]", line)]
    bad = None if why else len(wrong) + (status != 0)
    bench.row(what, bad, "errors", 0, "max", runs=times,
              why=why or "; ".join(["%d copies" % medians[1], out.strip().splitlines()[-1], *wrong]))


def bench_harmless(bench, programs, times):
    bench_harm(bench, programs, "deadlock_harm", "24 kinds of blocking calls looked at", times, [])
    bench_harm(bench, programs, "deadlock_harm", "24 kinds of blocking calls looked at, by ptrace", times // 2, ["--ptrace"])
    bench_harm(bench, programs, "deadlock_isolation", "34 ways to do harm looked at", max(5, times // 10), [])
