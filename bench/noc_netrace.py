# SPDX-License-Identifier: Apache-2.0
"""noc_netrace - Netrace's test traces replayed with and without their dependencies, beside BookSim 2.

rows(bench, longpole, scratch) adds the rows. Wants NETRACE=folder of the traces: testraces of github.com/booksim/netrace. Nothing here depends
on the machine but the time of one replay.
"""
import csv
import os
import subprocess
import time

from benchlib import SOURCE
from noc_infer import ask

TOPOLOGY = {
    "mesh8x8": ["topology=mesh", "k=8"],
    "torus8x8": ["topology=torus", "k=8"],
    "fattree4x3": ["topology=fattree", "k=4", "n=3"],
    "ring64": ["topology=torus", "k=64", "n=1"],
}
PEER, PEER_VERSION = "BookSim 2, branch classes", "27eb224"
RUN_GOAL = 3


def reference():
    with open(os.path.join(SOURCE, "bench", "noc_netrace.csv"), encoding="ascii") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def rows(bench, longpole, scratch):
    folder = os.environ.get("NETRACE")
    name = "netrace: run time, largest difference"
    if not folder:
        bench.row(name, None, "%", RUN_GOAL, "max", PEER, PEER_VERSION, why="NETRACE is not set to the folder of Netrace's test traces")
        return
    table, run_error, latency_error = reference(), [], []
    for trace in sorted({row["trace"] for row in table}):
        subprocess.run([longpole, "noc", "import", "-q", "netrace", os.path.join(folder, trace + ".tra.bz2"), "-o",
                        os.path.join(scratch, trace + ".lpt"), "delays=recorded"], check=True, stdout=subprocess.DEVNULL)
    bench.say("%-12s %-10s %-12s %10s %10s %8s %8s" % ("trace", "topology", "dependencies", "BookSim", "longpole", "run", "latency"))
    for row in table:
        how = [] if row["dependencies"] == "1" else ["how=stripped"]
        began = time.monotonic()
        result = ask(longpole, "replay", os.path.join(scratch, row["trace"] + ".lpt"), *how, *TOPOLOGY[row["topology"]])
        seconds = time.monotonic() - began
        if row["trace"] == "lngrex" and not how:
            long_seconds = seconds
        run_error.append(100 * (result["execution_cycles"] / float(row["run_cycles"]) - 1))
        latency_error.append(100 * (result["mean_packet_latency_cycles"] / float(row["latency_cycles"]) - 1))
        bench.say("%-12s %-10s %-12s %10s %10d %7.2f%% %7.2f%%" % (row["trace"], row["topology"], "on" if not how else "off", row["run_cycles"],
                                                                 result["execution_cycles"], run_error[-1], latency_error[-1]))
    bench.row(name, max(map(abs, run_error)), "%", RUN_GOAL, "max", PEER, PEER_VERSION, runs=len(table))
    bench.row("netrace: mean packet latency, largest difference", max(map(abs, latency_error)), "%", None, None, PEER, PEER_VERSION, runs=len(table))
    bench.row("netrace: lngrex replayed with dependencies", long_seconds, "s", why="2.3 million cycles, most of them idle; BookSim takes 28 s")
