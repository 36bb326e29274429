/* SPDX-License-Identifier: Apache-2.0 */
/*
 * long_pole - what holds a recorded run back, and what a change would gain.
 *
 *     cc examples/long_pole.c $(pkg-config --cflags --libs longpole) -o long_pole
 *     longpole record -o a.lpt ./a && ./long_pole a.lpt '#1=-50%'
 */
#include <longpole/analysis.h>

#include <stdio.h>

int main(int argc, char **argv)
{
	struct longpole_error error = {.size = sizeof error};
	struct longpole_answer answer = {.size = sizeof answer};
	struct longpole_part part = {.size = sizeof part};
	struct longpole_prediction p = {.size = sizeof p};
	struct longpole_predictions *predictions = NULL;
	struct longpole_analysis *analysis = NULL;
	const char *scenario = argc > 2 ? argv[2] : "#1=-50%";

	if (argc < 2 || longpole_analysis_open(argv[1], NULL, &analysis, &error))
		goto failed;
	longpole_analysis_answer(analysis, &answer);
	printf("%s\n", answer.pole);
	for (unsigned i = 0; longpole_analysis_part(analysis, i, &part) == LONGPOLE_STATUS_OK; i++)
		if (part.is_predicted)
			printf("#%u %s: %.1f %%, halved %.6f\n", i + 1, part.name, 100 * part.share,
				part.halved.speedup);
	if (longpole_predictions_new(analysis, scenario, NULL, &predictions, &error))
		goto failed;
	for (unsigned i = 0; !longpole_predictions_prediction(predictions, i, &p); i++)
		printf("%.6f (%.6f to %.6f) by %s, then %s\n", p.gain.speedup, p.gain.low,
			p.gain.high, p.gain.method, p.next);
	longpole_predictions_free(predictions);
	longpole_analysis_close(analysis);
	return answer.is_partial; /* of a trace that is not whole the answer is not, either */
failed:
	fprintf(stderr, "long_pole: %s\n",
		argc < 2 ? "usage: long_pole TRACE [SCENARIO]" : error.text);
	longpole_analysis_close(analysis);
	return 2;
}
