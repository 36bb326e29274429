#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_schema.py SCHEMA DUMP... - do these JSON lines agree with the dump.schema.json of the build?

Knows only what that schema uses: oneOf by kind, properties, required, integers with bounds, strings.
"""
import json
import sys


def wrong(row, record):
    for key in row["required"]:
        if key not in record:
            return f"no {key}"
    for key, value in record.items():
        rule = row["properties"].get(key)
        if rule is None:
            return f"{key} is not in the schema"
        if "const" in rule:
            continue
        if rule["type"] == "string" and not isinstance(value, str):
            return f"{key} is not a string"
        if rule["type"] == "integer" and (type(value) is not int or value < rule["minimum"] or
                                          value > rule.get("maximum", value)):
            return f"{key} is not an integer in range"
    return ""


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = {row["properties"]["kind"]["const"]: row for row in json.load(file)["oneOf"]}
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.startswith("#"):
                    continue
                record = json.loads(line)
                why = wrong(rows[record["kind"]], record)
                if why:
                    sys.exit(f"{path}:{number}: {why}")


main()
