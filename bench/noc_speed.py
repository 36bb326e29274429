# SPDX-License-Identifier: Apache-2.0
"""noc_speed - the simulator's speed beside BookSim 2's, the cost of large networks, all processors at once, laws in 10,000 networks."""
import math
import os
import re
import resource
import subprocess

import noc_sim

# BookSim's words for the speed rows; everything else is its default or in the base of the reference.
BOOKSIM_CONFIG = """topology = mesh; k = 8; n = 2; routing_function = dor; use_noc_latency = 1; num_vcs = 2; vc_buf_size = 8;
vc_allocator = islip; sw_allocator = islip; alloc_iters = 1; routing_delay = 1; vc_alloc_delay = 1; sw_alloc_delay = 1; st_final_delay = 1;
credit_delay = 0; injection_rate_uses_flits = 1; packet_size = 1; traffic = uniform; sim_type = throughput; warmup_periods = 3;
sample_period = %d; max_samples = 6; latency_thres = -1.0; sim_count = 1; seed = 1; injection_rate = %s;
"""
SPEED_GOAL, SCALING_GOAL, SCALING_REPEATS = 15.0, 1.5, 4



def ask(longpole, *settings):
    """The result of `longpole noc sim --json`, and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = noc_sim.ask(longpole, *settings)
    return result, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before.ru_utime


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
    sides = (8, 16, 32) if bench.args.quick else (8, 16, 32, 64)
    cost = {k: math.inf for k in sides}
    for _ in range(SCALING_REPEATS):  # one after the other: what disturbs one disturbs the others
        for k in sides:
            # The same load of the links: in a mesh under uniform traffic it grows with k. Fewer cycles, as many flits.
            cycles = 40000 * 8 // k
            result, seconds = ask(longpole, "k=%d" % k, "load=%g" % (1.2 / k), "warmup_cycles=%d" % (cycles // 2), "measure_cycles=%d" % cycles)
            hops = result["hops_routers"] * result["accepted_flits_node_cycle"] * result["nodes"] * result["simulated_cycles"]
            cost[k] = min(cost[k], 1e9 * seconds / hops)
    for k in sides:
        bench.row("cost of a flit-hop, %dx%d mesh" % (k, k), cost[k], "ns", runs=SCALING_REPEATS, why="best")
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
    for jobs, wall in sorted(seconds.items()):
        bench.row("sweep of 24 simulations, %d at a time" % jobs, wall, "s")
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
    speed(bench, longpole, scratch)
    scaling(bench, longpole)
    processors(bench, longpole, scratch)
    laws(bench, longpole)
