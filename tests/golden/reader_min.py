#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reader_min.py - reads .lpt traces as doc/format.md says, and shares nothing with the C reader.

reader_min.py FILE                   one JSON object a record, merged, as `longpole dump --json` without names
reader_min.py --compare DUMP FILE    says where DUMP (the C reader's JSON lines) differs; exit status 1
"""
import json
import subprocess
import sys

ID, U64, S64, TEXT = range(4)
M64 = (1 << 64) - 1
VERSION = 2
RECORDS, COLUMNS = 0, 2  # contents of chunks


class Refused(Exception):
    pass


class Damaged(Exception):
    pass


# ---- XXH64, from its specification ----------------------------------------------------------------

P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                      0x27D4EB2F165667C5)


def rotl(x, n):
    return ((x << n) | (x >> (64 - n))) & M64


def xx_round(acc, lane):
    return rotl((acc + lane * P2) & M64, 31) * P1 & M64


def xxh64(data, seed=0):
    at, n = 0, len(data)
    if n >= 32:
        v = [(seed + P1 + P2) & M64, (seed + P2) & M64, seed, (seed - P1) & M64]
        while at + 32 <= n:
            for i in range(4):
                v[i] = xx_round(v[i], u(data, at + 8 * i, 8))
            at += 32
        h = (rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18)) & M64
        for x in v:
            h = ((h ^ xx_round(0, x)) * P1 + P4) & M64
    else:
        h = (seed + P5) & M64
    h = (h + n) & M64
    for size, step in ((8, lambda x: xx_round(0, x)), (4, lambda x: x * P1 & M64), (1, lambda x: x * P5 & M64)):
        while at + size <= n and (size != 4 or at + 4 <= n):
            h ^= step(u(data, at, size))
            h = {8: (rotl(h, 27) * P1 + P4), 4: (rotl(h, 23) * P2 + P3), 1: rotl(h, 11) * P1}[size] & M64
            at += size
            if size == 4:
                break
    h = (h ^ h >> 33) * P2 & M64
    h = (h ^ h >> 29) * P3 & M64
    return h ^ h >> 32


# ---- bytes ------------------------------------------------------------------------------------------


def u(data, at, size):
    return int.from_bytes(data[at:at + size], "little")


class Span:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise Damaged("runs over the end")
        self.at += n
        return self.data[self.at - n:self.at]

    def u(self, size):
        return int.from_bytes(self.take(size), "little")

    def uvarint(self):
        v = shift = 0
        while True:
            b = self.u(1)
            v |= (b & 0x7F) << shift
            if b < 0x80:
                if (shift and not b) or v > M64:
                    raise Damaged("not a canonical varint")
                return v
            shift += 7
            if shift > 63:
                raise Damaged("a varint of more than ten bytes")

    def short_text(self):
        return self.take(self.u(1)).decode("utf-8", "surrogateescape")


def decompress(stored, raw_bytes):
    try:
        import zstandard
    except ImportError:
        raw = subprocess.run(["zstd", "-dc"], input=stored, capture_output=True, check=True).stdout
    else:
        raw = zstandard.ZstdDecompressor().decompress(stored, max_output_size=raw_bytes)
    if len(raw) != raw_bytes:
        raise Damaged("decompresses to another size")
    return raw


# ---- file -------------------------------------------------------------------------------------------


def read_header(data):
    """The bytes of the header and {kind: (name, [(field, type)])}."""
    if data[:8] != b"longpole":
        raise Refused("FORMAT")
    if u(data, 8, 4) > VERSION:
        raise Refused("VERSION")
    size = u(data, 12, 4)
    if size > len(data):
        raise Refused("TRUNCATED")
    if xxh64(data[:size - 8]) != u(data, size - 8, 8):
        raise Refused("CORRUPT")
    s = Span(data[:size - 8])
    s.at = 64 + u(data, 48, 4) + u(data, 52, 4) + u(data, 56, 4)
    schema = {}
    for _ in range(s.uvarint()):
        kind, name, fields = s.uvarint(), s.short_text(), []
        for _ in range(s.uvarint()):
            field_type = s.u(1)
            fields.append((s.short_text(), field_type))
            s.short_text()  # the unit
        schema[kind] = name, fields
    return size, schema


def chunk_header(data, at):
    """(stream, records, codec, first, last, raw bytes, stored bytes, payload hash, end), or None."""
    h = data[at:at + 56]
    if len(h) < 56 or h[:4] != b"LPCK" or xxh64(h[:48]) != u(h, 48, 8):
        return None
    end = at + 56 + u(h, 36, 4)
    if end > len(data):
        return None
    return u(h, 4, 4), u(h, 8, 4), u(h, 12, 4), u(h, 16, 8), u(h, 24, 8), u(h, 32, 4), u(h, 36, 4), u(h, 40, 8), end


def chunk_offsets(data, start):
    """From the footer; without one from the chunks themselves."""
    offset, size, footer_hash = (u(data[-32:], i, 8) for i in (0, 8, 16))
    footer = data[offset:offset + size]
    if data[-8:] == b"lpt-tail" and offset + size + 32 == len(data) and xxh64(footer, offset) == footer_hash:
        return [u(footer, 16 + 32 * i, 8) for i in range(u(footer, 8, 8))]
    offsets, at = [], start
    while at >= 0:
        header = chunk_header(data, at)
        if header:
            offsets.append(at)
        at = header[-1] if header else data.find(b"LPCK", at + 1)
    return offsets


class Rows:
    """Records one behind the other: all fields come out of one span."""

    def __init__(self, s):
        self.s = s

    def next(self):
        return self.s.uvarint(), [self.s] * 65  # at most 64 fields

    def left(self):
        return len(self.s.data) - self.s.at


class Columns:
    """Each field of a kind has a span of its own."""

    def __init__(self, s, schema, nr_records):
        heads = []
        for _ in range(s.uvarint()):
            kind, nr = s.uvarint(), s.uvarint()
            heads.append((kind, nr, [s.uvarint() for _ in range(1 + len(schema[kind][1]))]))
        self.numbers = Span(s.take(nr_records))
        self.kinds = [(kind, [Span(s.take(size)) for size in sizes]) for kind, _, sizes in heads]
        if s.at != len(s.data) or [self.numbers.data.count(i) for i in range(len(heads))] != [nr for _, nr, _ in heads]:
            raise Damaged("the columns' head")

    def next(self):
        return self.kinds[self.numbers.u(1)]

    def left(self):
        return sum(len(s.data) - s.at for _, spans in self.kinds for s in spans)


def chunk_records(data, at, schema):
    header = chunk_header(data, at)
    if not header:
        raise Damaged("chunk header")
    stream, nr_records, codec, time_ns, last_ns, raw_bytes, stored_bytes, payload_hash, end = header
    if codec >> 1 not in (RECORDS, COLUMNS):
        return []  # somebody else's
    stored = data[at + 56:end]
    if xxh64(stored) != payload_hash:
        raise Damaged("chunk payload")
    s = Span(decompress(stored, raw_bytes) if codec & 1 else stored)
    source = Rows(s) if codec >> 1 == RECORDS else Columns(s, schema, nr_records)
    records = []
    for _ in range(nr_records):
        kind, spans = source.next()
        if (kind < 32) != (stream == 0):
            raise Damaged("a kind in the wrong stream")
        name, fields = schema[kind]
        record = {"kind": name}
        if stream:
            time_ns += spans[0].uvarint()
            record.update(time_ns=time_ns, stream=stream)
        for (field, field_type), s in zip(fields, spans[1:]):
            v = s.uvarint()
            if field_type == TEXT:
                v = s.take(v).decode("utf-8", "surrogateescape")
            elif field_type == S64:
                v = (v >> 1) ^ -(v & 1)
            record[field] = v
        records.append((time_ns if stream else 0, stream, record))
    if source.left() or time_ns != last_ns:
        raise Damaged("the chunk's end")
    return records


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    start, schema = read_header(data)
    records = []
    for at in chunk_offsets(data, start):
        try:
            records += chunk_records(data, at, schema)
        except Damaged as why:
            print(f"{path}: chunk at byte {at}: {why}", file=sys.stderr)
    # Stable: within a stream the order is that of the file.
    return [record for _, _, record in sorted(records, key=lambda r: r[:2])]


def compare(dump_path, path):
    with open(dump_path, encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    try:
        mine = read(path)
    except Refused as why:
        return "" if lines == [f"# refused: ERR_{why}\n"] else f"refused here ({why}), not there"
    if lines and lines[0].startswith("#"):
        return "refused there: " + lines[0].strip()
    theirs = [{k: v for k, v in json.loads(line).items() if not k.endswith("_text")} for line in lines]
    # What the C reader does not know, it skips; here the file's schema says all.
    mine = [record for record in mine if record["kind"] != "future"]
    if len(mine) != len(theirs):
        return f"{len(mine)} records here, {len(theirs)} there"
    for number, (a, b) in enumerate(zip(mine, theirs), 1):
        if a != b:
            return f"record {number}: {a!r} here, {b!r} there"
    return ""


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--compare":
        why = compare(sys.argv[2], sys.argv[3])
        print(why, end="\n" if why else "")
        sys.exit(bool(why))
    try:
        for record in read(sys.argv[1]):
            print(json.dumps(record))
    except Refused as why:
        sys.exit(f"{sys.argv[1]}: refused: {why}")


main()
