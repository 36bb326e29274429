#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""jumps.py OBJDUMP PROGRAM LOG - the jumps that a static program for 64-bit ARM or RISC-V took, from and to, without calls and returns, and how many
instructions: what QEMU's log (-singlestep -d nochain,exec) has for addresses, and a disassembler for instructions."""
import re
import subprocess
import sys

CALL = re.compile(r"(blr? |c\.jalr |(c\.)?jalr? (?!zero))")
RETURN = re.compile(r"(ret\b|c\.jr ra|jalr zero,0\(ra\))")
ALWAYS = re.compile(r"(br? |c\.jr? |jalr? zero)")

listing = subprocess.run([sys.argv[1], "-d", "--no-show-raw-insn", "-M", "no-aliases", sys.argv[2]], capture_output=True, text=True, check=True).stdout
code = {int(at, 16): text.replace("\t", " ") for at, text in re.findall(r"^ +([0-9a-f]+):\s+(.*)$", listing, re.M)}
places = sorted(code)
following = dict(zip(places, places[1:]))
with open(sys.argv[3], encoding="ascii", errors="replace") as log:
    steps = [int(line.split("/")[1], 16) for line in log if line.startswith("Trace")]
for here, then in zip(steps, steps[1:]):
    what = code[here]
    if not CALL.match(what) and not RETURN.match(what) and (then != following.get(here) or ALWAYS.match(what)):
        print("J %x %x" % (here, then))
print("I %d" % len(steps))
