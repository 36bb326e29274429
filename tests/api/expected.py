#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""expected.py REPORT WHATIF - what examples/long_pole.c has to print, by what the commands say with --json."""
import json
import sys

PREDICTED = 5  # parts, where nobody asks for more

report, whatif = (json.load(open(path))["result"] for path in sys.argv[1:3])
print(report["pole"])
for part in report["parts"][:PREDICTED]:
    print(f"#{part['number']} {part['name']}: {100 * part['share']:.1f} %, halved {part['halved']['predicted_speedup']:.6f}")
for scenario in whatif["scenarios"]:
    best = scenario["best"]
    then = scenario["replay"] if best["method"] != "path" else scenario
    low, high = best["predicted_speedup_low"], best["predicted_speedup_high"]
    print(f"{best['predicted_speedup']:.6f} ({low:.6f} to {high:.6f}) by {best['method']}, then {then['next_bottleneck']}")
