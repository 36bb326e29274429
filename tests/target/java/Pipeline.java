// SPDX-License-Identifier: Apache-2.0
// Pipeline.java - a producer that a slow consumer holds up: it needs MS for each of ITEMS items.
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

public class Pipeline {
    static void slowConsume(BlockingQueue<Integer> queue, int ms) throws InterruptedException {
        while (queue.take() >= 0) {
            Thread.sleep(ms);
        }
    }

    static void produce(BlockingQueue<Integer> queue, int items) throws InterruptedException {
        for (int i = 0; i < items; i++) {
            queue.put(i);
        }
        queue.put(-1);
    }

    public static void main(String[] args) throws Exception {
        int items = Integer.parseInt(args[0]), ms = Integer.parseInt(args[1]);
        BlockingQueue<Integer> queue = new ArrayBlockingQueue<>(4);
        Thread consumer = new Thread(() -> {
            try {
                slowConsume(queue, ms);
            } catch (InterruptedException e) {
                throw new RuntimeException(e);
            }
        }, "consumer");
        consumer.start();
        produce(queue, items);
        consumer.join();
        System.out.println("consumed");
    }
}
