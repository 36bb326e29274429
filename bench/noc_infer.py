# SPDX-License-Identifier: Apache-2.0
"""noc_infer - packet dependencies inferred from traces: what bench/noc shows of seed 002 (Nitta and others 2011).

rows(bench, longpole, scratch) adds the rows: each part of our method switched off alone; noise. Graphs are those of noc_figures.py.
Nothing here depends on the machine.
"""
import json
import os
import statistics
import subprocess
import sys

PATTERNS = ["rand", "nn", "tor", "trans", "inv", "hot", "ned", "ball", "central", "tree"]
PEER, PEER_VERSION = "PDG_GEN as in the text", "NOCS 2011"
METHODS = {"literal": ("nodes", ["method=literal"]), "robust": ("adaptive", [])}
SWITCHES = ["blocked=0", "adaptive=0", "grade=0", "reduce=0", "learn=0"]


def ask(longpole, *words):
    """The result of one verb's JSON."""
    run = subprocess.run([longpole, "noc", *words, "--json"], capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit("bench: longpole noc %s: %s" % (" ".join(words), run.stderr))
    return json.loads(run.stdout)["result"]


class Graph:
    """A reference graph and what is inferred of it."""

    def __init__(self, longpole, scratch, name, *settings):
        self.longpole, self.base = longpole, os.path.join(scratch, name)
        self.path = self.base + ".lpt"
        ask(longpole, "gen", "-o", self.path, *settings)

    def sample(self, design, runs, *settings):
        prefix = "%s-%s" % (self.base, design)
        ask(self.longpole, "sample", "-o", prefix, self.path, "design=" + design, "runs=%d" % runs, *settings)
        return ["%s-%d.lpt" % (prefix, run) for run in range(runs + 1)]

    def infer(self, traces, *settings, output=None):
        options = ["-o", output] if output else []
        return ask(self.longpole, "infer", *options, *traces, "reference=" + self.path, *settings)

    def drop(self):
        folder, name = os.path.split(self.base)
        for entry in os.listdir(folder):
            if entry.startswith(name):
                os.unlink(os.path.join(folder, entry))


def mean(values):
    return statistics.fmean(abs(v) for v in values)


def parts(bench, longpole, scratch, packets):
    """What each part of the method does alone: without it, and the design of the runs without the method."""
    for pattern in ("rand", "central"):
        graph = Graph(longpole, scratch, "p" + pattern, "pattern=" + pattern, "packets=%d" % packets)
        adaptive = graph.sample("adaptive", 4)
        cases = [("all parts, design=adaptive", adaptive, [])]
        cases += [("without " + s.split("=")[0], adaptive, [s]) for s in SWITCHES]
        cases += [("literal", adaptive, ["method=literal"]), ("literal with blocked=1 alone", adaptive, ["method=literal", "blocked=1"])]
        for design in ("nodes", "links", "packets"):
            cases.append(("all parts, design=" + design, graph.sample(design, 4), []))
        for name, traces, settings in cases:
            counts = graph.infer(traces, *settings)["reference"]
            bench.row("parts: %s, %s: found" % (pattern, name), 100 * counts["found_share"], "%")
            bench.row("parts: %s, %s: quasi a true one" % (pattern, name), counts["quasi_per_true"], "")
        graph.drop()


def noise(bench, longpole, scratch, packets):
    """Delays that differ by up to 2 cycles in every run."""
    found, errors, literal = [], [], []
    for pattern in PATTERNS:
        graph = Graph(longpole, scratch, "n" + pattern, "pattern=" + pattern, "packets=%d" % packets)
        output = graph.base + "-inferred.lpt"
        counts = graph.infer(graph.sample("adaptive", 4, "noise=2"), output=output)["reference"]
        found.append((counts["found_share"], pattern))
        counts = graph.infer(graph.sample("nodes", 4, "noise=2"), "method=literal")["reference"]
        literal.append(counts["found_share"])
        rows = ask(longpole, "compare", graph.path, output, "on=mesh,fattree")["rows"]
        errors += [(abs(row["execution_error"]), pattern) for row in rows if row["replay"] == output]
        graph.drop()
    bench.row("noise of 2 cycles: found, mean", 100 * mean(f for f, _ in found), "%", 95, "min",
              PEER, PEER_VERSION, why="literal: %.2f %%" % (100 * mean(literal)))
    bench.row("noise of 2 cycles: found, worst pattern", 100 * min(found)[0], "%", 95, "min", why=min(found)[1])
    bench.row("noise of 2 cycles: execution time error, worst", 100 * max(errors)[0], "%", 3, "max", why=max(errors)[1])


def rows(bench, longpole, scratch):
    quick = bench.args.quick
    packets = 20000 if quick else 200000
    parts(bench, longpole, scratch, packets)
    noise(bench, longpole, scratch, packets)
