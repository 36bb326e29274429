/* SPDX-License-Identifier: Apache-2.0 */
/* strings.c - string instructions repeated 0 to 299 times: 44,850 bytes are loaded, and 9 times as
 * many stored. */
static char from[4096], to[4096];

int main(void)
{
	for (long n = 0; n < 300; n++) {
		const void *s = from;
		void *d = to;
		long left = n;
		__asm__ volatile("cld; rep movsb" : "+D"(d), "+S"(s), "+c"(left)::"memory");
		d = from;
		left = n;
		__asm__ volatile("rep stosq" : "+D"(d), "+c"(left) : "a"(n) : "memory");
	}
	return 0;
}
