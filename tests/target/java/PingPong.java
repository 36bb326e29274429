// SPDX-License-Identifier: Apache-2.0
// PingPong.java - two threads take turns by wait() and notify(); one of them is slow.
public class PingPong {
    static final Object table = new Object();
    static boolean isPing = true;

    static void play(int rounds, boolean ping, int ms) throws InterruptedException {
        for (int i = 0; i < rounds; i++) {
            synchronized (table) {
                while (isPing != ping)
                    table.wait();
            }
            if (ms > 0)
                Thread.sleep(ms);
            synchronized (table) {
                isPing = !ping;
                table.notify();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        Thread pong = new Thread(() -> {
            try {
                play(rounds, false, 10);
            } catch (InterruptedException e) {
                throw new RuntimeException(e);
            }
        }, "pong");
        pong.start();
        play(rounds, true, 0);
        pong.join();
        System.out.println("played");
    }
}
