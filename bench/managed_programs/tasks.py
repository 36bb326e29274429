# SPDX-License-Identifier: Apache-2.0
"""tasks.py KIND SECONDS ROUNDS - programs of asyncio; SECONDS is how long what holds each up takes."""
import asyncio
import sys
import time

kind, seconds, rounds = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])


def compute(units):
    total = 0
    for i in range(units):
        total += i * i % 7
    return total


async def block():
    for _ in range(rounds):
        await asyncio.sleep(0.002)
        time.sleep(seconds)  # first: block


async def hog():
    for _ in range(rounds):
        await asyncio.sleep(0)
        compute(int(seconds * 1e7))  # first: hog


async def tick():
    for _ in range(rounds):
        await asyncio.sleep(0.004)


async def consume(queue, takes):
    while await queue.get() is not None:
        if takes:
            await asyncio.sleep(takes)  # first: put


async def produce(queue, takes):
    for i in range(rounds):
        if takes:
            await asyncio.sleep(takes)  # first: get
        await queue.put(i)
    await queue.put(None)


async def through_queue(puts, gets):
    queue = asyncio.Queue(4)
    await asyncio.gather(produce(queue, puts), consume(queue, gets))


async def slow():
    for _ in range(rounds):
        await asyncio.sleep(seconds)  # first: gather


def in_thread():
    time.sleep(seconds)  # first: thread


async def to_thread():
    for _ in range(rounds):
        await asyncio.to_thread(in_thread)


async def use(semaphore):
    async with semaphore:
        await asyncio.sleep(seconds)  # first: semaphore


async def share():
    semaphore = asyncio.Semaphore(2)
    await asyncio.gather(*(use(semaphore) for _ in range(2 * rounds)))


async def main():
    if kind == "block":
        await asyncio.gather(block(), tick())
    elif kind == "hog":
        await asyncio.gather(hog(), tick())
    elif kind == "put":
        await through_queue(0, seconds)
    elif kind == "get":
        await through_queue(seconds, 0)
    elif kind == "gather":
        await asyncio.gather(slow(), tick())
    elif kind == "thread":
        await asyncio.gather(to_thread(), tick())
    elif kind == "semaphore":
        await share()

asyncio.run(main())
