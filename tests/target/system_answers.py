#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""system_answers - records each program of system/answers.tsv with --system, and asks whether the path has the known edges; then those of
system/elided.tsv, and whether they take as long as predicted when they do not wait any more.

Prints `ok NAME`, `not ok NAME: why` or `skip NAME: reason`. Only shares of the path are asserted. A machine that others use at the
same time takes processors away, so a test that fails is tried again; when it fails while others take a tenth of the machine
or more, it counts as skipped.
"""
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
from benchlib import busy_seconds  # noqa: E402 (needs the path)

ATTEMPTS = 3
FOREIGN_SHARE_MAX = 0.10
SKIP = 77  # roles.h
ELIDED_ERROR_MAX = 0.15  # of the recorded time
DISK_BYTES_PER_S = 4 << 20
QUOTA_US, PERIOD_US = 5000, 20000


class Skip(Exception):
    pass


def answers():
    """{name: (setup, command, [(actor, kinds, least, most)])}, in the file's order."""
    result = {}
    with open(os.path.join(HERE, "system", "answers.tsv"), encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                name, setup, command, actor, kinds, least, most = line.rstrip("\n").split("\t")
                result.setdefault(name, (setup, command.split(), []))[2].append((actor, kinds.split(","), float(least), float(most)))
    return result


def elisions():
    """[(name, setup, command, state, changed command)], in the file's order."""
    with open(os.path.join(HERE, "system", "elided.tsv"), encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if line.strip() and not line.startswith("#")]
    return [(name, setup, command.split(), state, changed.split()) for name, setup, command, state, changed in rows]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Skip("%s: %s" % (command[0], (done.stderr.strip() or "exit status %d" % done.returncode)[-200:]))
    return done.stdout.strip()


def put(path, text):
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as e:
        raise Skip("%s: %s" % (path, e.strerror)) from e


def cgroup(controller):
    """A new group's directory; version 1 or 2, whichever has the controller."""
    name = "longpole-test-%d" % os.getpid()
    for top in (os.path.join("/sys/fs/cgroup", controller), "/sys/fs/cgroup"):
        with contextlib.suppress(OSError, Skip):
            if top == "/sys/fs/cgroup":
                put(os.path.join(top, "cgroup.subtree_control"), "+" + {"blkio": "io"}.get(controller, controller))
            os.mkdir(os.path.join(top, name))
            return os.path.join(top, name)
    raise Skip("no cgroup with %s can be made here" % controller)


@contextlib.contextmanager
def setup_none(_scratch):
    yield [], []


@contextlib.contextmanager
def setup_fifo(_scratch):
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(30))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except OSError as e:
        raise Skip("SCHED_FIFO: %s" % e.strerror) from e
    yield [], []


@contextlib.contextmanager
def in_group(group):
    """The program moves itself; the recorder stays outside."""
    try:
        yield ["sh", "-c", 'echo $$ >"$0" && exec "$@"', os.path.join(group, "cgroup.procs")]
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                os.rmdir(group)
                break
            time.sleep(0.02)


@contextlib.contextmanager
def setup_quota(_scratch):
    group = cgroup("cpu")
    with in_group(group) as prefix:
        if os.path.exists(os.path.join(group, "cpu.max")):
            put(os.path.join(group, "cpu.max"), "%d %d" % (QUOTA_US, PERIOD_US))
        else:
            put(os.path.join(group, "cpu.cfs_period_us"), str(PERIOD_US))
            put(os.path.join(group, "cpu.cfs_quota_us"), str(QUOTA_US))
        yield prefix, []


@contextlib.contextmanager
def setup_disk(scratch):
    """A loop device that a cgroup may read and write at DISK_BYTES_PER_S only, however fast the disk below is."""
    image = os.path.join(scratch, "disk.img")
    with open(image, "wb") as file:
        file.truncate(16 << 20)
    device = run("losetup", "--find", "--show", image)
    try:
        number = os.stat(device).st_rdev
        limit = "%d:%d " % (os.major(number), os.minor(number))
        group = cgroup("blkio")
        with in_group(group) as prefix:
            if os.path.exists(os.path.join(group, "io.max")):
                put(os.path.join(group, "io.max"), limit + "rbps=%d wbps=%d" % (DISK_BYTES_PER_S, DISK_BYTES_PER_S))
            else:
                for way in ("read", "write"):
                    put(os.path.join(group, "blkio.throttle.%s_bps_device" % way), limit + str(DISK_BYTES_PER_S))
            yield prefix, ["--file=" + device]
    finally:
        subprocess.run(["losetup", "--detach", device], check=False)


SETUPS = {"": setup_none, "fifo": setup_fifo, "quota": setup_quota, "disk": setup_disk, "full": setup_none}


def share(result, program, actor, kinds):
    """Of the path, but for what processors did for programs that are none of ours; None: not known."""
    others = re.compile("waiting for a processor that (?!%s had)" % re.escape(program))
    steps = [s for s in result["steps"] if s["kind"] != "runnable" or not others.match(s["state"])]
    length = sum(s["increment_ns"] for s in steps)
    if not length:
        return None
    if kinds == ["unexplained"]:
        return sum(s.get("unexplained_ns", s["increment_ns"] if s["kind"] == "blocked" else 0) for s in steps) / length
    return sum(s["increment_ns"] for s in steps if re.search(actor, s["actor"] + ": " + s["state"]) and (kinds == ["*"] or s["kind"] in kinds)) / length


def judge(result, program, demands):
    """None when the answer is the known one, else why not."""
    for actor, kinds, least, most in demands:
        got = share(result, program, actor, kinds)
        if got is None:
            return "the path is empty"
        if not least <= got <= most:
            return "%s of %s has %.1f %% of the path, not %.0f to %.0f %%" % (
                "/".join(kinds), actor, got * 100, least * 100, most * 100)
    return None


def record(longpole, command, options, trace):
    """(why it failed or None, share of the machine that others took)."""
    busy, own, begin = busy_seconds(), os.times(), time.perf_counter()
    done = subprocess.run([longpole, "record", "--system", *options, "-o", trace, "--", *command], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=120)
    elapsed, now = time.perf_counter() - begin, os.times()
    foreign = (busy_seconds() - busy - sum(now[:4]) + sum(own[:4])) / elapsed / (os.cpu_count() or 1)
    if done.returncode in (SKIP, 125):
        raise Skip(done.stderr.strip()[-200:])
    if done.returncode:
        return "longpole record: exit status %d: %s" % (done.returncode, done.stderr.strip()[-300:]), foreign
    return None, foreign


def attempt(longpole, binary, options, prefix, trace, demands, recording):
    """(why it failed or None, share of the machine that others took)."""
    why, foreign = record(longpole, [*prefix, binary, *options], recording, trace)
    if why:
        return why, foreign
    # The path ends with the program that was started, the waiter, whoever else runs on the system.
    done = subprocess.run([longpole, "path", "--all", "--json", trace], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        return "longpole path: exit status %d: %s" % (done.returncode, done.stderr.strip()[-300:]), foreign
    return judge(json.loads(done.stdout)["result"], os.path.basename(binary), demands), foreign


def elide(longpole, binary, options, prefix, trace, state, changed):
    """Predicts what is left without the wait, and measures it: (why that is another time or None, share of the machine that others took)."""
    why, foreign = record(longpole, [*prefix, binary, *options], ["--full"], trace)
    if why:
        return why, foreign
    done = subprocess.run([longpole, "whatif", "--json", "--method=path", trace, "elide", state], capture_output=True, text=True, check=False,
                          timeout=120)
    if done.returncode:
        return "longpole whatif: exit status %d: %s" % (done.returncode, done.stderr.strip()[-300:]), foreign
    result = json.loads(done.stdout)["result"]
    why, others = record(longpole, [*prefix, binary, *changed], ["--full"], trace)
    if why:
        return why, others
    before, predicted = result["elapsed_ns"], result["scenarios"][0]["predicted_ns"]
    after = json.loads(run(longpole, "report", "--json", trace))["result"]["elapsed_ns"]
    if abs(predicted - after) <= ELIDED_ERROR_MAX * before:
        return None, foreign
    return "of %.0f ms %.0f were to be left without %s, and %.0f are" % (before / 1e6, predicted / 1e6, state, after / 1e6), max(foreign, others)


def one(longpole, build, name, setup, program, judged):
    """A line of output, and whether it failed. judged(binary, prefix, options of the setup, trace): as attempt()."""
    binary = os.path.join(build, program)
    if not os.path.exists(binary):
        return "skip %s: %s was not built" % (name, program), False
    whys, foreign = [], []
    try:
        with tempfile.TemporaryDirectory() as scratch, SETUPS[setup](scratch) as (prefix, more):
            for _ in range(ATTEMPTS):
                why, others = judged(binary, prefix, more, os.path.join(scratch, "trace.lpt"))
                if why is None:
                    return "ok " + name, False
                whys.append(why)
                foreign.append(others)
                print("%s: others had %.0f %% of the machine: %s" % (name, others * 100, why), file=sys.stderr)
    except Skip as e:
        return "skip %s: %s" % (name, str(e).replace("\n", " ")), False
    if min(foreign) > FOREIGN_SHARE_MAX:
        return "skip %s: others had %.0f %% of the machine; %s" % (name, min(foreign) * 100, whys[-1]), False
    return "not ok %s: %s" % (name, whys[foreign.index(min(foreign))]), True


def can_record(longpole):
    """None, or why the whole system cannot be recorded here."""
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([longpole, "record", "--system", "-o", os.path.join(scratch, "t.lpt"), "--", "true"], capture_output=True,
                              text=True, check=False, timeout=60)
    return None if done.returncode == 0 else (done.stderr.strip() or "exit status %d" % done.returncode).replace("\n", " ")[-200:]


def main():
    longpole = os.environ.get("LONGPOLE", "longpole")
    build = os.path.join(os.environ["LONGPOLE_BUILD"], "tests", "target", "system")
    only, failed = sys.argv[1:], False
    why = can_record(longpole)
    jobs = [(name, setup, command[0], lambda binary, prefix, more, trace, c=command, d=demands, s=setup:
             attempt(longpole, binary, c[1:] + more, prefix, trace, d, ["--full"] if s == "full" else [])) for name, (setup, command, demands) in answers().items()]
    jobs += [(name, setup, command[0], lambda binary, prefix, more, trace, c=command, s=state, x=changed:
              elide(longpole, binary, c[1:] + more, prefix, trace, s, x[1:])) for name, setup, command, state, changed in elisions()]
    for name, setup, program, judged in jobs:
        if only and name not in only:
            continue
        line, bad = ("skip %s: %s" % (name, why), False) if why else one(longpole, build, name, setup, program, judged)
        print(line, flush=True)
        failed |= bad
    return failed


if __name__ == "__main__":
    sys.exit(main())
