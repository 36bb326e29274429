// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;

/** Two threads that wait for each other's monitor for ever. */
public class Circle {
    static final Object left = new Object(), right = new Object();
    static final CountDownLatch both = new CountDownLatch(2);

    static void take(Object first, Object second) {
        synchronized (first) {
            both.countDown();
            try {
                both.await();
            } catch (InterruptedException e) {
                return;
            }
            synchronized (second) {
                System.out.println("never");
            }
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        new Thread(() -> take(left, right), "left").start();
        new Thread(() -> take(right, left), "right").start();
        both.await();
        System.out.println("both");
    }
}
