/* SPDX-License-Identifier: Apache-2.0 */
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;

/** Two makers, two takers and a lock, until its input ends; then "right" and how much, if nothing was lost or made twice. */
public final class Exchange {
	private static volatile boolean ends;
	private static long counted;

	private static synchronized void count(long by) {
		counted += by;
	}

	public static void main(String[] arguments) throws Exception {
		ArrayBlockingQueue<long[]> queue = new ArrayBlockingQueue<>(64);
		AtomicLong made = new AtomicLong(), taken = new AtomicLong();
		Thread[] threads = new Thread[4];
		for (int i = 0; i < threads.length; i++) {
			boolean makes = i < 2;
			threads[i] = new Thread(() -> {
				try {
					for (long n = 1; makes && !ends; n++) {
						made.addAndGet(n);
						queue.put(new long[] {n});
						if (n % 100 == 0)
							Thread.sleep(1);
					}
					for (long n = 1; !makes && n > 0;) {
						n = queue.take()[0];
						taken.addAndGet(n);
						count(n);
					}
				} catch (InterruptedException interrupted) {
					System.out.println("wrong: interrupted");
				}
			}, (makes ? "maker-" : "taker-") + i);
			threads[i].start();
		}
		System.out.println("ready");
		while (System.in.read() >= 0)
			continue;
		ends = true;
		threads[0].join();
		threads[1].join();
		queue.put(new long[] {0});
		queue.put(new long[] {0});
		threads[2].join();
		threads[3].join();
		boolean right = made.get() == taken.get() && counted == made.get();
		System.out.println((right ? "right " : "wrong ") + made.get());
	}
}
