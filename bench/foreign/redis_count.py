# SPDX-License-Identifier: Apache-2.0
"""redis_count.py SOCKET - counts in a redis server until its input ends, each answer one more than that before; then says how far."""
import socket
import sys
import threading

done = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
REQUEST = b"*2\r\n$4\r\nINCR\r\n$7\r\ncounter\r\n"
count = 0
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    answers = server.makefile("rb")
    while not done.is_set():
        server.sendall(REQUEST)
        count += 1
        answer = answers.readline().strip()
        if answer != b":%d" % count:
            sys.exit("answer %d is %r" % (count, answer))
print(count)
