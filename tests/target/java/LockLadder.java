// SPDX-License-Identifier: Apache-2.0
// LockLadder.java - as Ladder, with a ReentrantLock. Under it a thread sleeps, so that the answer does not depend on processors.
import java.util.concurrent.locks.ReentrantLock;

public class LockLadder {
    static final ReentrantLock lock = new ReentrantLock(true);

    static void climb(int rounds, int factor) throws InterruptedException {
        for (int i = 0; i < rounds; i++) {
            lock.lock();
            try {
                Thread.sleep(8 / factor);
            } finally {
                lock.unlock();
            }
            Thread.sleep(2);
        }
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]), factor = Integer.parseInt(args[1]);
        Thread[] threads = new Thread[3];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                try {
                    climb(rounds, factor);
                } catch (InterruptedException e) {
                    throw new RuntimeException(e);
                }
            }, "climber-" + i);
            threads[i].start();
        }
        for (Thread t : threads)
            t.join();
        System.out.println("climbed");
    }
}
