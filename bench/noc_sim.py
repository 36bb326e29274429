# SPDX-License-Identifier: Apache-2.0
"""noc_sim - the simulator beside BookSim 2: latency and saturation of every reference row. Nothing here depends on the machine."""
import concurrent.futures
import csv
import json
import math
import os
import statistics
import subprocess

from benchlib import SOURCE

TOPOLOGY = {
    "mesh8x8": ("topology=mesh k=8 n=2", 5000),
    "torus8x8": ("topology=torus k=8 n=2", 5000),
    "fattree4x3": ("topology=fattree k=4 n=3", 5000),
    "mesh16x16": ("topology=mesh k=16 n=2", 2000),
    "mesh4x4": ("topology=mesh k=4 n=2", 10000),
    "torus4x4": ("topology=torus k=4 n=2", 10000),
    "ring16": ("topology=torus k=16 n=1", 10000),
}
PIPELINE = {
    "def": "",
    "la3": "routing_delay=0 credit_delay=2",
    "spec2": "routing_delay=0 credit_delay=2 speculative=1",
}
BOUND = {"def": 0.02, "la3": 0.05, "spec2": 0.05}
SATURATION_BOUND = {"def": 0.03, "la3": 0.05, "spec2": 0.05}

def reference():
    with open(os.path.join(SOURCE, "bench", "noc_booksim.csv"), encoding="ascii") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def ask(longpole, *settings):
    """The result of `longpole noc sim --json`."""
    run = subprocess.run([longpole, "noc", "sim", "--json", *settings], capture_output=True, check=True)
    return json.loads(run.stdout)["result"]


def settings_of(row):
    words, period = TOPOLOGY[row["topology"]]
    words = words.split() + PIPELINE[row["pipeline"]].split()
    words += ["traffic=" + row["traffic"], "packet_flits=" + row["packet_flits"], "warmup_cycles=%d" % (3 * period)]
    # As long as the reference ran: near saturation it took more periods, and there latencies grow with time; up to ten before it gives up.
    periods = max(3, int(float(row["cycles"])) // period - 3) if row["cycles"] else 7 if row["kind"] == "latency" else 3
    return words + ["measure_cycles=%d" % (periods * period)]


def name_of(row):
    return "%s %s %s, %s flits" % (row["topology"], row["pipeline"], row["traffic"], row["packet_flits"])


def compare_latency(longpole, row, quick):
    """(name, reference, ours, error, bound, standard error of the difference as a share; or None for saturated)"""
    noisy = row["latency_cycles"] and float(row["sd_cycles"]) > 0.01 * float(row["latency_cycles"])
    seeds = 1 if quick else 6 if noisy else 3
    words = settings_of(row) + ["load=" + row["load"]]
    runs = [ask(longpole, *words, "seed=%d" % seed) for seed in range(1, seeds + 1)]
    name = "%s, load %s" % (name_of(row), row["load"])
    if not row["latency_cycles"]:
        return name, None, None, 0.0 if all(r["saturated"] for r in runs) else 1.0, 0.5, 0.0
    theirs, ours = float(row["latency_cycles"]), statistics.mean(r["latency_cycles"]["mean"] for r in runs)
    variance = float(row["sd_cycles"]) ** 2 / int(row["seeds"])
    if len(runs) > 1:
        variance += statistics.variance(r["latency_cycles"]["mean"] for r in runs) / len(runs)
    error = 1.0 if any(r["saturated"] for r in runs) and not noisy else ours / theirs - 1
    return name, theirs, ours, error, BOUND[row["pipeline"]], math.sqrt(variance) / theirs


def compare_saturation(longpole, row):
    result = ask(longpole, "--saturation", *settings_of(row))
    error = result["accepted_flits_node_cycle"] / float(row["accepted"]) - 1
    steps = abs(result["saturation_load_flits_node_cycle"] - float(row["saturation_load"]))
    return name_of(row), float(row["accepted"]), result["accepted_flits_node_cycle"], error, SATURATION_BOUND[row["pipeline"]], steps


def in_parallel(function, jobs):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda job: function(*job), jobs))


def agreement(bench, longpole):
    everything = reference()
    limit = {name_of(row): float(row["saturation_load"]) for row in everything if row["kind"] == "saturation"}
    rows = [row for row in everything if row["kind"] == "latency"]
    rows = rows[::7] if bench.args.quick else rows
    answers = in_parallel(compare_latency, [(longpole, row, bench.args.quick) for row in rows])
    bench.say("%-44s %10s %10s %8s" % ("mean packet latency, cycles", "BookSim", "longpole", "error"))
    outside, unsure = [], []
    beyond = {answer[0] for row, answer in zip(rows, answers) if float(row["load"]) > limit.get(name_of(row), 1.0)}
    for name, theirs, ours, error, bound, deviation in answers:
        bench.say("%-44s %10s %10s %7.2f%%" % (name, "saturated" if theirs is None else "%.2f" % theirs,
                                             "" if ours is None else "%.2f" % ours, 100 * error))
        if abs(error) > bound:
            # Beyond saturation, or near it, the reference's own runs differ by more than the bound.
            (unsure if name in beyond and theirs is not None else unsure if theirs is not None and abs(error) <= 2 * deviation and deviation > bound / 2 else outside).append(name)
    errors = [abs(answer[3]) for answer in answers if answer[1] is not None]
    bench.row("rows of latency", len(answers), "rows")
    bench.row("rows below saturation outside 2 % (5 % for la3, spec2)", len(outside), "rows", goal=0, goal_is="max", peer="BookSim 2", peer_version="28f4329",
              runs=3, why="; ".join(outside) or None)
    bench.row("rows at or beyond saturation, where BookSim's own seeds differ by more", len(unsure), "rows", peer="BookSim 2",
              peer_version="28f4329", why="not counted above: " + "; ".join(unsure) if unsure else None)
    bench.row("median error of latency", 100 * statistics.median(errors), "%")


def saturation(bench, longpole):
    rows = [row for row in reference() if row["kind"] == "saturation"]
    rows = rows[::9] if bench.args.quick else rows
    answers = in_parallel(compare_saturation, [(longpole, row) for row in rows])
    bench.say("\n%-44s %10s %10s %8s" % ("accepted beyond saturation", "BookSim", "longpole", "error"))
    outside = []
    for name, theirs, ours, error, bound, steps in answers:
        bench.say("%-44s %10.4f %10.4f %7.2f%%" % (name, theirs, ours, 100 * error))
        if abs(error) > bound or steps > 0.0101:
            outside.append(name)
    bench.row("rows of saturation", len(answers), "rows")
    bench.row("rows outside 3 % of throughput, or a step of load", len(outside), "rows", goal=0, goal_is="max", peer="BookSim 2",
              peer_version="28f4329", why="; ".join(outside) or None)
    bench.row("largest error of throughput", 100 * max(abs(answer[3]) for answer in answers), "%", goal=5, goal_is="max")


def rows(bench, longpole, scratch):
    del scratch
    agreement(bench, longpole)
    saturation(bench, longpole)
