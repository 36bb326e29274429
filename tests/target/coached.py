#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coached - records programs that are annotated badly and asks `longpole coach` what is wrong with them.

misuse: its comments say which mistake is on which line and how often it is made; the coach has to find each once, there, so
often, and nothing else (but what follows from it: see ALLOWED). lowrate: a machine that spins where all should be idle has to
be suspected, and no longer once its wait is annotated. Prints `ok NAME` or `not ok NAME: why`.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Mistakes without a record of their place are said to be soon after the last annotation that has one.
NEAR = {"end_other": 2, "end_without_begin": 2}
# A wait that was given up is told as well: what made it so is the mistake above it.
ALLOWED = {"wait_gave_up"}
JUDGED = {"unexplained_wait", "missing_wait"}  # not about use


def mistakes():
    with open(os.path.join(HERE, "misuse.c"), encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            found = re.search(r"MISUSE: (\w+) (\d+)", line)
            if found:
                yield found[1], number, int(found[2])


def line_of(advice):
    """Of the call; where functions are inlined, of the innermost."""
    found = re.findall(r"misuse\.c:(\d+)", advice["where"])
    return int(found[-1]) if found else 0


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120)
    if done.returncode:
        sys.exit("not ok coached: %s: exit status %d: %s" % (" ".join(command), done.returncode, done.stderr.strip()[-300:]))
    return done.stdout


def check(advices):
    """What is wrong, or None."""
    found = {}
    for advice in advices:
        if advice["check"] in JUDGED | ALLOWED:
            continue
        if advice["check"] in found:
            return "%s was found twice" % advice["check"]
        if not advice["advice"] or not advice["text"]:
            return "%s says nothing" % advice["check"]
        found[advice["check"]] = advice
    for name, line, count in mistakes():
        advice = found.pop(name, None)
        if not advice:
            return "%s of line %d was not found" % (name, line)
        if advice["count"] != count:
            return "%s was counted %d times, not %d" % (name, advice["count"], count)
        if advice["where_is_near"] != (name in NEAR) or not 0 <= line - line_of(advice) <= NEAR.get(name, 0):
            return "%s is on line %d, the coach says %s" % (name, line, advice["where"])
    if found:
        return "was found, but is none: " + ", ".join(found)
    return None


def coach(longpole, program, *options):
    """The coach's JSON and text, and the report's text."""
    binary = os.path.join(os.environ["LONGPOLE_BUILD"], "tests", "target", program)
    with tempfile.TemporaryDirectory() as scratch:
        trace = os.path.join(scratch, "trace.lpt")
        run(longpole, "record", "-q", "-o", trace, binary, *options)
        return json.loads(run(longpole, "coach", "--json", trace))["result"], run(longpole, "coach", trace), run(
            longpole, "report", trace)


def misuse(longpole):
    result, text, report = coach(longpole, "misuse")
    if len(list(mistakes())) < 10:
        return "misuse.c has lost its comments"
    why = check(result["advice"])
    if why:
        return why
    if not re.search(r"\b%d annotation findings; see longpole coach" % result["findings"], report):
        return "the report does not mention %d findings" % result["findings"]
    if not re.search(r"misuse\.c:\d+", text):
        return "the text names no line"
    return None


def lowrate(longpole):
    """Twice: the missing wait is found, and adding it satisfies the coach."""
    result = coach(longpole, "lowrate")[0]
    suspects = [a["actor"] for a in result["advice"] if a["check"] == "missing_wait"]
    if not result["lightly_loaded"]:
        return "not lightly loaded: %.0f %% of the path waits for the outside" % (result["outside_share"] * 100)
    if suspects != ["lowrate/server"]:
        return "suspected are: %s" % (", ".join(suspects) or "none")
    result = coach(longpole, "lowrate", "--waits=annotated")[0]
    if result["advice"]:
        return "with its wait annotated: " + result["advice"][0]["text"]
    return None


def main():
    longpole = os.environ.get("LONGPOLE", "longpole")
    failed = False
    for name, test in (("coach_misuse", misuse), ("coach_low_rate", lowrate)):
        why = test(longpole)
        print("not ok %s: %s" % (name, why) if why else "ok " + name, flush=True)
        failed = failed or why is not None
    return failed


if __name__ == "__main__":
    sys.exit(main())
