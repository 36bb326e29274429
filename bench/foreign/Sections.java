/* SPDX-License-Identifier: Apache-2.0 */
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** Sections MICROSECONDS ROUNDS - two threads sleep under a lock of java.util.concurrent, then work without it. */
public final class Sections {
	private static final ReentrantLock LOCK = new ReentrantLock(true);
	private static volatile long sink;

	private static void spend(long loops) {
		long sum = 0;
		for (long i = 0; i < loops; i++)
			sum += i ^ sum << 1;
		sink = sum;
	}

	public static void main(String[] arguments) throws InterruptedException {
		long microseconds = Long.parseLong(arguments[0]);
		int rounds = Integer.parseInt(arguments[1]);
		Thread[] threads = new Thread[2];
		for (int i = 0; i < threads.length; i++) {
			threads[i] = new Thread(() -> {
				for (int round = 0; round < rounds; round++) {
					LOCK.lock();
					try {
						LockSupport.parkNanos(microseconds * 1000);
					} finally {
						LOCK.unlock();
					}
					spend(200000);
				}
			}, "worker-" + i);
			threads[i].start();
		}
		for (Thread thread : threads)
			thread.join();
	}
}
