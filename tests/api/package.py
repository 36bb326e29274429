#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""package.py LONGPOLE TRACE - the Python package against the command's own answers; then a program that says what it does. Writes into the working
directory."""
import collections
import json
import os
import subprocess
import sys
import threading

import longpole

PROGRAM = """
import sys, time, longpole
def burn(seconds):
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass
@longpole.state("decorated")
def decorated():
    burn(0.02)
for i in range(3):
    with longpole.state("parse"):
        burn(0.1)
        with longpole.state("inner"):
            burn(0.01)
    try:
        with longpole.state("raises"):
            raise KeyError
    except KeyError:
        pass
    decorated()
with longpole.machine("encoder", 3):
    longpole.enter("compress")
    burn(0.05)
    longpole.enter("write")
sys.exit(7)
"""


def ask(*arguments):
    return json.loads(subprocess.run(arguments, capture_output=True, check=True).stdout)["result"]


def refused(function, *arguments):
    try:
        function(*arguments)
    except longpole.Error as error:
        return error.status, str(error)
    return None


def compare(program, trace):
    report, whatif = ask(program, "report", "--json", trace), ask(program, "whatif", "--json", trace, "#1=-50%")
    with longpole.open(trace) as run:
        answer, parts, states, path, queues = run.answer, run.parts, run.states, run.path(), run.queues()
        prediction, = run.predict("#1=-50%")
        assert len(run.predict("#1=-50%\n\n#2=-50%\n")) == 2
        assert refused(run.predict, "scael x=-50%")[0] == -8 and refused(run.queues, "nothing like it")[0] == -10
    # (named tuples stay when the run is closed)
    assert answer.elapsed_ns == report["elapsed_ns"] and answer.pole == report["pole"] and answer.nr_parts == len(parts)
    assert [p.name for p in parts[:3]] == [p["name"] for p in report["parts"][:3]]
    # (a text has fewer digits than a number)
    assert abs(parts[0].halved.speedup - report["parts"][0]["halved"]["predicted_speedup"]) < 1e-6
    assert abs(prediction.gain.speedup - whatif["scenarios"][0]["best"]["predicted_speedup"]) < 1e-6 and prediction.nr_edits == 1
    assert len(states) == answer.nr_states and sum(step.increment_ns for step in path) == answer.elapsed_ns
    assert any(queue.name.startswith("mutex") for queue in queues)
    assert refused(run.path) == (-8, "the run is closed")
    run.close()
    assert refused(longpole.open, __file__)[0] == -7
    assert refused(lambda: next(longpole.records(trace, "lock_wiat")))[0] == -8


def records(program, trace):
    """As `longpole dump` counts them."""
    kinds = collections.Counter(line.split()[2] for line in subprocess.run([program, "dump", trace], capture_output=True, check=True, text=True)
                                .stdout.splitlines() if len(line.split()) > 2 and ":" in line.split()[1])
    assert collections.Counter(record.kind for record in longpole.records(trace)) == kinds and kinds["lock_acquire"] > 10
    waits = list(longpole.records(trace, "lock_wait"))
    assert len(waits) == kinds["lock_wait"] and all("mutex" in str(wait.fields["object"]) for wait in waits)
    assert [wait.time_ns for wait in waits] == sorted(wait.time_ns for wait in waits)


def annotated(program):
    with open("says.py", "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    assert subprocess.run([sys.executable, "says.py"], check=False).returncode == 7
    assert subprocess.run([program, "record", "-q", "-o", "says.lpt", sys.executable, "says.py"], check=False, stderr=subprocess.DEVNULL).returncode == 7
    with longpole.open("says.lpt") as run:
        visits = {state.state: state.path_ns for state in run.states}
        assert not [loss for loss in run.losses if loss.severity == "error"]
    notes = collections.Counter(record.kind for record in longpole.records("says.lpt") if record.kind.startswith("note_"))
    assert notes == {"note_begin": 13, "note_end": 13, "note_state": 14}, notes
    # (a thread with a processor is on the path: it is alone. Its clock and the recorder's round in their own ways.)
    for name, ns in (("parse: parse", 300e6), ("inner: inner", 30e6), ("decorated: decorated", 60e6), ("encoder: compress", 50e6)):
        assert 0.9 * ns <= visits[name], (name, visits[name])
    assert visits["parse: parse"] > visits["inner: inner"]


def threads(trace):
    """Each thread its own run."""
    answers = []
    workers = [threading.Thread(target=lambda: answers.append(longpole.Run(trace).answer)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(answers) == 3 and len(set(answers)) == 1


compare(*sys.argv[1:])
records(*sys.argv[1:])
threads(sys.argv[2])
annotated(os.path.abspath(sys.argv[1]))
