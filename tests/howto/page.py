#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page.py apply PAGE TREE | files PAGE | run PAGE TREE - does what a how-to's page says.

A fenced block is what the last words before it say:

    New file `FILE`:                                the block is the file
    At the end of `FILE`:                           the block is appended
    In `FILE`, before|after the line with `TEXT`:   the block is put there; one line has TEXT
    Run:                                            commands, at the top of the tree
    It prints:                                      what the commands before it print: "..." is anything

Any other fenced block of an executed page is an error: nobody would notice when it is not true any more.
"""
import os
import pathlib
import re
import subprocess
import sys

NEW, END, NEAR, RUN, PRINTS = "new", "end", "near", "run", "prints"
WORDS = [
    (NEW, re.compile(r"New file `([^`]+)`:$")),
    (END, re.compile(r"At the end of `([^`]+)`:$")),
    (NEAR, re.compile(r"In `([^`]+)`, (before|after) the line with `([^`]+)`:$")),
    (RUN, re.compile(r"Run:$")),
    (PRINTS, re.compile(r"It prints:$")),
]


class Stale(Exception):
    """The page does not fit the tree."""


def blocks(page):
    """(what, its match, line number, text) of each fenced block."""
    found, words, fence, text = [], "", None, []
    for number, line in enumerate(pathlib.Path(page).read_text().splitlines(), 1):
        mark = re.match(r"( *)```", line)
        if fence is None and mark:
            fence, begin, text = mark[1], number, []
        elif fence is not None and mark:
            what = [(kind, match) for kind, match in ((kind, word.search(words.strip())) for kind, word in WORDS) if match]
            if not what:
                raise Stale(f"line {begin}: no words before the block say what to do with it")
            found.append((*what[0], begin, "".join(text)))
            fence, words = None, ""
        elif fence is not None:
            text.append(line.removeprefix(fence) + "\n")
        else:
            words = words + " " + line.strip() if line.strip() else words
    if not any(kind == RUN for kind, *_ in found):
        raise Stale("nothing is run: a block after 'Run:' is missing")
    return found


def put(kind, match, text, tree):
    path = tree / match[1]
    if kind == NEW:
        if path.exists():
            raise Stale(f"{match[1]} is there already")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    if not path.exists():
        raise Stale(f"there is no {match[1]}")
    lines = path.read_text().splitlines(keepends=True)
    at = [len(lines)]
    if kind == NEAR:
        at = [i + (match[2] == "after") for i, line in enumerate(lines) if match[3] in line]
    if len(at) != 1:
        raise Stale(f"{len(at)} lines of {match[1]} have '{match[3]}'; it must be one")
    path.write_text("".join(lines[: at[0]]) + text + "".join(lines[at[0] :]))


def apply(page, tree):
    for kind, match, line, text in blocks(page):
        try:
            if kind in (NEW, END, NEAR):
                put(kind, match, text, pathlib.Path(tree))
        except Stale as stale:
            raise Stale(f"line {line}: {stale}") from None


def files(page):
    print("\n".join(dict.fromkeys(match[1] for kind, match, *_ in blocks(page) if kind in (NEW, END, NEAR))))


def is_printed(expected, printed):
    pattern = ".*?".join(map(re.escape, expected.split("...")))
    return re.fullmatch(pattern, printed, re.S)


def run(page, tree):
    printed = ""
    for kind, _, line, text in blocks(page):
        if kind == RUN:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=tree, env=os.environ, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
            printed = done.stdout
            if done.returncode:
                raise Stale(f"line {line}: exit status {done.returncode}: {printed.strip()[-600:]}")
        elif kind == PRINTS and not is_printed(text, printed):
            lines = [want for want in text.splitlines() if not is_printed(f"...{want}...", printed)]
            raise Stale(f"line {line}: not printed: {lines[0] if lines else 'in this order'}; it printed: {printed.strip()[-600:]}")


def main():
    verb = {"apply": apply, "files": files, "run": run}[sys.argv[1]]
    try:
        verb(*sys.argv[2:])
    except Stale as stale:
        sys.exit(f"{sys.argv[2]}, {stale}")


main()
