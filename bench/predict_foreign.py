# SPDX-License-Identifier: Apache-2.0
"""Of bench/predict: programs that are not ours, changed by an option of theirs.

The change is one that makes some states cheaper: a lower level of compression, an easier comparison. By how much is measured where nothing
runs side by side, as processor time on one thread; `longpole whatif` scales the states by that in a recording of the parallel run,
and the parallel run with the other option says what came of it.
"""
import collections
import json
import os
import shlex
import shutil
import statistics

from benchlib import disturbed, run_once, run_quiet

# The commands with IN for the data, NUMBERS for a file of numbers, PARTS for a directory of small files; the same on one thread, for the
# ratio; the states that the option is about.
Change = collections.namedtuple("Change", "name command before after alone states")
CHANGES = [
    Change("pigz, -9 to -6", "pigz -p 2 {} -c IN", "-9", "-6", "pigz -p 1 {} -c IN", ["running libz*"]),
    Change("pigz, -6 to -1", "pigz -p 2 {} -c IN", "-6", "-1", "pigz -p 1 {} -c IN", ["running libz*"]),
    Change("xz, -6 to -2", "xz -T 2 --block-size=2MiB {} -c IN", "-6", "-2", "xz -T 1 --block-size=2MiB {} -c IN", ["running liblzma*"]),
    Change("zstd, -15 to -9", "zstd -q -T2 {} -c IN", "-15", "-9", "zstd -q -T1 {} -c IN", ["running zstd*"]),
    Change("sort, -g to -n", "sort --parallel=2 -S 64M {} NUMBERS", "-g", "-n", "sort --parallel=1 -S 64M {} NUMBERS", ["running *", "holding *"]),
    Change("gzip | sha256sum, -9 to -6", "sh -c 'gzip {} -c IN | sha256sum'", "-9", "-6", "gzip {} -c IN", ["running gzip*"]),
    Change("xargs -P 2 gzip, -9 to -6", "sh -c 'ls PARTS/* | xargs -P 2 -n 4 gzip -c {}'", "-9", "-6",
           "sh -c 'ls PARTS/* | xargs -P 1 -n 4 gzip -c {}'", ["running gzip*"]),
]
BYTES, BYTES_QUICK, NR_PARTS = 32 << 20, 12 << 20, 48


def some_text(size):
    """Text that any Debian has, always the same on one machine."""
    parts, left = [], size
    for top in ("/usr/include", "/usr/share", "/usr/lib/python3"):
        for directory, subdirectories, names in os.walk(top):
            subdirectories.sort()
            for name in sorted(names):
                if left <= 0:
                    return b"".join(parts)[:size]
                path = os.path.join(directory, name)
                if not name.endswith((".h", ".py", ".txt", ".pm", ".pl", ".c", ".xml", ".html")) or os.path.islink(path):
                    continue
                with open(path, "rb") as file:
                    parts.append(file.read())
                left -= len(parts[-1])
    return b"".join(parts)


def make_data(scratch, quick):
    places = {word: os.path.join(scratch, "foreign-" + word.lower()) for word in ("IN", "NUMBERS", "PARTS")}
    text = some_text(BYTES_QUICK if quick else BYTES)
    with open(places["IN"], "wb") as file:
        file.write(text)
    os.makedirs(places["PARTS"], exist_ok=True)
    for i in range(NR_PARTS):
        with open(os.path.join(places["PARTS"], "%03d" % i), "wb") as file:
            file.write(text[len(text) * i // NR_PARTS:len(text) * (i + 1) // NR_PARTS])
    with open(places["NUMBERS"], "w", encoding="ascii") as file:
        x = 1
        for _ in range(len(text) // 48):
            x = x * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            file.write("%d.%d\n" % (x >> 44, x & 1023))
    return places


def words_of(command, option, places):
    words = shlex.split(command.format(option))
    for place, path in places.items():
        words = [word.replace(place, path) for word in words]
    return words


def processor_seconds(command):
    """Of the command and its children; the output is not looked at."""
    pid = os.fork()
    if not pid:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.execvp(command[0], command)
    _pid, status, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime if not status else None


def ratios(change, places, runs):
    """(of the best runs, the least and the largest of a pair); None: it failed."""
    took = [[processor_seconds(words_of(change.alone, option, places)) for option in (change.before, change.after)] for _ in range(runs)]
    if any(None in pair for pair in took):
        return None
    pairs = [after / before for before, after in took]
    return min(pair[1] for pair in took) / min(pair[0] for pair in took), min(pairs), max(pairs)


def predictions(change, longpole, trace, before, factors, runs):
    """([(speed-up, low, high, by which method)], why there is none). The interval is that of all factors."""
    found = []
    for _ in range(runs):
        run = run_once([longpole, "record", "-q", "-o", trace, *before], keeps_output=False)
        if run.status:
            return [], "longpole record: exit status %d" % run.status
        edits = []
        for factor in factors:
            edits += [word for states in change.states for word in ("scale", "%s=x%.4f" % (states, factor))] + ["--"]
        run = run_once([longpole, "whatif", "--json", "--ledger=/dev/null", trace, *edits[:-1]])
        if run.status:
            return [], "longpole whatif: " + run.stderr.decode(errors="replace").strip()
        best = [scenario["best"] for scenario in json.loads(run.stdout)["result"]["scenarios"]]
        found.append((best[0]["predicted_speedup"], min(b["predicted_speedup_low"] for b in best),
                      max(b["predicted_speedup_high"] for b in best), best[0]["method"]))
    return sorted(found), None


def measure(commands, runs, bench):
    """(the middle elapsed seconds of each, in turn; others' share of the machine meanwhile, of the one that had to share more)"""
    of = [[] for _ in commands]
    for _ in range(runs):
        for runs_of, command in zip(of, commands):
            runs_of.append(bench.seen(run_quiet(command, keeps_output=False)))
    shares = [statistics.median(run.foreign_share for run in runs_of) for runs_of in of]
    return [statistics.median(run.seconds for run in runs_of) for runs_of in of], max(shares)


def run(bench, longpole, scratch, quick, only, runs):
    """Programs whose name contains `only`."""
    changes = [change for change in CHANGES if only in change.name]
    if not changes:
        return
    places = make_data(scratch, quick)
    trace = os.path.join(scratch, "foreign.lpt")
    outcomes = []  # (error, of each recording whether its interval has the outcome, why it could not be measured)
    bench.say("%-28s %-22s %7s %9s %17s %9s %7s" % ("program, change", "states", "cost", "predicted", "interval", "measured", "error"))
    for change in changes:
        missing = [word for word in (change.name.split(",")[0].split()[0],) if not shutil.which(word)]
        before, after = (words_of(change.command, option, places) for option in (change.before, change.after))
        factors = None if missing else ratios(change, places, 3 if quick else 5)
        why = "%s is not installed" % missing[0] if missing else None if factors else "it failed"
        found = []
        if not why:
            found, why = predictions(change, longpole, trace, before, factors, 3)
        if why:
            bench.note("%s: %s" % (change.name, why))
            bench.row(change.name + ": error", None, "%", 10, "max", why=why)
            continue
        seconds, others = measure((before, after), runs, bench)
        why = disturbed(others)
        measured, (predicted, low, high, method) = seconds[0] / seconds[1], found[len(found) // 2]
        error = (predicted / measured - 1) * 100
        outcomes.append((abs(error), [low <= measured <= high for _predicted, low, high, _method in found], why))
        bench.say("%-28s %-22s %6.2fx %8.3fx %8.3f-%7.3fx %8.3fx %+6.1f%%%s" %
                  (change.name, ", ".join(change.states), factors[0], predicted, low, high, measured, error, " disturbed" * bool(why)))
        bench.row(change.name + ": error", abs(error), "%", 10, "max", runs=runs, unmeasurable=why,
                  why="predicted %.3f by %s, measured %.3f" % (predicted, method, measured))
    if outcomes:
        say_summary(bench, outcomes, runs)


def say_summary(bench, outcomes, runs):
    """Over what could be measured; where nothing could, over all, and neither met nor missed."""
    measurable = [outcome for outcome in outcomes if not outcome[2]]
    why = None if measurable else "not measurable: others used the machine in every program's runs"
    errors, within, _why = zip(*(measurable or outcomes))
    inside = [one for of in within for one in of]
    bench.row("foreign: median error", statistics.median(errors), "%", 5, "max", runs=runs, unmeasurable=why, why="worst %.1f %%" % max(errors))
    bench.row("foreign: within the predicted interval", sum(inside) / len(inside), "share", 0.9, "min", runs=len(inside), unmeasurable=why)
