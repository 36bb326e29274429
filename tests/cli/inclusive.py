#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""inclusive.py FILE [FILE...] - functions with all that they call, by an exported profile (speedscope, Firefox, pprof) or by what
`perf report --children --stdio -g none -F overhead_children,symbol` says: a line each, "SHARE FUNCTION", largest first.

With several files: the ten largest of the first must be among the twelve largest of each other, with shares within 10 points.
Libraries' functions count under the shortest of their names (perf and longpole choose others: __GI___clone3, clone3).
"""
import gzip
import json
import re
import sys
from collections import Counter

PLACES, SPARE, POINTS, LEAST = 10, 2, 10, 0.02


def speedscope(profile):
    names = [frame["name"] for frame in profile["shared"]["frames"]]
    for thread in profile["profiles"]:
        if thread["type"] == "sampled":
            for stack in thread["samples"]:
                yield {names[frame].removesuffix(" (inlined)") for frame in stack}


def firefox(profile):
    for thread in profile["threads"]:
        text, stacks, frames, funcs = thread["stringArray"], thread["stackTable"], thread["frameTable"], thread["funcTable"]
        for stack in thread["samples"]["stack"]:
            functions = set()
            while stack is not None:
                functions.add(text[funcs["name"][frames["func"][stacks["frame"][stack]]]])
                stack = stacks["prefix"][stack]
            if not functions & {"?", "(no samples)", "(the path has no samples)"}:
                yield functions


def fields(data):
    """Numbers and bytes of a protobuf message, by the number of their field."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        value = number()
        if key & 7 == 2:
            at += value
            value = data[at - value : at]
        yield key >> 3, value


def pprof(data):
    texts, functions, locations, samples = [], {}, {}, []
    for field, value in fields(data):
        if field == 6:
            texts.append(value.decode())
        elif field in (4, 5):
            parts = list(fields(value))
            number = dict(parts)[1]
            if field == 5:
                functions[number] = dict(parts)[2]
            else:
                locations[number] = [dict(fields(line))[1] for part, line in parts if part == 4]
        elif field == 2:
            samples.append(list(fields(value)))
    for sample in samples:
        names = {texts[functions[f]] for part, location in sample if part == 1 for f in locations[location]}
        for _ in range(next(value for part, value in sample if part == 2)):
            yield names


def perf(text):
    for line in text.splitlines():
        found = re.match(r"\s*([\d.]+)%\s+\[[.k]\] (.*\S)", line)
        if found:
            yield found[2].removesuffix(" (inlined)"), float(found[1]) / 100


def plain(name):
    return re.sub(r"^(__GI_)?_*|_impl$", "", re.sub(r"[ (\[.].*", "", name)) or name


def shares(path):
    with open(path, "rb") as file:
        data = file.read()
    result = {}
    if data[:2] == b"\x1f\x8b":
        stacks = list(pprof(gzip.decompress(data)))
    elif data[:1] == b"{":
        profile = json.loads(data)
        stacks = list(speedscope(profile) if "profiles" in profile else firefox(profile))
    else:
        for name, share in perf(data.decode()):
            result[plain(name)] = max(result.get(plain(name), 0), share)
        return result
    count = Counter(name for stack in stacks for name in {plain(name) for name in stack})
    return {name: nr / len(stacks) for name, nr in count.items()}


def largest(of, nr):
    """Without those that have no name, since each tool makes up another, and those that chance puts in order."""
    named = [name for name in of if of[name] >= LEAST and not re.search(r"0x[0-9a-f]+|^\d", name) and name != "lib"]
    return sorted(named, key=lambda name: (-of[name], name))[:nr]


def main():
    first, *others = [shares(path) for path in sys.argv[1:]]
    top = largest(first, PLACES)
    for name in top:
        print(f"{first[name]:.3f} {name}" + "".join(f"  {other.get(name, 0):.3f}" for other in others))
    bad = 0
    for path, other in zip(sys.argv[2:], others):
        for name in top:
            if name not in largest(other, PLACES + SPARE) or abs(other[name] - first[name]) * 100 > POINTS:
                print(f"{path}: {name} has {other.get(name, 0):.3f}, not {first[name]:.3f}", file=sys.stderr)
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
