// SPDX-License-Identifier: Apache-2.0
// Garbage.java - keeps much and makes more, with a small heap: most of the time its garbage is collected.
public class Garbage {
    public static void main(String[] args) {
        int rounds = Integer.parseInt(args[0]);
        Object[][] kept = new Object[2000][];
        long sum = 0;
        for (int i = 0; i < rounds; i++) {
            Object[] some = new Object[100];
            for (int k = 0; k < some.length; k++)
                some[k] = new int[2 + k % 3];
            kept[i * 7919 % kept.length] = some;
            sum += some.length;
        }
        System.out.println(sum);
    }
}
