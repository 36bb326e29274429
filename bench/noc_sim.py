# SPDX-License-Identifier: Apache-2.0
"""The simulator beside BookSim 2: latency and saturation of every reference row, speed, cost of large networks, laws in 10,000 networks."""
import concurrent.futures
import csv
import json
import math
import os
import re
import resource
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
# BookSim's words for the speed rows; everything else is its default or in the base of the reference.
BOOKSIM_CONFIG = """topology = mesh; k = 8; n = 2; routing_function = dor; use_noc_latency = 1; num_vcs = 2; vc_buf_size = 8;
vc_allocator = islip; sw_allocator = islip; alloc_iters = 1; routing_delay = 1; vc_alloc_delay = 1; sw_alloc_delay = 1; st_final_delay = 1;
credit_delay = 0; injection_rate_uses_flits = 1; packet_size = 1; traffic = uniform; sim_type = throughput; warmup_periods = 3;
sample_period = %d; max_samples = 6; latency_thres = -1.0; sim_count = 1; seed = 1; injection_rate = %s;
"""
SPEED_GOAL, SCALING_GOAL = 15.0, 1.5


def reference():
    with open(os.path.join(SOURCE, "bench", "noc_booksim.csv"), encoding="ascii") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def ask(longpole, *settings):
    """`longpole noc sim --json`: the result, and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([longpole, "noc", "sim", "--json", *settings], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(run.stdout)["result"], after.ru_utime - before.ru_utime


def settings_of(row):
    words, period = TOPOLOGY[row["topology"]]
    words = words.split() + PIPELINE[row["pipeline"]].split()
    words += ["traffic=" + row["traffic"], "packet_flits=" + row["packet_flits"], "warmup_cycles=%d" % (3 * period)]
    # As long as the reference ran: near saturation it took more periods, and there latencies grow with time.
    periods = max(3, int(float(row["cycles"] or 0)) // period - 3)
    return words + ["measure_cycles=%d" % (periods * period)]


def name_of(row):
    return "%s %s %s, %s flits" % (row["topology"], row["pipeline"], row["traffic"], row["packet_flits"])


def compare_latency(longpole, row, quick):
    """(name, reference, ours, error, bound, standard error of the difference as a share; or None for saturated)"""
    noisy = row["latency_cycles"] and float(row["sd_cycles"]) > 0.01 * float(row["latency_cycles"])
    seeds = 1 if quick else 6 if noisy else 3
    words = settings_of(row) + ["load=" + row["load"]]
    runs = [ask(longpole, *words, "seed=%d" % seed)[0] for seed in range(1, seeds + 1)]
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
    run = subprocess.run([longpole, "noc", "sim", "--json", "--saturation", *settings_of(row)], capture_output=True, check=True)
    result = json.loads(run.stdout)["result"]
    error = result["accepted_flits_node_cycle"] / float(row["accepted"]) - 1
    steps = abs(result["saturation_load_flits_node_cycle"] - float(row["saturation_load"]))
    return name_of(row), float(row["accepted"]), result["accepted_flits_node_cycle"], error, SATURATION_BOUND[row["pipeline"]], steps


def in_parallel(function, jobs):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda job: function(*job), jobs))


def agreement(bench, longpole):
    rows = [row for row in reference() if row["kind"] == "latency"]
    rows = rows[::7] if bench.args.quick else rows
    answers = in_parallel(compare_latency, [(longpole, row, bench.args.quick) for row in rows])
    bench.say("%-44s %10s %10s %8s" % ("mean packet latency, cycles", "BookSim", "longpole", "error"))
    outside, unsure = [], []
    for name, theirs, ours, error, bound, deviation in answers:
        bench.say("%-44s %10s %10s %7.2f%%" % (name, "saturated" if theirs is None else "%.2f" % theirs,
                                             "" if ours is None else "%.2f" % ours, 100 * error))
        if abs(error) > bound:
            # The reference's own three runs may differ by more than the bound.
            (unsure if theirs is not None and abs(error) <= 2 * deviation and deviation > bound / 2 else outside).append(name)
    errors = [abs(answer[3]) for answer in answers if answer[1] is not None]
    bench.row("rows of latency", len(answers), "rows")
    bench.row("rows outside 2 % (5 % for la3, spec2)", len(outside), "rows", goal=0, goal_is="max", peer="BookSim 2", peer_version="28f4329",
              runs=3, why="; ".join(outside) or None)
    bench.row("rows where BookSim's own seeds differ by more", len(unsure), "rows", peer="BookSim 2", peer_version="28f4329",
              why="outside the bound, within two standard errors of the difference: " + "; ".join(unsure) if unsure else None)
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


def booksim_rate(booksim, scratch, load, period):
    path = os.path.join(scratch, "booksim.cfg")
    with open(path, "w", encoding="ascii") as file:
        file.write(BOOKSIM_CONFIG % (period, load))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([booksim, path], capture_output=True, text=True, check=False)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before.ru_utime
    cycles = re.search(r"Time taken is (\d+) cycles", run.stdout)
    return int(cycles[1]) / seconds if cycles else None


def speed(bench, longpole, scratch):
    booksim, repeats = os.environ.get("BOOKSIM"), 2 if bench.args.quick else 4
    period = 1000 if bench.args.quick else 5000
    for load in ("0.05", "0.2", "0.35"):
        ours, theirs = [], []
        for _ in range(repeats):  # alternately: what disturbs one disturbs the other
            result, seconds = ask(longpole, "load=" + load, "warmup_cycles=%d" % (6 * period), "measure_cycles=%d" % (6 * period))
            ours.append(result["simulated_cycles"] / seconds)
            if booksim:
                theirs.append(booksim_rate(booksim, scratch, load, period))
        bench.row("8x8 mesh, uniform, load %s" % load, max(ours) / 1e3, "k cycles/s", runs=repeats)
        if theirs and all(theirs):
            bench.row("  against BookSim", max(ours) / max(theirs), "times", goal=SPEED_GOAL, goal_is="min", peer="BookSim 2 (%.1f k cycles/s)" %
                      (max(theirs) / 1e3), peer_version="given by BOOKSIM", runs=repeats)
        else:
            bench.row("  against BookSim", None, "times", goal=SPEED_GOAL, goal_is="min",
                      why="BOOKSIM is not set to the path of BookSim 2's program" if not booksim else "BookSim gave no answer")


def scaling(bench, longpole):
    cost = {}
    for k in (8, 16, 32) if bench.args.quick else (8, 16, 32, 64):
        # The same load of the links: in a mesh under uniform traffic it grows with k. Fewer cycles, as many flits.
        cycles = 40000 * 8 // k
        best = math.inf
        for _ in range(2):
            result, seconds = ask(longpole, "k=%d" % k, "load=%g" % (1.2 / k), "warmup_cycles=%d" % (cycles // 2), "measure_cycles=%d" % cycles)
            hops = result["hops_routers"] * result["accepted_flits_node_cycle"] * result["nodes"] * result["simulated_cycles"]
            best = min(best, 1e9 * seconds / hops)
        cost[k] = best
        bench.row("cost of a flit-hop, %dx%d mesh" % (k, k), best, "ns")
    bench.row("  largest against 8x8", cost[max(cost)] / cost[8], "times", goal=SCALING_GOAL, goal_is="max")


def processors(bench, longpole, scratch):
    spec = os.path.join(scratch, "sweep.ini")
    with open(spec, "w", encoding="ascii") as file:
        file.write("[common]\nload = 0.05..0.3/0.05\nseed = 1..4\n[mesh]\nk = 8\nmeasure_cycles = 10000\n")
    seconds = {}
    for jobs in (1, os.cpu_count()):
        database = os.path.join(scratch, "sweep%d.sqlite" % jobs)
        if os.path.exists(database):
            os.unlink(database)
        before = os.times().elapsed
        subprocess.run([longpole, "sweep", "-q", "-j", str(jobs), "-o", database, spec], capture_output=True, check=True)
        seconds[jobs] = os.times().elapsed - before
    share = seconds[1] / seconds[os.cpu_count()] / os.cpu_count()
    bench.row("sweep on %d processors, share of the ideal speed-up" % os.cpu_count(), share, "", goal=0.8, goal_is="min")


def laws(bench, longpole):
    build = os.path.dirname(os.path.dirname(os.path.dirname(longpole)))
    test = os.path.join(build, "tests", "unit", "test_noc_network")
    name = "random networks in which all arrived and no credit was lost"
    if not os.access(test, os.X_OK):
        bench.row(name, None, "networks", goal=10000, goal_is="min", why="built without tests")
        return
    run = subprocess.run([test], capture_output=True, text=True, check=False, env={**os.environ, "LONGPOLE_NOC_CONFIGS": "1"})
    found = re.search(r"(\d+) configurations", run.stdout + run.stderr)
    bench.row(name, int(found[1]) if found and not run.returncode else 0, "networks", goal=10000, goal_is="min")


def rows(bench, longpole, scratch):
    agreement(bench, longpole)
    saturation(bench, longpole)
    speed(bench, longpole, scratch)
    scaling(bench, longpole)
    processors(bench, longpole, scratch)
    laws(bench, longpole)
