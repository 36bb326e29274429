# SPDX-License-Identifier: Apache-2.0
"""exchange.py - two makers, two takers and a lock, until its input ends; then "right" and how much, if nothing was lost or made twice."""
import queue
import sys
import threading
import time

units, lock, ends = queue.Queue(64), threading.Lock(), threading.Event()
made, taken = [0], [0]


def make():
    n = 0
    while not ends.is_set():
        n += 1
        with lock:
            made[0] += n
        units.put(n)
        if n % 50 == 0:
            time.sleep(0.001)


def take():
    while True:
        n = units.get()
        if not n:
            return
        with lock:
            taken[0] += n


makers = [threading.Thread(target=make) for _ in range(2)]
takers = [threading.Thread(target=take) for _ in range(2)]
for thread in makers + takers:
    thread.start()
print("ready", flush=True)
sys.stdin.read()
ends.set()
for thread in makers:
    thread.join()
units.put(0)
units.put(0)
for thread in takers:
    thread.join()
print("right" if made == taken else "wrong", made[0])
