/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - a shared library whose constructor is recorded. */
static __thread int counter;
int shared_data[100];
extern int callback(int);
int lib_sum(int n)
{
	int s = 0;
	for (int i = 0; i < n; i++) {
		shared_data[i % 100] += i;
		s += shared_data[i % 100];
		counter++;
	}
	return s + counter + callback(n);
}
__attribute__((constructor)) static void early(void)
{
	for (int i = 0; i < 50; i++)
		shared_data[i] = i;
}
