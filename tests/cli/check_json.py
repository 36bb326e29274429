#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_json.py PAGE SOURCES DOCUMENT... - do documents have the keys and types of doc/json.md?

Every file may hold several documents. Also: the page describes every schema that the sources name,
and every type in it is described. What is wrong is printed, a line each.
"""
import json
import pathlib
import re
import sys

ROW = re.compile(r"^\| `([^`]+)`( \?)? \| ([^|]*) \|")
ELSEWHERE = {"longpole/page/1"}  # doc/page.md
ENVELOPE = "JSON documents"


def read_page(path):
    """Objects by heading: {key: (optional, type)}; and the schemas whose rows are the document."""
    objects, whole, name = {}, set(), ENVELOPE
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            name = line.lstrip("#").strip()
        elif "without `result`" in line:
            whole.add(name)
        elif match := ROW.match(line):
            key, optional, kind = match.groups()
            objects.setdefault(name, {})[key] = (bool(optional), kind.strip())
    return objects, whole


SIMPLE = {
    "int": lambda v: type(v) is int,
    "real": lambda v: type(v) in (int, float),
    "string": lambda v: isinstance(v, str),
    "bool": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "any": lambda v: True,
}


class Page:
    def __init__(self, path):
        self.objects, self.whole = read_page(path)

    def unknown_types(self):
        for name, keys in self.objects.items():
            for key, (_, kind) in keys.items():
                for word in re.split(r" or |[][{}]", kind):
                    if word and word not in SIMPLE and word not in self.objects:
                        yield f"doc/json.md: {name}: {key}: '{word}' is not described"

    def wrong(self, value, kind, where):
        """Why the value is not of the kind; none when it is."""
        alternatives = [kind] if kind[:1] in "[{" and kind[-1:] in "]}" else kind.split(" or ")
        found = [list(self.wrong_one(value, one, where)) for one in alternatives]
        return min(found, key=len)

    def wrong_one(self, value, kind, where):
        if kind.startswith("["):
            if not isinstance(value, list):
                yield f"{where} is not a list"
                return
            for item in value:
                yield from self.wrong(item, kind[1:-1], where + "[]")
        elif kind.startswith("{"):
            if not isinstance(value, dict):
                yield f"{where} is not an object"
                return
            for item in value.values():
                yield from self.wrong(item, kind[1:-1], where + "{}")
        elif kind in SIMPLE:
            if not SIMPLE[kind](value):
                yield f"{where} is not of type {kind}"
        elif not isinstance(value, dict):
            yield f"{where} is not an object"
        else:
            yield from self.wrong_keys(value, self.objects[kind], where)

    def wrong_keys(self, value, keys, where):
        for key, item in value.items():
            if key in keys:
                yield from self.wrong(item, keys[key][1], f"{where}.{key}")
            else:
                yield f"{where}.{key} is not in doc/json.md"
        for key, (optional, _) in keys.items():
            if key not in value and not optional:
                yield f"{where}.{key} is missing"

    def check(self, document):
        schema = document["schema"]
        keys = self.objects.get(schema)
        if schema in ELSEWHERE:
            return
        if keys is None:
            yield f"{schema} is not in doc/json.md"
            return
        if schema in self.whole:
            keys = {"schema": (False, "string"), "tool": (False, "string"), **keys}
        else:
            keys = {**self.objects[ENVELOPE], "result": (False, schema)}
        yield from self.wrong_keys(document, keys, schema)


def documents(path):
    """The JSON documents in a file that have a schema of ours."""
    text, at = pathlib.Path(path).read_text(encoding="utf-8", errors="replace"), 0
    decoder = json.JSONDecoder()
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError:
            return
        if isinstance(document, dict) and str(document.get("schema")).startswith("longpole/"):
            yield document


def main():
    page = Page(sys.argv[1])
    wrong = dict.fromkeys(page.unknown_types())
    for path in pathlib.Path(sys.argv[2]).rglob("*.[cd]*"):
        for schema in re.findall(r'"(longpole/[a-z-]+/[0-9]+)"', path.read_text(encoding="utf-8")):
            if schema not in page.objects and schema not in ELSEWHERE:
                wrong[f"doc/json.md: no {schema}"] = None
    for path in sys.argv[3:]:
        for document in documents(path):
            wrong.update(dict.fromkeys(page.check(document)))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


sys.exit(main())
