#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""known_answers - records each program of answers.tsv, and asks whether `longpole report` knows what it was built to show.

Prints `ok NAME`, `not ok NAME: why` or `skip NAME: reason`. No time is asserted, only order and shares, without the path's waits for
processors that other programs had, as long as those did take so much. A machine that others use at the same time also changes what
a program waits for, so a test that fails is tried again; when it fails while others take a tenth of the machine or more, it counts
as skipped, with that as the reason.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
from benchlib import busy_seconds, raise_priority  # noqa: E402 (needs the path)

ATTEMPTS = 4
FOREIGN_SHARE_MAX = 0.10
CLOCK_ERROR = 0.05  # of the foreign share: it is known in ticks
STOLEN = "waiting for a processor that other programs had"


def answers():
    with open(os.path.join(HERE, "answers.tsv"), encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                name, command, expect, kind, least, most, explained = line.rstrip("\n").split("\t")
                yield name, command.split(), expect, kind, float(least), float(most), float(explained)


def texts_of(entry):
    functions = entry.get("functions") or []
    return [entry.get("state") or "", entry.get("where") or ""] + [f.get("function") or "" for f in functions[:1]]


def matches(entry, expect):
    return any(re.search(expect, text) for text in texts_of(entry))


def share_of(entry, expect):
    """A state's share; when it is running in several functions, that of those which match."""
    functions = entry.get("functions") or []
    shares = [f["share"] for f in functions if re.search(expect, f.get("function") or "")]
    return entry["share"] * (sum(shares) if shares else 1)


def describe(entry):
    return "%s of kind %s, %.0f %% of it" % (" / ".join(t for t in texts_of(entry) if t), entry["kind"], entry["share"] * 100)


def own_path(path, stolen_max):
    """The path, its shares those of what is left without waits for processors that others had, unless these are more than they can be."""
    stolen = sum(entry["share"] for entry in path if entry["state"] == STOLEN)
    if not 0 < stolen <= stolen_max:
        return path
    return [{**entry, "share": entry["share"] / (1 - stolen)} for entry in path if entry["state"] != STOLEN]


def judge(result, stolen_max, expect, kind, least, most, explained):
    """None when the answer is the known one, else why not."""
    path = own_path(result["path"], stolen_max)
    if not path:
        return "the path is empty"
    if result["explained_share"] < explained:
        return "only %.1f %% of the path is explained" % (result["explained_share"] * 100)
    if not matches(path[0], expect):
        return "the path's first state is not %s but %s" % (expect, describe(path[0]))
    if path[0]["kind"] != kind:
        return "the path's first state is not of kind %s: %s" % (kind, describe(path[0]))
    share = sum(share_of(entry, expect) for entry in path if entry["kind"] == kind and matches(entry, expect))
    if not least <= share <= most:
        return "%s has %.1f %% of the path, not %.0f to %.0f %%" % (expect, share * 100, least * 100, most * 100)
    return None


def attempt(longpole, binary, options, trace, expected):
    """(why it failed or None, share of the machine that others took)."""
    busy, own, begin = busy_seconds(), os.times(), time.perf_counter()
    run = subprocess.run([longpole, "record", "-o", trace, binary, *options], capture_output=True, text=True, check=False,
                         stdin=subprocess.DEVNULL, timeout=120)
    elapsed, now = time.perf_counter() - begin, os.times()
    foreign = (busy_seconds() - busy - sum(now[:4]) + sum(own[:4])) / elapsed / (os.cpu_count() or 1)
    if run.returncode:
        return "longpole record: exit status %d: %s" % (run.returncode, run.stderr.strip()[-300:]), foreign
    run = subprocess.run([longpole, "report", "--json", trace], capture_output=True, text=True, check=False, timeout=120)
    if run.returncode:
        return "longpole report: exit status %d: %s" % (run.returncode, run.stderr.strip()[-300:]), foreign
    stolen_max = min(foreign * (os.cpu_count() or 1) + CLOCK_ERROR, 0.9)
    result = json.loads(run.stdout)["result"]
    return judge(result, stolen_max, *expected) or differing_paths(longpole, trace, result["path"][0]["state"]), foreign


def differing_paths(longpole, trace, state):
    """What the path says of a change does not depend on whether the run is simulated again as well: None, or what differs."""
    said = []
    for method in ([], ["--method=path"]):
        run = subprocess.run([longpole, "whatif", "--json", "--ledger=/dev/null", *method, trace, "remove", state], capture_output=True,
                             text=True, check=False, timeout=120)
        if run.returncode:
            return "longpole whatif: exit status %d: %s" % (run.returncode, run.stderr.strip()[-300:])
        said.append(json.loads(run.stdout)["result"]["scenarios"][0]["predicted_ns"])
    return None if said[0] == said[1] else "without %s the path has %d ns with replay, %d ns without" % (state, *said)


def main():
    raise_priority()
    longpole = os.environ.get("LONGPOLE", "longpole")
    build = os.path.join(os.environ["LONGPOLE_BUILD"], "tests", "target")
    only = sys.argv[1:]
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        trace = os.path.join(scratch, "trace.lpt")
        for name, command, *expected in answers():
            if only and name not in only:
                continue
            binary = os.path.join(build, command[0])
            if not os.path.exists(binary):
                print("skip %s: %s was not built" % (name, command[0]), flush=True)
                continue
            whys, foreign = [], []
            for _ in range(ATTEMPTS):
                why, share = attempt(longpole, binary, command[1:], trace, expected)
                if why is None:
                    break
                whys.append(why)
                foreign.append(share)
                print("%s: others had %.0f %% of the machine: %s" % (name, share * 100, why), file=sys.stderr)
            if len(whys) < ATTEMPTS:
                print("ok " + name, flush=True)
            elif min(foreign) > FOREIGN_SHARE_MAX:
                print("skip %s: others had %.0f %% of the machine; %s" % (name, min(foreign) * 100, whys[-1]), flush=True)
            else:
                quietest = whys[foreign.index(min(foreign))]
                print("not ok %s: %s" % (name, quietest), flush=True)
                failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
