#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""go_compare.py RECORDED IMPORTED - two dumps of one run, by injection and of Go's own trace: goroutines that were born in both have the same
roles, waits and wakers."""
import collections
import re
import sys


def read(path):
    role, waits, wakes = {}, collections.defaultdict(list), collections.Counter()
    with open(path, encoding="utf-8") as dump:
        for line in dump:
            words = line.split(" ", 3)
            if len(words) < 3 or not re.fullmatch(r"\d+:\d+", words[1]):
                continue
            g = words[1].split(":")[1]
            if words[2] == "thread_begin" and int(re.search(r"token=(\d+)", line)[1]) < 1 << 62:
                role[g] = re.search(r"site=\d+\((\S+)", line)[1] if "site=0" not in line else ""
            if words[2] == "task_wait":
                waits[g].append(re.search(r"what=\d+\(([^)]*)\)", line)[1])
            if words[2] == "task_wake":
                wakes[g, re.search(r"woken=\d*\(?([^ )]*)", line)[1]] += 1
    return role, waits, wakes


recorded, imported = read(sys.argv[1]), read(sys.argv[2])
born = {g for g, role in imported[0].items() if role.startswith("main.")}
if not born:
    sys.exit("no goroutine was born in Go's trace")
for g in sorted(born, key=int):
    if recorded[0].get(g) != imported[0][g]:
        sys.exit("goroutine %s is %s, and %s" % (g, recorded[0].get(g), imported[0][g]))
    waits = [[w for w in of[1][g] if w != "system call"] for of in (recorded, imported)]
    if waits[0] != waits[1]:
        sys.exit("goroutine %s, %s: waits %s, and %s" % (g, imported[0][g], waits[0], waits[1]))
# System calls wake nobody; who is woken from outside of both (a timer, the network) has no waker in either.
wakes = [{pair: n for pair, n in of[2].items() if set(pair) <= born} for of in (recorded, imported)]
if wakes[0] != wakes[1]:
    odd = next(p for p in sorted(set(wakes[0]) | set(wakes[1])) if wakes[0].get(p) != wakes[1].get(p))
    sys.exit("goroutine %s wakes %s %s times, and %s" % (*odd, wakes[0].get(odd), wakes[1].get(odd)))
print(sum(wakes[1].values()), "wakes,", len(born), "goroutines,", sum(len(imported[1][g]) for g in born), "waits")
