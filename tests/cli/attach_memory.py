#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""attach_memory.py PID [MAPS] - what a process's memory is: each mapping, and of code and of what is only read in files a sum of its
bytes; of the program itself the table by which it calls libraries. With MAPS, mappings without a file are left out unless they are code."""
import hashlib
import re
import subprocess
import sys

pid = sys.argv[1]
program = None
with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory, open(f"/proc/{pid}/maps") as maps:
    for line in maps:
        m = re.match(r"(\w+)-(\w+) (\S+) \w+ \S+ (\d+) *(.*)", line)
        start, end, rights, inode, path = int(m[1], 16), int(m[2], 16), m[3], int(m[4]), m[5]
        if path.startswith("[v") or "liblongpole-" in path:
            continue
        if inode and program is None:
            program = (path, start)
        if "w" not in rights and "r" in rights and inode or "x" in rights:
            memory.seek(start)
            print(m[1], m[2], rights, path, hashlib.sha256(memory.read(end - start)).hexdigest()[:16])
        elif inode:
            print(m[1], m[2], rights, path)
    sections = subprocess.run(["readelf", "-SW", program[0]], capture_output=True, text=True, check=True).stdout
    for name, address, size in re.findall(r"(\.got\S*) +PROGBITS +(\w+) \w+ (\w+)", sections):
        memory.seek(program[1] + int(address, 16))
        print(name, memory.read(int(size, 16)).hex(" ", 8))
