# SPDX-License-Identifier: Apache-2.0
"""Programs of others, recorded with the whole system: is the bottleneck the one that a change confirms?

Each is recorded under load (--system --full); of the path of the process that is asked about, so much is explained, and so much is what we
know to hold it back. Then the change that should take that away is made, and what it brought is measured without a recorder, next to what
whatif predicted of it from the recording, where an edit says the same. Needs root; a program that is not installed is left out, with a word.
"""
import contextlib
import gzip
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import time


GOAL_EXPLAINED = 95.0
GOAL_WAITS = 99.9
GOAL_ERROR = 20.0
POSTGRES_BIN = "/usr/lib/postgresql"


def output_of(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=300, check=False,
                          **options)
    return done.stdout + done.stderr


def first_number(pattern, text):
    found = re.findall(pattern, text)
    return float(found[0]) if found else None


@contextlib.contextmanager
def running(command, port):
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as server:
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                time.sleep(0.05)
            yield
        finally:
            server.terminate()


class App:
    """name, needs (programs), process (whose path), holds (what of the path is the bottleneck: a pattern of states, or of kinds), edits
    (what whatif is told, of the same effect as the change), window (of the recording: where the load ends by the clock, its end is no work),
    is_rate (load() gives so many a second; else seconds)."""
    edits = None
    window = []
    removes = False  # the change takes all of it away
    is_rate = True
    kinds = False

    @contextlib.contextmanager
    def serve(self, scratch, changed):
        yield

    def rate(self, text, seconds):
        return 1 / seconds


class Redis(App):
    """One thread serves all: the path is the server's own work and its calls, not its clients'. Sixteen requests a call take calls away."""
    name, needs, process, holds = "redis-server", ("redis-server", "redis-benchmark"), "redis-server", r"redis-server|tcp|socket|epoll|redis-ser"
    change = "16 requests a call"
    port = 17380

    @contextlib.contextmanager
    def serve(self, scratch, changed):
        with running(["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", scratch], self.port):
            yield

    def load(self, quick, changed):
        return ["redis-benchmark", "-p", str(self.port), "-t", "set", "-n", "20000" if quick else "100000", "-c", "20", "--csv",
                *(["-P", "16"] if changed else [])]

    def rate(self, text, seconds):
        return first_number(r'"SET","([0-9.]+)"', text)


class Postgres(App):
    """A transaction waits for its log to be on the disk; without fsync it does not."""
    name, needs, process, holds = "PostgreSQL, fsync", ("su",), "pgbench", "disk|fdatasync"
    change = "no fsync"
    removes = True
    edits = ["elide", "fdatasync"]
    port = 17381

    def bin(self, tool):
        return os.path.join(POSTGRES_BIN, sorted(os.listdir(POSTGRES_BIN))[-1], "bin", tool)

    def as_postgres(self, command):
        return ["su", "postgres", "-c", command]

    @contextlib.contextmanager
    def serve(self, scratch, changed):
        data = os.path.join(scratch, "postgres")
        if not os.path.isdir(data):
            shutil.chown(scratch, "postgres")
            os.chmod(scratch, 0o755)
            output_of(self.as_postgres("%s -D %s -A trust && echo \"unix_socket_directories=''\" >> %s/postgresql.conf" %
                                       (self.bin("initdb"), data, data)), cwd="/")
        start = "%s -D %s -o '-p %d -c fsync=%s' -l %s/log -w start" % (self.bin("pg_ctl"), data, self.port, "off" if changed else "on", data)
        output_of(self.as_postgres(start), cwd="/")
        try:
            output_of(self.as_postgres("%s -h 127.0.0.1 -p %d -i -q -s 2 postgres" % (self.bin("pgbench"), self.port)), cwd="/")
            yield
        finally:
            output_of(self.as_postgres("%s -D %s -m fast -w stop" % (self.bin("pg_ctl"), data)), cwd="/")

    def load(self, quick, changed):
        return self.as_postgres("%s -h 127.0.0.1 -p %d -c 1 -T %d postgres" % (self.bin("pgbench"), self.port, 2 if quick else 6))

    def rate(self, text, seconds):
        return first_number(r"tps = ([0-9.]+)", text)


class Nginx(App):
    """The worker compresses each page that is asked for; half of the requests are for one that may lie there compressed already."""
    name, needs, process, holds = "nginx, gzip", ("nginx", "wrk"), "nginx", r"libz"
    change = "half of the pages compressed beforehand"
    edits = ["scale", "libz=-50%"]
    window = ["--from=20%", "--to=90%"]
    port = 17382

    def page(self, root, name):
        words = ("the", "long", "pole", "of", "a", "tent", "decides", "how", "soon", "it", "stands")
        text = " ".join("%s%d" % (words[i * 7919 % len(words)], i * 2654435761 % 997) for i in range(8000)).encode()
        with open(os.path.join(root, name), "wb") as page:
            page.write(text)
        return gzip.compress(text)

    @contextlib.contextmanager
    def serve(self, scratch, changed):
        root = os.path.join(scratch, "www")
        os.makedirs(root, exist_ok=True)
        self.page(root, "a.html")
        compressed, file = self.page(root, "b.html"), os.path.join(root, "b.html.gz")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)
        if changed:
            with open(file, "wb") as out:
                out.write(compressed)
        self.script = os.path.join(scratch, "turns.lua")
        with open(self.script, "w", encoding="ascii") as out:
            out.write("local n = 0\nfunction request()\n  n = n + 1\n  return wrk.format(nil, n % 2 == 0 and '/a.html' or '/b.html')\nend\n")
        conf = os.path.join(scratch, "nginx.conf")
        with open(conf, "w", encoding="ascii") as out:
            out.write("daemon off; worker_processes 1; user root; pid %s/nginx.pid; error_log %s/error.log; events { worker_connections 512; }\n"
                      "http { access_log off; default_type text/html; gzip on; gzip_static on; gzip_comp_level 6;\n"
                      "server { listen 127.0.0.1:%d; root %s; } }\n" % (scratch, scratch, self.port, root))
        with running(["nginx", "-c", conf, "-e", os.path.join(scratch, "error.log")], self.port):
            yield

    def load(self, quick, changed):
        return ["wrk", "-t", "1", "-c", "4", "-d", "1s" if quick else "4s", "-H", "Accept-Encoding: gzip", "-s", self.script,
                "http://127.0.0.1:%d/" % self.port]

    def rate(self, text, seconds):
        return first_number(r"Requests/sec: +([0-9.]+)", text)


class Pigz(App):
    """Two threads on one processor: the other one is the fix."""
    name, needs, process, holds = "pigz, one processor", ("pigz", "taskset"), "pigz", "runnable|run"
    kinds = True
    change = "two processors"
    edits = ["add-processors", "1"]

    @contextlib.contextmanager
    def serve(self, scratch, changed):
        self.file = os.path.join(scratch, "numbers")
        if not os.path.exists(self.file):
            with open(self.file, "w", encoding="ascii") as out:
                out.writelines("%d\n" % (i * 2654435761 % 4294967296) for i in range(1500000))
        yield

    def load(self, quick, changed):
        return ["taskset", "-c", "0,1" if changed else "0", "pigz", "-p", "2", "-kc", self.file]


class Sort(App):
    """One thread sorts; a second one can."""
    name, needs, process, holds = "sort, one thread", ("sort",), "sort", "run"
    kinds = True
    change = "two threads"
    serve = Pigz.serve

    def load(self, quick, changed):
        return ["sort", "--parallel=2" if changed else "--parallel=1", "-S", "64M", "-o", "/dev/null", self.file]


class Make(App):
    """Eight compilations one after the other; -j2 uses the second processor."""
    name, needs, process, holds = "make, one job", ("make", "gcc"), "make", r"cc1|\bas\b|gcc|make"
    change = "two jobs"

    @contextlib.contextmanager
    def serve(self, scratch, changed):
        self.dir = os.path.join(scratch, "make")
        os.makedirs(self.dir, exist_ok=True)
        for i in range(8):
            with open(os.path.join(self.dir, "m%d.c" % i), "w", encoding="ascii") as out:
                out.writelines("#include <stdio.h>\nint f%d_%d(int a) { for (int i = 0; i < a; i++) a += i * %d ^ a; return a; }\n" % (i, k, k)
                               for k in range(400))
        with open(os.path.join(self.dir, "Makefile"), "w", encoding="ascii") as out:
            out.write("all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n%%.o: %%.c\n\tgcc -O2 -c -o $@ $<\n" .replace("%%", "%"))
        yield

    def load(self, quick, changed):
        return ["make", "-s", "-B", "-C", self.dir, "-j2" if changed else "-j1"]


APPS = [Redis(), Postgres(), Nginx(), Pigz(), Sort(), Make()]


def missing(app):
    for tool in app.needs:
        if not shutil.which(tool):
            return tool + " is not installed"
    if isinstance(app, Postgres) and not os.path.isdir(POSTGRES_BIN):
        return "PostgreSQL is not installed"
    return None


def once(app, command):
    begin = time.perf_counter()
    text = output_of(command, cwd="/", env={**os.environ, "LC_ALL": "C"})
    return app.rate(text, time.perf_counter() - begin)


def rate_of(app, quick, changed, scratch):
    with app.serve(scratch, changed):
        rates = [once(app, app.load(quick, changed)) for _ in range(1 if quick else 3)]
    return statistics.median(rates) if all(rates) else None


def recorded(app, quick, longpole, scratch):
    trace = os.path.join(scratch, "app.lpt")
    with app.serve(scratch, False):
        output_of([longpole, "record", "-q", "--system", "--full", "-o", trace, "--", *app.load(quick, False)], cwd="/")
    return trace if os.path.exists(trace) else None


def share_of(app, result):
    part = "kind" if app.kinds else "state"
    held = sum(s["path_ns"] for s in result["path"]
               if re.search(app.holds, s[part] if app.kinds else "%s %s" % (s["state"], s["group"])))
    return 100 * held / result["elapsed_ns"]


def prediction(app, longpole, trace):
    text = subprocess.run([longpole, "whatif", "--json", "--process=" + app.process, *app.window, trace, *app.edits], capture_output=True, text=True,
                          timeout=300, check=False).stdout
    return json.loads(text)["result"]["scenarios"][0]["best"]["predicted_speedup"] if text else None


def waits_row(bench, app, system):
    """Some kernels show nothing of one process, and no interrupt while it runs: what may have happened meanwhile, no recorder can know. Such
    waits are said, and left out."""
    waits, unexplained, hidden = system["waits"], system["waits_unexplained"], system["waits_not_shown"]
    bench.row("%s: waits with a waker or a named cause, where the kernel shows events" % app.name,
              100 * (1 - (unexplained - hidden) / max(1, waits - hidden)), "%", GOAL_WAITS, "min",
              why="%d waits, %d unexplained, of these %d while a thread ran whose events the kernel does not show: %.2f %% with them" % (
                  waits, unexplained, hidden, 100 * (1 - unexplained / max(1, waits))))


def held_row(bench, app, share, measured):
    """Half of the path; where the change takes it all away, as much as the change brought: how fast a disk is, is the machine's."""
    if not app.removes:
        bench.row("%s: of the path is what is known to hold it back" % app.name, share, "%", 50, "min")
        return
    brought = 100 * (1 - 1 / measured)
    bench.row("%s: of the path is what the change takes away" % app.name, share, "%", (1 - GOAL_ERROR / 100) * max(brought, 0), "min",
              why="without it the run was %.1f %% shorter" % brought)


def rows_of(bench, app, longpole, scratch):
    quick = bench.args.quick
    trace = recorded(app, quick, longpole, scratch)
    if not trace:
        return "the kernel shows no system recording"
    text = subprocess.run([longpole, "report", "--json", "--process=" + app.process, *app.window, trace], capture_output=True, text=True, timeout=300,
                          check=False).stdout
    if not text:
        return "no path of " + app.process
    answer = json.loads(text)
    result = answer["result"]
    before, after = (rate_of(app, quick, changed, scratch) for changed in (False, True))
    if not before or not after:
        return "the load did not run"
    measured = after / before
    bench.say("  %s: %s" % (app.name, result["finding"]))
    bench.row("%s: explained share of the path" % app.name, 100 * result["explained_share"], "%", GOAL_EXPLAINED, "min")
    waits_row(bench, app, answer["trace"]["system"])
    held_row(bench, app, share_of(app, result), measured)
    bench.row("%s: %s, speed-up" % (app.name, app.change), measured, "x", 1.0, "min")
    predicted = prediction(app, longpole, trace) if app.edits else None
    if predicted:
        bench.row("%s: %s, predicted %.2fx, error" % (app.name, app.change, predicted), 100 * abs(predicted / measured - 1), "%", GOAL_ERROR,
                  "max")
    return None


def rows(bench, longpole, scratch):
    bench.say("programs of others")
    for app in APPS:
        why = "needs root" if os.geteuid() else missing(app)
        place = os.path.join(scratch, re.sub(r"\W+", "-", app.name))
        os.makedirs(place, exist_ok=True)
        os.chmod(scratch, 0o755)
        why = why or rows_of(bench, app, longpole, place)
        if why:
            bench.row("%s: explained share of the path" % app.name, None, "%", GOAL_EXPLAINED, "min", why=why)


