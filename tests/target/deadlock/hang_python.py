#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified Python that hangs, and a pool that is only idle. hang_python.py CASE; without one it lists the cases."""
import concurrent.futures
import os
import queue
import signal
import socket
import subprocess
import sys
import threading


def ready():
    print("READY", os.getpid(), flush=True)


def locks():
    """Two locks in opposite order."""
    first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)

    def transfer(has, wants):
        with has:
            both.wait()
            with wants:
                print("never")

    other = threading.Thread(target=transfer, args=(second, first))
    other.start()
    ready()
    transfer(first, second)


def child():
    """Popen.wait() for a child whose output nobody reads: bpo-1606."""
    with subprocess.Popen([sys.executable, "-c", "print('x' * 300000)"], stdout=subprocess.PIPE) as process:
        ready()
        process.wait()


def pool():
    """A task waits for another one, which its pool has no worker for."""
    executor = concurrent.futures.ThreadPoolExecutor(max_workers=1)

    def outer():
        return executor.submit(int, "1").result()

    task = executor.submit(outer)
    ready()
    task.result()


def queues():
    """Each waits for what the other one would put."""
    one, other = queue.Queue(), queue.Queue()

    def relay(source, sink):
        sink.put(source.get())

    threading.Thread(target=relay, args=(one, other)).start()
    ready()
    relay(other, one)


def join():
    """It waits for a thread that waits for a lock which it has itself."""
    lock = threading.Lock()

    def work():
        with lock:
            print("never")

    with lock:
        worker = threading.Thread(target=work)
        worker.start()
        ready()
        worker.join()


def idle():
    """A server's pool between two requests."""
    with socket.create_server(("127.0.0.1", 0)) as server, concurrent.futures.ThreadPoolExecutor(max_workers=4) as executor:
        list(executor.map(int, "1234"))
        ready()
        server.accept()


CASES = {case.__name__: case for case in (locks, child, pool, queues, join, idle)}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("\n".join(CASES))
    else:
        # As in a background job, for children as well: Python's handler of SIGINT could still end a wait.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        CASES[sys.argv[1]]()
