// SPDX-License-Identifier: Apache-2.0
// ForkJoin.java - a pool of threads does eight tasks, of which one is slow; main waits at a latch. Ends with status 3.
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

public class ForkJoin {
    static void task(int i) throws InterruptedException {
        if (i == 3)
            slowTask();
        Thread.sleep(10);
    }

    static void slowTask() throws InterruptedException {
        Thread.sleep(800);
    }

    public static void main(String[] args) throws Exception {
        CountDownLatch done = new CountDownLatch(8);
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 8; i++) {
            int number = i;
            pool.execute(() -> {
                try {
                    task(number);
                } catch (InterruptedException e) {
                    throw new RuntimeException(e);
                }
                done.countDown();
            });
        }
        done.await();
        System.out.println("joined");
        System.exit(3);
    }
}
