# SPDX-License-Identifier: Apache-2.0
"""servers - programs of others under load, for benches and studies: start(prefix), load() -> (operations, seconds), stop().

`prefix` is what runs the server: [] or longpole and its options. All sockets and data are in `scratch`.
"""
import os
import re
import shutil
import socket
import subprocess
import threading
import time


class Server:
    """One server: what subclasses say is `needs` (programs), command(), ready(), load(), shutdown()."""
    needs = ()
    package = None

    def __init__(self, scratch, quick=False):
        self.scratch, self.quick, self.process, self.why, self.err = scratch, quick, None, None, ""
        missing = [name for name in self.needs if not shutil.which(name)]
        if missing:
            self.why = "%s is not installed" % missing[0]

    def prepare(self):
        """Once, without a recorder."""

    def start(self, prefix):
        self.err = ""
        log = os.path.join(self.scratch, "server.log")
        with open(log, "wb") as out:
            self.process = subprocess.Popen([*prefix, *self.command()], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        deadline = time.monotonic() + 60
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                with open(log, encoding="utf-8", errors="replace") as text:
                    self.why = "did not start: " + text.read().strip()[-300:]
                self.stop()
                return False
            time.sleep(0.05)
        return True

    def pids(self):
        """Of the server alone, whoever runs it."""
        pids, found = [self.process.pid], []
        while pids:
            pid = pids.pop()
            pids += children_of(pid)
            if not name_of(pid).startswith("longpole"):
                found.append(pid)
        return found

    def cpu_seconds(self):
        return sum(cpu_ns_of(pid) for pid in self.pids()) / 1e9

    def stop(self):
        """The server's end, and the recording's."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.shutdown()
        try:
            self.process.wait(90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with open(os.path.join(self.scratch, "server.log"), encoding="utf-8", errors="replace") as text:
            self.err = text.read()
        self.process = None


def output_of(command, timeout=300):
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    return result.stdout + result.stderr


class Redis(Server):
    needs = ("redis-server", "redis-benchmark", "redis-cli")
    package = "redis-server"

    def command(self):
        self.socket = os.path.join(self.scratch, "redis.sock")
        return ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no", "--dir", self.scratch]


    def ready(self):
        return output_of(["redis-cli", "-s", self.socket, "ping"]).startswith("PONG")

    def load(self):
        n = 50000 if self.quick else 150000
        text = output_of(["redis-benchmark", "-s", self.socket, "-t", "set", "-n", str(n), "-c", "20", "--csv"])
        rates = re.findall(r'"SET","([0-9.]+)"', text)
        return (n, n / float(rates[0])) if rates else None

    def shutdown(self):
        subprocess.run(["redis-cli", "-s", self.socket, "shutdown", "nosave"], capture_output=True, check=False)


def free_port():
    with socket.socket(socket.AF_INET) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Memcached(Server):
    """One request at a time on each of 16 connections: a set, nine gets, values of 1 KiB."""
    needs = ("memcached", "memcaslap")
    package = "memcached"

    def command(self):
        self.port = free_port()
        return ["memcached", "-l", "127.0.0.1", "-p", str(self.port), "-t", "4", "-m", "256", "-u", "root"]

    def ready(self):
        with socket.socket(socket.AF_INET) as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def load(self):
        operations = 100000 if self.quick else 300000
        text = output_of(["memcaslap", "-s", "127.0.0.1:%d" % self.port, "-T", "1", "-c", "16", "-x", str(operations)])
        rates = re.findall(r"Ops: ([0-9]+) TPS: ([0-9]+)", text)
        return (int(rates[0][0]), int(rates[0][0]) / int(rates[0][1])) if rates else None

    def shutdown(self):
        for pid in [self.process.pid, *children_of(self.process.pid)]:
            if name_of(pid) == "memcached":
                os.kill(pid, 15)


class MemcachedBatches(Memcached):
    """Requests in batches of 200 small ones: hardly a system call for each, and as many locks."""
    needs = ("memcached",)

    def command(self):
        self.socket = os.path.join(self.scratch, "memcached.sock")
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        return ["memcached", "-s", self.socket, "-t", "4", "-m", "64", "-u", "root"]

    def ready(self):
        return os.path.exists(self.socket)

    def load(self):
        rounds, batch = (300 if self.quick else 1000), 100

        def client(number):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(self.socket)
                request = b"".join(b"set k%d-%d 0 0 32\r\n%s\r\nget k%d-%d\r\n" % (number, i, b"x" * 32, number, i) for i in range(batch))
                answer = sum(len(b"STORED\r\nVALUE k%d-%d 0 32\r\n" % (number, i)) + 32 + len(b"\r\nEND\r\n") for i in range(batch))
                for _ in range(rounds):
                    s.sendall(request)
                    left = answer
                    while left > 0:
                        data = s.recv(65536)
                        if not data:
                            return
                        left -= len(data)

        clients = [threading.Thread(target=client, args=(i,)) for i in range(4)]
        begin = time.monotonic()
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        return 4 * rounds * batch * 2, time.monotonic() - begin


class MariaDB(Server):
    needs = ("mariadbd", "mariadb-install-db", "mariadb-admin", "sysbench")
    package = "mariadb-server"
    threads = 4

    def prepare(self):
        self.data = os.path.join(self.scratch, "mariadb")
        self.socket = os.path.join(self.scratch, "mariadb.sock")
        text = output_of(["mariadb-install-db", "--no-defaults", "--datadir=" + self.data, "--auth-root-authentication-method=normal",
                          "--skip-test-db", "--user=root"])
        if not os.path.isdir(os.path.join(self.data, "mysql")):
            self.why = "mariadb-install-db: " + text.strip()[-200:]
            return
        if self.start([]):
            output_of(["mariadb-admin", "--no-defaults", "-uroot", "-S", self.socket, "create", "sbtest"])
            output_of(self.sysbench("prepare"))
            self.stop()

    def command(self):
        return ["mariadbd", "--no-defaults", "--datadir=" + self.data, "--socket=" + self.socket, "--skip-networking", "--user=root",
                "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=128M", "--pid-file=" + os.path.join(self.scratch, "m.pid")]

    def sysbench(self, what):
        return ["sysbench", "oltp_read_write", "--mysql-socket=" + self.socket, "--mysql-user=root", "--mysql-db=sbtest", "--tables=2",
                "--table-size=5000", "--threads=%d" % self.threads, "--time=0", "--events=%d" % (500 if self.quick else 4000), "--histogram=off",
                what]

    def ready(self):
        return "alive" in output_of(["mariadb-admin", "--no-defaults", "-uroot", "-S", self.socket, "ping"])

    def load(self):
        text = output_of(self.sysbench("run"))
        rates = re.findall(r"transactions: +(\d+) +\(([0-9.]+) per sec", text)
        return (int(rates[0][0]), int(rates[0][0]) / float(rates[0][1])) if rates else None

    def shutdown(self):
        output_of(["mariadb-admin", "--no-defaults", "-uroot", "-S", self.socket, "shutdown"])


class Nginx(Server):
    needs = ("nginx", "ab")
    package = "nginx-light"
    port = 18380

    def prepare(self):
        root = os.path.join(self.scratch, "www")
        os.makedirs(root, exist_ok=True)
        with open(os.path.join(root, "index.html"), "w", encoding="ascii") as page:
            page.write("a static page\n" * 40)
        with open(os.path.join(self.scratch, "nginx.conf"), "w", encoding="ascii") as conf:
            conf.write("""daemon off; master_process on; worker_processes 2; user root; pid %s/nginx.pid; error_log %s/error.log;
events { worker_connections 512; }
http { access_log %s/access.log; client_body_temp_path %s; proxy_temp_path %s; fastcgi_temp_path %s; uwsgi_temp_path %s; scgi_temp_path %s;
server { listen 127.0.0.1:%d; root %s; } }
""" % (*[self.scratch] * 8, self.port, root))

    def command(self):
        return ["nginx", "-c", os.path.join(self.scratch, "nginx.conf"), "-e", os.path.join(self.scratch, "error.log")]

    def ready(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def load(self):
        n = 5000 if self.quick else 50000
        text = output_of(["ab", "-q", "-n", str(n), "-c", "64", "http://127.0.0.1:%d/" % self.port])
        rates = re.findall(r"Requests per second: +([0-9.]+)", text)
        return (n, n / float(rates[0])) if rates else None

    def shutdown(self):
        with open(os.path.join(self.scratch, "nginx.pid"), encoding="ascii") as pid:
            os.kill(int(pid.read()), 3)


class Apache(Nginx):
    """Its event model: processes of threads, a listener that hands connections on by a queue, a mutex and a condition variable."""
    needs = ("apache2", "ab")
    package = "apache2"
    port = 18381
    modules = "/usr/lib/apache2/modules"

    def prepare(self):
        super().prepare()
        with open(os.path.join(self.scratch, "apache.conf"), "w", encoding="ascii") as conf:
            for module in ("mpm_event", "authz_core"):
                conf.write("LoadModule %s_module %s/mod_%s.so\n" % (module, self.modules, module))
            conf.write("""ServerName localhost
Listen 127.0.0.1:%d
PidFile %s/nginx.pid
ErrorLog %s/error.log
DocumentRoot %s/www
StartServers 2
ThreadsPerChild 32
MaxRequestWorkers 64
LogFormat "%%h %%t \\"%%r\\" %%>s %%b"
TransferLog %s/access.log
""" % (self.port, *[self.scratch] * 4))
            if os.getuid() == 0:
                conf.write("User www-data\nGroup www-data\n")
        os.chmod(self.scratch, 0o755)

    def command(self):
        return ["apache2", "-D", "FOREGROUND", "-d", self.scratch, "-f", os.path.join(self.scratch, "apache.conf")]

    def shutdown(self):
        with open(os.path.join(self.scratch, "nginx.pid"), encoding="ascii") as pid:
            os.kill(int(pid.read()), 15)


def children_of(pid):
    found = []
    for task in os.listdir("/proc"):
        if task.isdigit():
            try:
                with open("/proc/%s/stat" % task, encoding="ascii", errors="replace") as stat:
                    if int(stat.read().rsplit(")", 1)[1].split()[1]) == pid:
                        found.append(int(task))
            except OSError:
                pass
    return found


def cpu_ns_of(pid):
    total = 0
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as stat:
                total += int(stat.read().split()[0])
    except OSError:
        pass  # it has just ended
    return total


def name_of(pid):
    try:
        with open("/proc/%d/comm" % pid, encoding="ascii", errors="replace") as comm:
            return comm.read().strip()
    except OSError:
        return ""


SERVERS = {"redis": Redis, "memcached": Memcached, "memcached-batches": MemcachedBatches, "mariadb": MariaDB, "nginx": Nginx, "apache2": Apache}
