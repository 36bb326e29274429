# SPDX-License-Identifier: Apache-2.0
"""noc_closed - real programs in the closed loop: what graphs inferred from slowed runs predict (seed 002, figures 8 to 10).

rows(bench, longpole, scratch) adds the rows. The kernels of bench/kernels on 16 processors, recorded at level 3, run on the coherence
simulation over mesh, torus, ring and fat tree; against them the base run's time stamps, the graph inferred from it and five slowed
runs, and the graph that is known from inside; beside it what a base run gives whose messages take a cycle each, as the seed's. The
recording differs a little from time to time (addresses, who was first at a lock), and so do the errors; not the machine.
"""
import json
import os
import statistics
import subprocess
import sys

THREADS = 16
# kernel: size with --quick; else its own
KERNELS = {"fft": 10, "lu": 64, "cholesky": 96, "radix": 4096, "ocean": 66, "barnes": 128}


def record(longpole, source, scratch, kernel, size):
    """Builds and records it; the recording."""
    program, trace = os.path.join(scratch, kernel), os.path.join(scratch, kernel + ".lpt")
    include = os.path.join(source, "include")
    code = os.path.join(source, "bench", "kernels", kernel + ".c")
    subprocess.run([longpole, "cc", "-O2", "-I", include, "-o", program, code, "-lm", "-lpthread"], check=True)
    words = [program, str(THREADS)] + ([str(size)] if size else [])
    subprocess.run([longpole, "record", "-q", "--level", "3", "--sample-hz", "0", "--no-switches", "-o", trace, "--", *words],
                   check=True, stdout=subprocess.DEVNULL)
    return trace


def closed(longpole, trace, *setting):
    run = subprocess.run([longpole, "noc", "closed", "-q", "--json", trace, *setting], capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit("bench: longpole noc closed %s: %s" % (trace, run.stderr))
    return json.loads(run.stdout)["result"]


def rows(bench, longpole, scratch):
    from benchlib import SOURCE  # pylint: disable=import-outside-toplevel
    results, of_one_cycle = [], []
    for kernel, size in KERNELS.items():
        trace = record(longpole, SOURCE, scratch, kernel, size if bench.args.quick else None)
        result, one = closed(longpole, trace), closed(longpole, trace, "ideal_cycles=1")
        results.append(result)
        of_one_cycle.append(one)
        for what in ("execution", "latency"):
            key = "%%s_mean_%s_error" % what
            why = "known graph %.2f, time stamps %.1f; %.0f %% of the messages matched; from a base run of one-cycle messages %.2f" % (
                100 * result[key % "known"], 100 * result[key % "stripped"], 100 * result["matched_share"],
                100 * one[key % "inferred"])
            bench.row("closed loop: %s, %s error of the inferred graph" % (kernel, what), 100 * result[key % "inferred"], "%", why=why)
        os.unlink(trace)
    for what, goal, ratio in (("execution", 5, 2.5), ("latency", 1, 5.7)):
        mean = {k: 100 * statistics.fmean(r["%s_mean_%s_error" % (k, what)] for r in results) for k in ("inferred", "stripped")}
        why = "from a base run of one-cycle messages %.2f" % (
            100 * statistics.fmean(r["inferred_mean_%s_error" % what] for r in of_one_cycle))
        bench.row("closed loop: mean %s error of %d programs, inferred" % (what, len(results)), mean["inferred"], "%", goal, "max",
                  runs=len(results), why=why + ("; the seed: 13.4 % of execution time" if what == "execution" else ""))
        bench.row("closed loop: %s error of time stamps / of inferred graphs" % what, mean["stripped"] / max(mean["inferred"], 1e-9),
                  "x", ratio, "min", "PDG_GEN on Simics", "NOCS 2011", runs=len(results))
