#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace_pages.py - two processors' raw ring buffer pages for trace-cmd restore, by this kernel's own formats.

The story of make_ctf.c: a client works 100 us, wakes a server and sleeps; the server runs from 120 us, wakes the client at 620;
the client runs from 640 to 700. Writes cpu0 and cpu1 to the working directory.
"""
import re
import struct

EVENTS = "/sys/kernel/tracing/events/sched/%s/format"
NAME = {0: "swapper", 11: "client", 12: "server"}
STORY = [(0, 0, "s", 0, 11, 0), (0, 1, "s", 0, 12, 0), (10, 1, "s", 12, 0, 1), (100, 0, "w", 11, 12, 0), (105, 0, "s", 11, 0, 1),
         (120, 1, "s", 0, 12, 0), (620, 1, "w", 12, 11, 0), (630, 1, "s", 12, 0, 1), (640, 0, "s", 0, 11, 0), (700, 0, "s", 11, 0, 1)]
ORIGIN_NS = 10**9


def event(kind, who, **values):
    with open(EVENTS % kind, encoding="ascii") as file:
        text = file.read()
    fields = {m[1]: (int(m[2]), int(m[3]))
              for m in re.finditer(r"field:.*?(\w+)(?:\[\d+\])?;\toffset:(\d+);\tsize:(\d+);", text)}
    values.update(common_type=int(re.search(r"ID: (\d+)", text)[1]), common_pid=who)
    record = bytearray(max(offset + size for offset, size in fields.values()))
    for name, value in values.items():
        offset, size = fields[name]
        record[offset:offset + size] = (value.encode().ljust(size, b"\0") if isinstance(value, str) else
                                        int(value).to_bytes(size, "little", signed=True))
    return bytes(record)


for cpu in 0, 1:
    data, last = b"", 0
    for us, where, kind, a, b, state in STORY:
        if where != cpu:
            continue
        if kind == "s":
            record = event("sched_switch", a, prev_comm=NAME[a], prev_pid=a, prev_state=state, next_comm=NAME[b], next_pid=b)
        else:
            record = event("sched_waking", a, comm=NAME[b], pid=b)
        record = record.ljust((len(record) + 3) // 4 * 4, b"\0")
        delta, last = us * 1000 - last, us * 1000
        if len(record) // 4 <= 28:
            data += struct.pack("<I", len(record) // 4 | delta << 5) + record
        else:
            data += struct.pack("<II", delta << 5, len(record) + 4) + record
    with open("cpu%d" % cpu, "wb") as file:
        file.write((struct.pack("<QQ", ORIGIN_NS, len(data)) + data).ljust(4096, b"\0"))
