#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deadlock_ahead.py - copies of waiting threads, run ahead: they see what comes, and nothing of them is seen.

Prints ok, not ok or skip lines; tests/target/run.sh calls it. Needs LONGPOLE_BUILD.
"""
import glob
import os
import random
import re
import subprocess
import sys
import time

PROGRAMS = os.path.join(os.environ["LONGPOLE_BUILD"], "tests", "target")
AHEAD = os.path.join(PROGRAMS, "deadlock_ahead")
LINE = re.compile(r'^(\d+) (\w+) (\w+) "([^"]*)" calls=(\d+) elapsed_ns=(\d+) stopped_ns=(\d+) events=(\S*) again=(\S*) would=(.*)')


class Program:
    """One that prints READY PID, and ends with its standard input."""

    def __init__(self, name, *words):
        self.process = subprocess.Popen([os.path.join(PROGRAMS, name), *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.said = []
        for line in self.process.stdout:
            if line.startswith("READY"):
                self.pid = int(line.split()[1])
                return
            self.said.append(line.split())
        raise RuntimeError("%s did not start" % name)

    def end(self):
        out, _ = self.process.communicate(timeout=120)
        return out, self.process.returncode


class Refused(Exception):
    """This machine makes no copies."""


def ahead(*words):
    """{tid: (kind, end, why, [event], again, would, stopped_ns)}"""
    result = subprocess.run([AHEAD, *map(str, words)], capture_output=True, text=True, timeout=240, check=False)
    if result.returncode == 2:
        raise Refused(result.stderr.strip())
    if result.returncode:
        raise AssertionError("deadlock_ahead: status %d: %s" % (result.returncode, result.stderr.strip()))
    found = {}
    for line in result.stdout.splitlines():
        match = LINE.match(line)
        if match:
            tid, kind, end, why, _, _, stopped, events, again, would = match.groups()
            found[int(tid)] = (kind, end, why, re.findall(r"\w+\[[^]]*\]", events), again, would, int(stopped))
    return found, result.stderr


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def looks_until(check, seconds=60):
    """A thread may not wait yet, or just have been moved: it is looked at again until the check is content."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise


def until_asleep(pid):
    while True:
        states = []
        for path in glob.glob("/proc/%d/task/*/stat" % pid):
            with open(path, encoding="utf-8") as file:
                states.append(file.read().rsplit(")", 1)[1].split()[0])
        if set(states) == {"S"}:
            return
        time.sleep(0.001)


def check_known(program, found, refused):
    for tid, kind, *event in program.said:
        expect(int(tid) in found, "thread %s (%s) was not run ahead" % (tid, kind))
        got = found[int(tid)]
        if got[1] in refused:
            continue
        expect(got[0] == kind, "thread %s: %s instead of %s" % (tid, got[0], kind))
        if event[0] == "forced":
            expect(got[1] == "BLOCKED" and not any("EVENTFD" in e for e in got[3]),
                   "an unforced predicate: %s" % (got,))
        else:
            expect(event[0] in got[3], "%s %s would %s, not %s (%s %s)" % (tid, kind, event[0], got[3], got[1], got[2]))


def test_known():
    """Each kind of wait, satisfied: the event that the program itself says would follow."""
    program = Program("deadlock_waits")

    def plain():
        found, without = ahead(program.pid)
        check_known(program, found, ["REFUSED"] if without else [])
        expect(without or any('hello' in f[5] for f in found.values()), "what would be written is not kept")
        expect(without or all(f[6] == 0 for f in found.values()), "a thread was stopped although BPF read its registers")

    def forced():
        found, _ = ahead("--branch=1", program.pid)
        conditions = [f for f in found.values() if f[0] == "CONDITION"]
        expect(any("EVENTFD_DATA" in e for f in conditions for e in f[3]), "a forced predicate: %s" % conditions)

    try:
        looks_until(plain)
        looks_until(forced)
    finally:
        program.end()


def test_ptrace():
    """The same with registers by ptrace; but nobody stops a write that is half done."""
    program = Program("deadlock_waits")

    def check():
        found, _ = ahead("--ptrace", program.pid)
        check_known(program, found, ["REFUSED"])
        refused = [f[0] for f in found.values() if f[1] == "REFUSED"]
        expect(refused == ["WRITE"], "refused: %s" % refused)

    try:
        looks_until(check)
        looks_until(check)
    finally:
        program.end()


def test_spin():
    """Two spinners: proven, let out, and seen to write what the other polls."""
    if subprocess.run([AHEAD, "--can-watch"], check=False).returncode:
        raise Refused("debug registers do not stop a process here")
    program = Program("deadlock_waits", "spin")

    def check():
        found, _ = ahead("--spin", program.pid)
        for tid, kind, event in program.said:
            got = found.get(int(tid))
            expect(got and got[0] == kind, "thread %s is not proven to spin" % tid)
            expect(event in got[3], "%s would %s, not %s" % (tid, event, got[3]))

    try:
        looks_until(check)
    finally:
        program.end()


def memory_of(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        return [int(line.split()[1]) for line in file if re.match("VmRSS|VmPTE|RssAnon|RssShmem", line)]


def looks_at(name, times, words=(), sleeps=False):
    program = Program(name)
    if sleeps:
        until_asleep(program.pid)
    before = memory_of(program.pid)
    try:
        ahead("--times=%d" % times, *words, program.pid)
        after = memory_of(program.pid)
    finally:
        out, status = program.end()
    return out, status, before, after


def test_harm():
    """24 kinds of blocking calls see no difference."""
    out, status, _, _ = looks_at("deadlock_harm", 40)
    expect(status == 0, out)


def test_harm_ptrace():
    """Nor when they are stopped for a moment."""
    out, status, _, _ = looks_at("deadlock_harm", 15, ["--ptrace"])
    expect(status == 0, out)


def test_isolation():
    """Copies that would write, kill, unlink, fork, exec, crash, loop and eat memory: nothing is seen outside."""
    out, status, before, after = looks_at("deadlock_isolation", 2, sleeps=True)
    expect(status == 0, out)
    if os.geteuid() == 0: # else pages of files are read through the process; less is the machine's doing
        expect(all(a <= b for a, b in zip(after, before)), "memory of the process: %s, then %s" % (before, after))


def ghosts(sessions):
    """Copies that were made in these sessions: others may be looking, too."""
    found = []
    for link in glob.glob("/proc/[0-9]*/exe"):
        try:
            if "longpole-ghost" in os.readlink(link) and os.getsid(int(link.split("/")[2])) in sessions:
                found.append(link)
        except OSError:
            pass
    return found


def test_killed():
    """Whoever looks may be killed at any moment: the program goes on, and no copy is left."""
    program = Program("deadlock_harm")
    rng = random.Random(1)
    sessions = set()
    try:
        ahead(program.pid)
        for _ in range(12):
            with subprocess.Popen([AHEAD, "--times=1000", str(program.pid)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, start_new_session=True) as looker:
                time.sleep(rng.uniform(0.01, 0.15))
                sessions.add(looker.pid)
                looker.kill()
    finally:
        out, status = program.end()
    expect(status == 0, out)
    deadline = time.monotonic() + 60
    while ghosts(sessions) and time.monotonic() < deadline:
        time.sleep(0.01)
    expect(not ghosts(sessions), "copies are left: %s" % ghosts(sessions))


def main():
    tests = [(name[5:], f) for name, f in sorted(globals().items()) if name.startswith("test_")]
    status = 0
    for name, test in tests:
        if len(sys.argv) > 1 and "deadlock_ahead_" + name not in sys.argv[1:] and "deadlock_ahead" not in sys.argv[1:]:
            continue
        try:
            test()
            print("ok deadlock_ahead_" + name)
        except Refused as why:
            print("skip deadlock_ahead_%s: %s" % (name, why))
        except (AssertionError, RuntimeError, subprocess.SubprocessError) as why:
            print("not ok deadlock_ahead_%s: %s" % (name, why))
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
