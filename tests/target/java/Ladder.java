// SPDX-License-Identifier: Apache-2.0
// Ladder.java - two threads; four fifths of what each does is under one monitor, or that over FACTOR. They compute, or sleep.
public class Ladder {
    static final Object lock = new Object();
    static long sum;

    static long burn(long n) {
        long x = 1;
        for (long i = 0; i < n; i++)
            x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }

    static void inside(long n) {
        sum += burn(n);
    }

    static long outside(long n) {
        return burn(n);
    }

    static void climb(int rounds, int factor) {
        for (int i = 0; i < rounds; i++) {
            synchronized (lock) {
                inside(4_000_000 / factor);
            }
            outside(1_000_000);
        }
    }

    static void doze(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static void sleep(int rounds, int factor) {
        for (int i = 0; i < rounds; i++) {
            synchronized (lock) {
                doze(8 / factor);
            }
            doze(2);
        }
    }

    public static void main(String[] args) throws Exception {
        boolean asleep = args[0].equals("sleep");
        int rounds = Integer.parseInt(args[1]), factor = Integer.parseInt(args[2]);
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                if (asleep)
                    sleep(rounds, factor);
                else
                    climb(rounds, factor);
            }, "climber-" + i);
            threads[i].start();
        }
        for (Thread t : threads)
            t.join();
        System.out.println("climbed");
    }
}
