/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_main.c - a main for fuzz targets built without libFuzzer: runs the target over the files
 * given, and over each file in the directories given (not deeper), in the order of their names.
 * Prints each file's name before it runs, so that a crash tells which one it was.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static int replay_file(const char *path, size_t size_bytes)
{
	FILE *file = fopen(path, "rb");
	/* Exactly as large as the file, so that the address sanitizer sees one byte too many. */
	uint8_t *bytes = malloc(size_bytes ? size_bytes : 1);
	int result = 1;

	if (!file || !bytes || fread(bytes, 1, size_bytes, file) != size_bytes) {
		perror(path);
		goto done;
	}
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(bytes, size_bytes);
	result = 0;
done:
	free(bytes);
	if (file)
		fclose(file);
	return result;
}

static int replay_directory(const char *path)
{
	struct dirent **entry;
	int nr_entries = scandir(path, &entry, NULL, alphasort), result = 0;

	if (nr_entries < 0) {
		perror(path);
		return 1;
	}
	for (int i = 0; i < nr_entries; i++) {
		char *name;
		struct stat st;
		if (asprintf(&name, "%s/%s", path, entry[i]->d_name) < 0)
			exit(1);
		if (!stat(name, &st) && S_ISREG(st.st_mode))
			result |= replay_file(name, (size_t)st.st_size);
		free(name);
		free(entry[i]);
	}
	free(entry);
	return result;
}

int main(int argc, char **argv)
{
	int result = 0;

	for (int i = 1; i < argc; i++) {
		struct stat st;
		if (stat(argv[i], &st)) {
			perror(argv[i]);
			result = 1;
		} else if (S_ISDIR(st.st_mode)) {
			result |= replay_directory(argv[i]);
		} else {
			result |= replay_file(argv[i], (size_t)st.st_size);
		}
	}
	return result;
}
