// SPDX-License-Identifier: Apache-2.0
// Ends.java - the ways in which a Java program ends: exit in a thread, an exception, a daemon that would go on, a signal.
public class Ends {
    static void asleep() {
        try {
            Thread.sleep(60_000);
        } catch (InterruptedException e) {
            System.out.println("interrupted");
        }
    }

    public static void main(String[] args) throws Exception {
        Thread daemon = new Thread(Ends::asleep, "daemon");
        daemon.setDaemon(true);
        daemon.start();
        switch (args[0]) {
        case "exit":
            Thread other = new Thread(() -> System.exit(5));
            other.start();
            asleep();
            break;
        case "throw":
            throw new IllegalStateException("on purpose");
        case "halt":
            Runtime.getRuntime().halt(6);
            break;
        case "interrupt":
            Thread sleeper = new Thread(Ends::asleep);
            sleeper.start();
            Thread.sleep(50);
            sleeper.interrupt();
            sleeper.join();
            break;
        case "wait":
            System.out.println("waiting");
            asleep();
            break;
        default:
            System.out.println("ends while its daemon sleeps");
        }
    }
}
