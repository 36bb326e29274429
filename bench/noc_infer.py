# SPDX-License-Identifier: Apache-2.0
"""noc_infer - packet dependencies inferred from traces: what bench/noc shows of seed 002 (Nitta and others 2011).

rows(bench, longpole, scratch) adds the rows. Reference graphs of ten patterns, 64 nodes (parameters: the defaults of
`longpole noc gen`, which the seed does not give); base run and m skewed ones; inferred by PDG_GEN as the text has it
(method=literal on design=nodes) and by ours (method=robust on design=adaptive), side by side. Figures 3 to 7 as rows; each part
of ours switched off alone; noise; speed. Numbers of dependencies and errors do not depend on the machine, times do.
"""
import json
import os
import statistics
import subprocess
import sys

import plot

PATTERNS = ["rand", "nn", "tor", "trans", "inv", "hot", "ned", "ball", "central", "tree"]
PEER, PEER_VERSION = "PDG_GEN as in the text", "NOCS 2011"
METHODS = {"literal": ("nodes", ["method=literal"]), "robust": ("adaptive", [])}
SWITCHES = ["blocked=0", "adaptive=0", "grade=0", "reduce=0", "learn=0"]
SPEED_REPEATS = 3


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


def svg(bench, name):
    """Where a figure goes; None: not wanted."""
    folder = getattr(bench.args, "svg", None)
    return os.path.join(folder, name + ".svg") if folder else None


def figures_3_to_5(bench, longpole, scratch, packets):
    """True and quasi-dependencies; execution time and latency on mesh, torus, ring and fat tree: m=4, k=1."""
    errors, replay_cost = {}, []
    worst = {method: [1.0, 0.0] for method in METHODS}
    shares = {"%s: %s" % (method, what): [] for method in METHODS for what in ("found", "quasi")}
    bench.say("pattern   method   found   quasi    " + "  ".join("%-17s" % n for n in ("mesh", "torus", "ring", "fattree")))
    for pattern in PATTERNS:
        graph, inferred = Graph(longpole, scratch, pattern, "pattern=" + pattern, "packets=%d" % packets), []
        for method, (design, settings) in METHODS.items():
            output = "%s-inferred-%s.lpt" % (graph.base, method)
            counts = graph.infer(graph.sample(design, 4), *settings, output=output)["reference"]
            inferred.append((method, output, counts))
            shares[method + ": found"].append(counts["found_share"])
            shares[method + ": quasi"].append(counts["quasi_per_true"])
            worst[method][0] = min(worst[method][0], counts["found_share"])
            worst[method][1] = max(worst[method][1], counts["quasi_per_true"])
        rows = ask(longpole, "compare", graph.path, *[output for _, output, _ in inferred],
                   "on=mesh,torus,ring,fattree", "vcs=2")["rows"]
        names = {output: method for method, output, _ in inferred}
        names["time stamps"] = "stripped"
        wall = {}
        for row in rows:
            wall[(row["network"], row["replay"])] = row["wall_ns"]
            if row["replay"] in names:
                errors.setdefault((names[row["replay"]], row["network"]), []).append(
                    (row["execution_error"], row["latency_error"], pattern))
        replay_cost += [wall[(n, "reference")] / wall[(n, "time stamps")] for n in ("mesh", "fattree")]
        for method, _, counts in inferred:
            cells = ["%+7.3f%% %+7.3f%%" % (100 * errors[(method, n)][-1][0], 100 * errors[(method, n)][-1][1])
                     for n in ("mesh", "torus", "ring", "fattree")]
            bench.say("%-9s %-8s %.4f  %.4f   %s" % (pattern, method, counts["found_share"], counts["quasi_per_true"],
                                                    "  ".join(cells)))
        graph.drop()
    if svg(bench, "figure_3"):
        plot.bars(svg(bench, "figure_3"), "Dependencies found, and quasi-dependencies: 64 nodes, m=4, k=1", "a true dependency", PATTERNS,
                  shares)
    goals = {("robust", "mesh"): 0.3, ("robust", "fattree"): 0.3, ("robust", "torus"): 0.3, ("robust", "ring"): 0.3,
             ("literal", "mesh"): 3, ("literal", "fattree"): 1.5}
    for (method, network), list_ in sorted(errors.items()):
        goal = goals.get((method, network))
        bench.row("execution time error, %s, %s, mean of ten patterns" % (method, network),
                  100 * mean(e for e, _, _ in list_), "%", goal, "max" if goal else None, why="stripped: time stamps only"
                  if method == "stripped" else None)
        bench.row("latency error, %s, %s, mean" % (method, network), 100 * mean(l for _, l, _ in list_), "%")
        largest, pattern = max((abs(e), p) for e, _, p in list_)
        goal = {"robust": 2, "literal": 13.1}.get(method)
        bench.row("execution time error, %s, %s, worst" % (method, network), 100 * largest, "%", goal,
                  "max" if goal else None, why=pattern)
    for method, (found, quasi) in worst.items():
        ours = method == "robust"
        bench.row("true dependencies found, %s, worst pattern, m=4" % method, 100 * found, "%", 99 if ours else None,
                  "min" if ours else None)
        bench.row("quasi-dependencies a true one, %s, worst pattern, m=4" % method, quasi, "", 0.02 if ours else None,
                  "max" if ours else None)
    bench.row("replay with dependencies / by time stamps, time", statistics.median(replay_cost), "x", 1.3, "max",
              runs=len(replay_cost), why="also longer: the dependent run simulates more cycles")


def figure_6(bench, longpole, scratch, packets):
    """Found and quasi against m."""
    runs = (1, 2, 4, 8, 16)
    for pattern in ("rand", "hot"):
        graph = Graph(longpole, scratch, "f6" + pattern, "pattern=" + pattern, "packets=%d" % packets)
        shares = {"%s: %s" % (method, what): [] for method in METHODS for what in ("missed", "quasi")}
        for m in runs:
            for method, (design, settings) in METHODS.items():
                counts = graph.infer(graph.sample(design, m), *settings)["reference"]
                shares[method + ": missed"].append(1 - counts["found_share"])
                shares[method + ": quasi"].append(counts["quasi_per_true"])
                bench.row("figure 6: %s, m=%d, %s: found" % (pattern, m, method), 100 * counts["found_share"], "%")
                bench.row("figure 6: %s, m=%d, %s: quasi a true one" % (pattern, m, method), counts["quasi_per_true"], "")
        graph.drop()
        if svg(bench, "figure_6"):
            plot.lines(svg(bench, "figure_6_" + pattern), "Accuracy against the number of slowed runs: " + pattern, "m", "a true dependency",
                       runs, shares)


def figure_7(bench, longpole, scratch, packets):
    """NED, 128 nodes, m=8: static windows of w receptions, dynamic ones of k transmits. Nodes that are not held up (blocked=1), so
    that the window alone is seen."""
    graph = Graph(longpole, scratch, "f7", "pattern=ned", "nodes=128", "packets=%d" % packets)
    traces = graph.sample("nodes", 8)
    for key, values in (("w", (1, 2, 4, 8, 16)), ("k", (1, 2, 4, 8))):
        shares = {"found": [], "quasi": []}
        for value in values:
            counts = graph.infer(traces, "method=literal", "blocked=1", "%s=%d" % (key, value))["reference"]
            shares["found"].append(counts["found_share"])
            shares["quasi"].append(counts["quasi_per_true"])
            bench.row("figure 7: ned, 128 nodes, m=8, %s=%d: found" % (key, value), 100 * counts["found_share"], "%")
            bench.row("figure 7: ned, 128 nodes, m=8, %s=%d: quasi a true one" % (key, value), counts["quasi_per_true"], "")
        if svg(bench, "figure_7"):
            plot.lines(svg(bench, "figure_7_" + key), "Windows: ned, 128 nodes, m=8, literal", key, "a true dependency", values, shares)
    graph.drop()


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


def speed(bench, longpole, scratch, packets):
    graph = Graph(longpole, scratch, "speed", "pattern=rand", "packets=%d" % packets)
    traces = graph.sample("nodes", 4)
    seconds = {}
    for method in METHODS:
        for threads in (1, os.cpu_count() or 1):
            walls = [ask(longpole, "infer", *traces, "method=" + method, "threads=%d" % threads)["wall_ns"] / 1e9
                     for _ in range(SPEED_REPEATS)]
            seconds[(method, threads)] = min(walls)
            bench.row("inference, %s, %d thread(s), m=4, 1 M packets" % (method, threads), min(walls) * 1e6 / packets, "s",
                      2, "max", runs=SPEED_REPEATS, why="best; %d packets" % packets)
        most = os.cpu_count() or 1
        if most > 1:
            bench.row("inference, %s, speed-up of %d threads" % (method, most), seconds[(method, 1)] / seconds[(method, most)], "x")
    graph.drop()


def rows(bench, longpole, scratch):
    quick = bench.args.quick
    packets = 20000 if quick else 1000000
    figures_3_to_5(bench, longpole, scratch, packets)
    figure_6(bench, longpole, scratch, packets // 5)
    figure_7(bench, longpole, scratch, packets // 5)
    parts(bench, longpole, scratch, packets // 5)
    noise(bench, longpole, scratch, packets // 5)
    speed(bench, longpole, scratch, 100000 if quick else 1000000)


if __name__ == "__main__":  # alone; ./dev bench noc has these rows beside the simulator's
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from benchlib import Bench, find_longpole, scratch_dir
    BENCH = Bench("noc_infer.py", __doc__)
    BENCH.parse()
    rows(BENCH, find_longpole(), scratch_dir())
    BENCH.finish()
