# SPDX-License-Identifier: Apache-2.0
"""frames.py THREADS MOMENTS DIRECTORY - each thread waits for a lock at so many moments, below calls by chance, and writes before what frames
it has by faulthandler: a file a thread."""
import faulthandler
import os
import random
import sys
import threading

lock = threading.Lock()


def leaf(file, depth, chance):
    faulthandler.dump_traceback(file=file, all_threads=False); lock.acquire(timeout=0.001)


def left(file, depth, chance):
    descend(file, depth - 1, chance)


def right(file, depth, chance):
    sum(descend(file, depth - 1, chance) or 0 for _ in range(1))


def descend(file, depth, chance):
    (leaf if depth <= 0 else chance.choice((left, right)))(file, depth, chance)


def work(number):
    chance = random.Random(number)
    with open(os.path.join(sys.argv[3], "%d.txt" % number), "w", encoding="utf-8") as file:
        for _ in range(int(sys.argv[2])):
            descend(file, chance.randrange(5), chance)


if __name__ == "__main__":
    lock.acquire()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(int(sys.argv[1]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
