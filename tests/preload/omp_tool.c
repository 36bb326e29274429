/* SPDX-License-Identifier: Apache-2.0 */
/* omp_tool.c - a user's own OpenMP tool: says how many regions there were. */
#include <omp-tools.h>
#include <stdio.h>

static int nr_regions;

static void begins(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *region,
	unsigned wanted, int flags, const void *code)
{
	nr_regions++;
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *word)
{
	ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
	set(ompt_callback_parallel_begin, (ompt_callback_t)begins);
	return 1;
}

static void finalize(ompt_data_t *word)
{
	printf("tool: %d regions\n", nr_regions);
	fflush(stdout);
}

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime)
{
	static ompt_start_tool_result_t tool = {initialize, finalize, {0}};
	return &tool;
}
