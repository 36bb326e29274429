# SPDX-License-Identifier: Apache-2.0
"""threads.py KIND SECONDS ROUNDS - programs of threads and processes; SECONDS is how long what holds each up takes."""
import multiprocessing
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

kind, seconds, rounds = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
lock = threading.Lock()
items = queue.Queue(4)


def hold():
    for _ in range(rounds):
        with lock:
            time.sleep(seconds)  # first: lock


def consume(takes):
    while items.get() is not None:
        if takes:
            time.sleep(takes)  # first: put


def produce(takes):
    for i in range(rounds):
        if takes:
            time.sleep(takes)  # first: get
        items.put(i)
    items.put(None)


def task(i):
    if i == 0:
        for _ in range(rounds):
            time.sleep(seconds)  # first: pool, processes
    time.sleep(0.001)


def run(*functions):
    threads = [threading.Thread(target=function, args=arguments) for function, *arguments in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def queue_operations():
    def take():
        while items.get() is not None:
            pass
    thread = threading.Thread(target=take)
    thread.start()
    for i in range(rounds):
        items.put(i)
    items.put(None)
    thread.join()


if __name__ == "__main__":
    if kind == "lock":
        run([hold], [hold])
    elif kind == "put":
        run([produce, 0], [consume, seconds])
    elif kind == "get":
        run([produce, seconds], [consume, 0])
    elif kind == "pool":
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(task, range(8)))
    elif kind == "processes":
        with multiprocessing.get_context("fork").Pool(3) as pool:
            pool.map(task, range(6), chunksize=1)
    elif kind == "operations":
        queue_operations()
