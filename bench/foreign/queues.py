# SPDX-License-Identifier: Apache-2.0
"""queues.py SECONDS ITEMS - a thread that waits for its source hands items to a process that works on them."""
import multiprocessing
import queue
import sys
import threading
import time


def work(items, results):
    for item in iter(items.get, None):
        results.put(sum(i * i for i in range(4000)) + item)
    results.put(None)


def produce(seconds, count, items):
    for item in range(count):
        time.sleep(seconds)
        items.put(item)
    items.put(None)


def main():
    seconds, count = float(sys.argv[1]), int(sys.argv[2])
    local, remote, results = queue.Queue(8), multiprocessing.Queue(8), multiprocessing.Queue(8)
    worker = multiprocessing.Process(target=work, args=(remote, results))
    worker.start()
    producer = threading.Thread(target=produce, args=(seconds, count, local))
    producer.start()
    hander = threading.Thread(target=lambda: [remote.put(item) for item in iter(local.get, None)] + [remote.put(None)])
    hander.start()
    for _ in iter(results.get, None):
        pass
    for thread in (producer, hander):
        thread.join()
    worker.join()


main()
