# SPDX-License-Identifier: Apache-2.0
"""noc_infer_speed - how long inference of a million packets takes, with one thread and all, and what dependencies cost a replay.

rows(bench, longpole, scratch) adds the rows. Wall time is that of the inference alone, which is what threads share; processor time is
that of the whole command, which reads five traces first, and is the number to look at where others use the machine. About 40 s.
"""
import os
import resource

from noc_infer import METHODS, Graph, ask

REPEATS = 5


def processor_seconds(call):
    """What call() returns, and the processor seconds of its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return result, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def inference(bench, longpole, graph, packets):
    traces, processors = graph.sample("nodes", 4), os.cpu_count() or 1
    for method in METHODS:
        wall, spent = {}, {}
        for _ in range(REPEATS):  # alternately: what disturbs one disturbs the other
            for threads in sorted({1, processors}):
                result, seconds = processor_seconds(lambda: ask(longpole, "infer", *traces, "method=" + method, "threads=%d" % threads))
                wall[threads] = min(result["wall_ns"] / 1e9, wall.get(threads, 1e9))
                spent[threads] = min(seconds, spent.get(threads, 1e9))
        for threads in sorted(wall):
            what = "%s, %d thread(s), m=4" % (method, threads)
            bench.row("inference, " + what, wall[threads] * 1e6 / packets, "s a million", 2, "max", runs=REPEATS, why="best; %d packets" % packets)
            bench.row("  processor time of the command, reading included", spent[threads] * 1e6 / packets, "s a million", 2, "max", runs=REPEATS)
        if processors > 1:
            bench.row("inference, %s, speed-up of %d threads" % (method, processors), wall[1] / wall[processors], "x", runs=REPEATS)


def replay(bench, longpole, graph):
    """Of the same packets: by their dependencies, and by their time stamps."""
    for network in (["topology=mesh", "k=8"], ["topology=fattree", "k=4", "n=3"]):
        spent = {}
        for _ in range(REPEATS):
            for how in ("graph", "stripped"):
                seconds = processor_seconds(lambda: ask(longpole, "replay", graph.path, "how=" + how, *network))[1]
                spent[how] = min(seconds, spent.get(how, 1e9))
        bench.row("replay by dependencies / by time stamps, %s, processor time" % network[0][9:], spent["graph"] / spent["stripped"], "x", 1.3,
                  "max", runs=REPEATS)


def rows(bench, longpole, scratch):
    packets = 100000 if bench.args.quick else 1000000
    graph = Graph(longpole, scratch, "speed", "pattern=rand", "packets=%d" % packets)
    inference(bench, longpole, graph, packets)
    replay(bench, longpole, graph)
    graph.drop()
