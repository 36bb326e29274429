#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""mpi_late.py ROUNDS SLOW_US FAST_US - rank 1 is late in each round, by mpi4py."""
import sys
import time

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
ROUNDS, SLOW_US, FAST_US = (int(word) for word in sys.argv[1:4])


def slow_work():
    time.sleep(SLOW_US / 1e6)


def fast_work():
    time.sleep(FAST_US / 1e6)


def main():
    WORLD.Barrier()
    begin = time.perf_counter()
    for number in range(ROUNDS):
        if WORLD.rank == 1:
            slow_work()
        else:
            fast_work()
        WORLD.allreduce(number)
    if WORLD.rank == 0:
        print("python %.1f us a round" % (1e6 * (time.perf_counter() - begin) / ROUNDS))


main()
