#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""long_pole.py TRACE [SCENARIO] - long_pole.c in Python: what holds a recorded run back, and what a change would gain."""
import sys

import longpole


def main(trace, scenario="#1=-50%"):
    with longpole.open(trace) as run:
        print(run.answer.pole)
        for number, part in enumerate(run.parts, 1):
            if part.is_predicted:
                print(f"#{number} {part.name}: {100 * part.share:.1f} %, halved {part.halved.speedup:.6f}")
        for prediction in run.predict(scenario):
            gain = prediction.gain
            print(f"{gain.speedup:.6f} ({gain.low:.6f} to {gain.high:.6f}) by {gain.method}, then {prediction.next}")
        return run.answer.is_partial


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except (OSError, longpole.Error) as error:
        sys.exit(f"long_pole: {error}")
