#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""record_cost.py LONGPOLE [ROUNDS [SHAPE...]] - is what a recording says that it cost what it cost?

The processor time (user and system) of the same command with and without recording, in turn: what the program took more, and what
longpole took beside it. Beside it what the trace says. Programs are built in a temporary directory.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

LOCKS = """
#include <pthread.h>
enum {T = 8, L = 64};
static pthread_mutex_t m[L];
static volatile long c[L];
static void *work(void *a)
{
	unsigned r = (unsigned)(long)a * 77 + 1;
	for (int i = 0; i < 60000; i++) {
		r = r * 1103515245 + 12345;
		int k = (r >> 16) % L;
		pthread_mutex_lock(&m[k]);
		c[k]++;
		pthread_mutex_unlock(&m[k]);
		for (volatile int j = 0; j < 20; j++)
			;
	}
	return 0;
}
int main(void)
{
	pthread_t t[T];
	for (int i = 0; i < L; i++)
		pthread_mutex_init(&m[i], 0);
	for (long i = 0; i < T; i++)
		pthread_create(&t[i], 0, work, (void *)i);
	for (int i = 0; i < T; i++)
		pthread_join(t[i], 0);
}
"""
THREADS = """
#include <pthread.h>
static void *work(void *a)
{
	for (volatile int j = 0; j < 2000; j++)
		;
	return a;
}
int main(void)
{
	for (int i = 0; i < 250; i++) {
		pthread_t t[4];
		for (int k = 0; k < 4; k++)
			pthread_create(&t[k], 0, work, 0);
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], 0);
	}
}
"""
BUSY = "int main(void) {for (volatile long i = 0; i < 1000000000; i++);}"
MAKEFILE = """all: $(addprefix o,%s)
o%%: FORCE ; @(cat Makefile | wc -l >$@; sed -n 1p Makefile >/dev/null)
FORCE:;
""" % " ".join(map(str, range(30)))
SHAPES = {
    "loop": ([], ["sh", "-c", "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done"]),
    "tree": ([], ["make", "-s"]),
    "locks": ([], ["./locks"]),
    "threads": ([], ["./threads"]),
    "busy": ([], ["./busy"]),
    "system": (["--system"], ["./busy"]),
}


def cpu_s(command):
    pid = os.posix_spawnp(command[0], command, os.environ)
    usage = os.wait4(pid, 0)[2]
    return usage.ru_utime + usage.ru_stime


def said(longpole):
    lines = subprocess.run([longpole, "dump", "-d", "--json", "--kind=cost", "t.lpt"], capture_output=True, text=True, check=True).stdout
    parts = [p for p in map(json.loads, lines.splitlines()) if not p["name_text"].startswith("waking")]
    inside = sum(p["total_ns"] for p in parts if not p["beside"]) / 1e9
    beside = sum(p["total_ns"] for p in parts if p["beside"]) / 1e9
    return inside, beside, parts[0]["target_cpu_ns"] / 1e9


def main():
    longpole, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        for name, text in ("locks", LOCKS), ("threads", THREADS), ("busy", BUSY):
            subprocess.run(["cc", "-O2", "-pthread", "-x", "c", "-", "-o", name], input=text, text=True, check=True)
        with open("Makefile", "w") as f:
            f.write(MAKEFILE)
        print("shape      bare ms   added ms   said ms  ratio   in all ms   said ms  ratio")
        for name in sys.argv[3:] or SHAPES:
            options, command = SHAPES[name]
            rows = []
            for _ in range(rounds):
                bare = cpu_s(command)
                every = cpu_s([longpole, "record", "-q", "-o", "t.lpt", *options, "--", *command])
                rows.append((bare, every, *said(longpole)))
            bare, every, inside, beside, target = map(statistics.mean, zip(*rows))
            added, all_added = target - bare, every - bare
            print(f"{name:9} {bare * 1e3:8.1f} {added * 1e3:10.1f} {inside * 1e3:9.1f} {inside / added:6.2f} "
                  f"{all_added * 1e3:11.1f} {(inside + beside) * 1e3:9.1f} {(inside + beside) / all_added:6.2f}")


if __name__ == "__main__":
    main()
