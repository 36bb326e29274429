# SPDX-License-Identifier: Apache-2.0
"""Of bench/predict: programs of others that wait, and then wait less.

Each does a fixed amount of work, so its elapsed time is what a change buys. It is recorded several times with the wait as it is;
`longpole whatif` predicts the run with less of it; then the program runs, unrecorded, as it was and changed, in turn.

What is waited for is no processor: it takes as long on a machine that others use. A disk does not do so, therefore
foreign/slow_disk.c stands in for it. What is made true is what was asked: `remove fsync` is a disk that takes no time. (A server's option that
makes nothing durable changes more than that. With redis' `appendfsync no` each answer is sent at once, where `always` asks the event loop for
another turn first: 10.6 times as fast by that option, 9.3 times by the disk.)
Servers live in a directory of their own, listen there, and end with the run.
"""
import atexit
import collections
import json
import os
import pwd
import shutil
import statistics
import subprocess
import tempfile
import time

from benchlib import SOURCE, c_compiler, disturbed, run_once

HERE = os.path.join(SOURCE, "bench", "foreign")
MEMORY = "/dev/shm"  # files there wait for no disk but the one that stands in for it
DEBIAN_POSTGRES = "/usr/lib/postgresql"
GOAL_MEDIAN, GOAL_WORST, GOAL_WITHIN, GOAL_WIDTH = 5.0, 15.0, 0.9, 15.0
PROGRAM_SECONDS_MAX = 60.0  # of all runs of one program
RUN_SECONDS_MAX = 60
MEMORY_BYTES_MIN = 1 << 30

# What is done: HERE is this directory, DIR one of the program's own, {} what changes, N how much to do; `quick` is N with --quick. `edits` says the same to
# `longpole whatif`. `prepare` is a function of Waits.
Wait = collections.namedtuple("Wait", "name needs prepare command before after edits much quick")
DISK = "env BENCH_DISK_US={} "
WAITS = [
    Wait("PostgreSQL, disk of no time", ["postgres", "pgbench"], "cluster", DISK + "sh HERE/postgres.sh DIR on N", "1000", "0", ["remove", "fsync"],
         800, 400),
    Wait("redis, disk of no time", ["redis-server", "redis-benchmark", "redis-cli"], None, DISK + "sh HERE/redis.sh DIR always N", "1000", "0",
         ["remove", "fsync"], 60000, 40000),
    Wait("SQLite, disk of no time", ["sqlite3"], None, DISK + "sh HERE/sqlite.sh DIR full N", "1000", "0", ["remove", "fsync"], 400, 250),
    Wait("ticker beside work, disk of no time", [], "ticker.c", DISK + "DIR/program DIR on N", "1000", "0", ["remove", "fsync"], 1500, 900),
    Wait("GNU parallel, jobs of half the time", ["parallel"], None, "sh HERE/parallel.sh DIR {} N", "0.2", "0.1", ["scale", "sleeping=-50%"], 32, 16),
    Wait("OpenMP, ordered part of half the time", [], "openmp.c", "env OMP_WAIT_POLICY=passive DIR/program ordered {} N", "2000", "1000",
         ["scale", "sleeping=-50%"], 1000, 600),
    Wait("OpenMP, critical part of half the time", [], "openmp.c", "env OMP_WAIT_POLICY=passive DIR/program critical {} N", "2000", "1000",
         ["scale", "sleeping=-50%"], 1000, 600),
    Wait("TBB's pipeline, last stage of half the time", [], "tbb.cc", "DIR/program {} N", "2000", "1000", ["scale", "sleeping=-50%"], 1000, 600),
    Wait("Java, lock held half as long", ["java", "javac"], "java", "java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp DIR Sections {} N", "2000", "1000",
         ["scale", "sleeping until a time limit=-50%"], 600, 400),
    Wait("Python, source twice as fast", ["python3"], None, "/usr/bin/python3 HERE/queues.py {} N", "0.008", "0.004", ["scale", "sleeping=-50%"],
         300, 200),
]
COMPILE_FLAGS = {"openmp.c": ["-fopenmp"], "tbb.cc": ["-ltbb"]}


def postgres_programs():
    """The directory of the newest ones; Debian has not all of them in the PATH."""
    versions = sorted(os.listdir(DEBIAN_POSTGRES), key=lambda name: [int(part) for part in name.split(".") if part.isdigit()]) \
        if os.path.isdir(DEBIAN_POSTGRES) else []
    return os.path.join(DEBIAN_POSTGRES, versions[-1], "bin") if versions else None


class Waits:
    """One program: how it is prepared, recorded and run."""

    def __init__(self, wait, files, quick, longpole, disk):
        self.wait, self.longpole, self.disk = wait, longpole, disk
        self.dir = os.path.join(files, "waits-%d" % WAITS.index(wait))
        self.nr = wait.quick if quick else wait.much
        self.as_user, self.why = [], None
        self.began = time.monotonic()
        os.makedirs(self.dir)
        path = os.pathsep.join(filter(None, (os.environ.get("PATH"), postgres_programs())))
        missing = [name for name in wait.needs if not shutil.which(name, path=path)]
        if missing:
            self.why = "%s is not installed" % missing[0]
        elif wait.prepare:
            self.prepare(wait.prepare)

    def prepare(self, how):
        if how == "cluster":
            self.prepare_cluster()
        elif how == "java":
            self.must(["javac", "-d", self.dir, os.path.join(HERE, "Sections.java")])
        else:
            self.compile(how)

    def must(self, command):
        result = subprocess.run([*self.as_user, *command], capture_output=True, text=True, check=False, timeout=RUN_SECONDS_MAX, cwd=self.dir)
        if result.returncode:
            self.why = "%s: %s" % (command[0], (result.stderr.strip().splitlines() or ["exit status %d" % result.returncode])[-1])

    def compile(self, source):
        compiler = ["g++"] if source.endswith(".cc") else c_compiler()
        self.must([*compiler, "-O2", "-g", "-D_GNU_SOURCE", os.path.join(HERE, source), "-o", os.path.join(self.dir, "program"), "-pthread",
                   *COMPILE_FLAGS.get(source, [])])

    def prepare_cluster(self):
        """PostgreSQL refuses to run as root."""
        if os.getuid() == 0:
            user = next((user for user in pwd.getpwall() if user.pw_name in ("postgres", "nobody")), None)
            if not user or not shutil.which("setpriv"):
                self.why = "no user but root to run it as"
                return
            os.chown(self.dir, user.pw_uid, user.pw_gid)
            os.chmod(os.path.dirname(self.dir), 0o711)
            self.as_user = ["setpriv", "--reuid=%d" % user.pw_uid, "--regid=%d" % user.pw_gid, "--clear-groups"]
        os.symlink(postgres_programs(), os.path.join(self.dir, "bin"))
        self.must(["bin/initdb", "-D", "data", "-A", "trust", "-U", "postgres", "-N"])
        if not self.why:
            self.must(["sh", os.path.join(HERE, "postgres.sh"), self.dir, "off", "0"])

    def command(self, value):
        places = {"HERE": HERE, "DIR": self.dir, "N": str(self.nr), "{}": value}
        words = self.wait.command.split()
        for word, place in places.items():
            words = [place if w == word else w.replace(word + "/", place + "/").replace("={}", "=" + value) for w in words]
        return words

    def tries(self, what, *arguments):
        """Its result; None: `why` says what failed."""
        try:
            return what(*arguments)
        except subprocess.TimeoutExpired as late:
            self.why = "no end after %d s" % late.timeout
        except OSError as error:
            self.why = str(error)
        return None

    def run(self, value, recorder=()):
        # (the recorder adds its own library to those that are there; it makes nothing durable)
        return run_once([*self.as_user, "env", "LD_PRELOAD=" + self.disk, *recorder, *self.command(value)], cwd=self.dir, timeout=RUN_SECONDS_MAX)

    def predict(self):
        """(speed-up, low, high, by which method, others' share); None: why says what failed."""
        trace = os.path.join(self.dir, "trace.lpt")
        run = self.run(self.wait.before, [self.longpole, "record", "-q", "-o", trace, "--"])
        if run.status:
            self.why = "longpole record: exit status %d: %s" % (run.status, last_line(run))
            return None
        answer = run_once([*self.as_user, self.longpole, "whatif", "--json", "--ledger=/dev/null", trace, *self.wait.edits])
        if answer.status:
            self.why = "longpole whatif: " + last_line(answer)
            return None
        return answer_of(answer, run.foreign_share)

    def time_left(self):
        return time.monotonic() - self.began < PROGRAM_SECONDS_MAX


def last_line(run):
    lines = (run.stderr or run.stdout).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no message"


Answer = collections.namedtuple("Answer", "speedup low high method others")


def answer_of(run, others):
    best = json.loads(run.stdout)["result"]["scenarios"][0]["best"]
    return Answer(best["predicted_speedup"], best["predicted_speedup_low"], best["predicted_speedup_high"], best["method"], others)


def error_percent(predicted, measured):
    return (predicted / measured - 1) * 100


class Outcome:
    """Of one program: its answers, and its runs before and after the change: (seconds, others' share of the machine)."""

    def __init__(self, program, runs, recordings, bench):
        self.answers, self.before, self.after = [], [], []
        for turn in range(max(runs, recordings)):
            if turn and not program.time_left():
                break
            if turn < recordings:
                self.answers += filter(None, [program.tries(program.predict)])
            if turn < runs:
                for of, value in ((self.before, program.wait.before), (self.after, program.wait.after)):
                    run = program.tries(program.run, value)
                    if not run:
                        return
                    bench.seen(run)
                    if run.status:
                        program.why = "exit status %d: %s" % (run.status, last_line(run))
                    of.append((run.seconds, run.foreign_share))
            if program.why:
                return
        self.measured = middle(self.before) / middle(self.after)
        self.predicted, self.low, self.high = (statistics.median(column) for column in list(zip(*self.answers))[:3])
        self.method = collections.Counter(answer.method for answer in self.answers).most_common(1)[0][0]
        self.others = max(statistics.median(share for _seconds, share in of) for of in (self.before, self.after))
        self.within = [answer.low <= self.measured <= answer.high for answer in self.answers]
        self.widths = [(answer.high / answer.low - 1) * 100 for answer in self.answers]

    def disturbed(self):
        return disturbed(self.others)


def middle(of):
    return statistics.median(seconds for seconds, _share in of)


def files_dir(scratch):
    """Of servers and databases; not in memory where there is not enough of that."""
    try:
        room = os.statvfs(MEMORY)
        if room.f_bavail * room.f_frsize >= MEMORY_BYTES_MIN:
            path = tempfile.mkdtemp(prefix="longpole-bench-", dir=MEMORY)
            atexit.register(shutil.rmtree, path, True)
            return path
    except OSError:
        pass
    return scratch


def build_disk(scratch):
    path = os.path.join(scratch, "slow_disk.so")
    subprocess.run([*c_compiler(), "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", os.path.join(HERE, "slow_disk.c"), "-o", path], check=True)
    return path


def say_summary(bench, outcomes):
    """Over the programs that the machine could measure; where it could measure none, over all, and neither met nor missed."""
    measurable = [outcome for outcome in outcomes if not outcome.disturbed()]
    why = None if measurable else "not measurable: others used the machine in every program's runs"
    counted = measurable or outcomes
    errors = [abs(error_percent(outcome.predicted, outcome.measured)) for outcome in counted]
    within = [inside for outcome in counted for inside in outcome.within]
    widths = [width for outcome in counted for width in outcome.widths]
    bench.row("waits: median error", statistics.median(errors), "%", GOAL_MEDIAN, "max", runs=len(errors), unmeasurable=why)
    bench.row("waits: worst error", max(errors), "%", GOAL_WORST, "max", runs=len(errors), unmeasurable=why)
    bench.row("waits: within the predicted interval", sum(within) / len(within), "share", GOAL_WITHIN, "min", runs=len(within), unmeasurable=why)
    bench.row("waits: median width of the interval", statistics.median(widths), "%", GOAL_WIDTH, "max", runs=len(widths), unmeasurable=why)


def run(bench, longpole, scratch, quick, only, runs):
    """Programs whose name contains `only`."""
    files = files_dir(scratch)
    disk, recordings, outcomes = build_disk(files), 3 if quick else 5, []
    bench.say("%-44s %9s %17s %9s %7s %8s %8s" % ("program, change", "predicted", "interval", "measured", "error", "before", "after"))
    for wait in WAITS:
        if only not in wait.name:
            continue
        program = Waits(wait, files, quick, longpole, disk)
        outcome = None if program.why else Outcome(program, runs, recordings, bench)
        if program.why:
            bench.note("%s: %s" % (wait.name, program.why))
            bench.row(wait.name + ": error", None, "%", GOAL_WORST, "max", why=program.why)
            continue
        outcomes.append(outcome)
        error = error_percent(outcome.predicted, outcome.measured)
        bench.say("%-44s %8.3fx %8.3f-%7.3fx %8.3fx %+6.1f%% %7.2fs %7.2fs%s" %
                  (wait.name, outcome.predicted, outcome.low, outcome.high, outcome.measured, error, middle(outcome.before), middle(outcome.after),
                   " disturbed" if outcome.disturbed() else ""))
        bench.row(wait.name + ": error", abs(error), "%", GOAL_WORST, "max", runs=len(outcome.before), unmeasurable=outcome.disturbed(),
                  why="predicted %.3f (%.3f to %.3f) by %s, measured %.3f" %
                  (outcome.predicted, outcome.low, outcome.high, outcome.method, outcome.measured))
    if outcomes:
        say_summary(bench, outcomes)
