/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html_flame.c - three trees of weights for the page: the critical path and the processors' time,
 * as program / role / state / callers / function; and all waiting by call path, which the caller
 * gathered.
 *
 * A tree is a list of nodes [parent, text, own_ns]; node 0 is the root.
 */
#include "report/page/html_private.h"
#include "symbol/symbol.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 20000 };

struct node {
	uint32_t parent, text;
	double own_ns;
};
struct tree {
	struct node *node;
	size_t nr, capacity;
	struct base_map child; /* (parent, text) -> node */
	uint64_t nr_cut;       /* weights that went to the root: too many nodes */
};
struct flame {
	struct base_strtab *texts;
	struct tree path, cpu, wait;
};

static enum base_status html_flame_child_of(
	struct flame *f, struct tree *t, uint32_t parent, const char *text, uint32_t *ret)
{
	uint32_t id;
	uint64_t found;
	struct base_str clean = {0};
	report_clean_add(&clean, *text ? text : "?");
	enum base_status s = clean.failed ? BASE_ERR_NOMEM
					  : base_strtab_intern(f->texts, base_str_text(&clean),
						    clean.length, &id);
	base_str_fini(&clean);
	if (s != BASE_OK)
		return s;
	if (base_map_get(&t->child, parent, id, &found)) {
		*ret = (uint32_t)found;
		return BASE_OK;
	}
	if (t->nr >= NODES_MAX) {
		t->nr_cut++;
		*ret = parent;
		return BASE_OK;
	}
	s = base_grow(&t->node, &t->capacity, t->nr + 2, sizeof *t->node);
	if (s == BASE_OK && !t->nr)
		t->nr = 1;
	if (s == BASE_OK)
		s = base_map_put(&t->child, parent, id, t->nr);
	if (s != BASE_OK)
		return s;
	*ret = (uint32_t)t->nr;
	t->node[t->nr++] = (struct node){.parent = parent, .text = id};
	return BASE_OK;
}

/* ---- path and processors --------------------------------------------------------------------- */

static enum base_status html_flame_add_group(
	struct flame *f, struct tree *t, const char *group, uint32_t *ret)
{
	const char *slash = strchr(group, '/');
	struct base_str program = {0};
	base_str_add_bytes(&program, group, slash ? (size_t)(slash - group) : strlen(group));
	enum base_status s = program.failed
				     ? BASE_ERR_NOMEM
				     : html_flame_child_of(f, t, 0, base_str_text(&program), ret);
	base_str_fini(&program);
	return s == BASE_OK ? html_flame_child_of(f, t, *ret, slash ? slash + 1 : "main", ret) : s;
}

static enum base_status html_flame_add_weight(
	struct flame *f, struct tree *t, uint32_t at, const char *text, double ns, uint32_t *ret)
{
	enum base_status s = html_flame_child_of(f, t, at, text, ret);
	if (s == BASE_OK) {
		BASE_ASSUME(t->node);
		t->node[*ret].own_ns += ns;
	}
	return s;
}

static enum base_status html_flame_add_inlined(struct flame *f, struct tree *t,
	const struct model *m, uint32_t at, uint32_t chain, double ns)
{
	const char *frame[MODEL_FRAMES_MAX];
	unsigned nr = model_chain_frames(m, chain, frame);
	struct base_str text = {0};
	enum base_status s = BASE_OK;
	for (unsigned i = 0; s == BASE_OK && i < nr; i++) {
		base_str_reset(&text);
		base_str_addf(&text, "%s (inlined)", *frame[i] ? frame[i] : "?");
		s = text.failed ? BASE_ERR_NOMEM
				: html_flame_add_weight(f, t, at, base_str_text(&text),
					  i + 1 == nr ? ns : 0, &at);
	}
	base_str_fini(&text);
	return s;
}

enum { CALLERS_MAX = 128 };

struct flame_state { /* a state at whose node its call paths begin */
	struct flame *flame;
	struct tree *tree;
	struct model *m;
	uint32_t at;
	double running_ns, added_ns;
	enum base_status status;
};

/* Its callers, outermost first. What only calls others, and how a thread begins, is left out. */
static enum base_status html_flame_add_callers(
	const struct flame_state *f, uint32_t stack, uint32_t *at)
{
	struct model_frame frame[CALLERS_MAX];
	struct base_str text = {0};
	size_t nr = stack ? model_stack_frames(f->m, stack, frame, CALLERS_MAX) : 0;
	enum base_status s = BASE_OK;
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		if (symbol_is_plumbing(frame[i].function))
			continue;
		base_str_reset(&text);
		base_str_addf(&text, "%s%s", *frame[i].function ? frame[i].function : "?",
			frame[i].inlined ? " (inlined)" : "");
		s = text.failed
			    ? BASE_ERR_NOMEM
			    : html_flame_child_of(f->flame, f->tree, *at, base_str_text(&text), at);
	}
	base_str_fini(&text);
	return s;
}

static bool html_flame_add_call_path(void *ctx, const struct model_call_path *p)
{
	struct flame_state *f = ctx;
	uint32_t at = f->at;
	double ns = f->running_ns * p->share;
	f->added_ns += ns;
	f->status = html_flame_add_callers(f, p->stack, &at);
	if (f->status == BASE_OK)
		f->status = html_flame_add_weight(f->flame, f->tree, at,
			*p->function ? p->function : p->where, p->chain ? 0 : ns, &at);
	if (f->status == BASE_OK && p->chain)
		f->status = html_flame_add_inlined(f->flame, f->tree, f->m, at, p->chain, ns);
	return f->status == BASE_OK;
}

/* all_ns of a state, of which its functions have running_ns by their samples. */
static enum base_status html_flame_add_state(struct flame *f, struct tree *t, struct model *m,
	uint32_t actor, uint32_t state, double all_ns, double running_ns)
{
	uint32_t at;
	enum base_status s = html_flame_add_group(f, t, model_actor(m, actor)->group, &at);
	if (s == BASE_OK)
		s = html_flame_child_of(f, t, at, model_state(m, state)->name, &at);
	struct flame_state to = {.flame = f, .tree = t, .m = m, .at = at, .running_ns = running_ns};
	if (s == BASE_OK && running_ns > 0) {
		model_each_call_path(m, state, html_flame_add_call_path, &to);
		s = to.status;
		all_ns -= to.added_ns;
	}
	if (s == BASE_OK && all_ns > 0) {
		BASE_ASSUME(t->node);
		t->node[at].own_ns += all_ns;
	}
	return s;
}

static enum base_status html_flame_by_path(struct flame *f, struct model *m, struct base_err *err)
{
	struct graph_lane_result lane;
	enum base_status s = graph_lane(model_graph(m), 0, &lane, err);
	for (size_t i = 0; s == BASE_OK && i < lane.nr_states; i++) {
		const struct graph_path_state *p = &lane.state[i];
		if (html_flame_add_state(f, &f->path, m, p->actor, p->state, p->path_ns,
			    p->path_ns - p->latency_ns - p->unexplained_ns) != BASE_OK)
			s = report_no_memory(err);
	}
	return s;
}

static bool html_flame_runs(enum model_state_kind k)
{
	return k == MODEL_STATE_run || k == MODEL_STATE_hold || k == MODEL_STATE_annotated ||
	       k == MODEL_STATE_start || k == MODEL_STATE_io;
}

static enum base_status by_cpu(struct flame *f, struct model *m, struct base_err *err)
{
	const struct graph_state_totals *total;
	size_t nr;
	enum base_status s = graph_totals(model_graph(m), &total, &nr, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		double ns = (double)(total[i].total_ns - total[i].waiting_ns);
		if (html_flame_runs(model_state(m, total[i].state)->kind) && ns > 0 &&
			html_flame_add_state(
				f, &f->cpu, m, total[i].actor, total[i].state, ns, ns) != BASE_OK)
			s = report_no_memory(err);
	}
	return s;
}

/* ---- waits by call path ---------------------------------------------------------------------- */

/* Bytes of the mark that collapsed stacks have at an inlined function; 0: none. */
static size_t inlined_suffix(const char *frame, size_t length)
{
	const size_t mark = strlen(MODEL_INLINED_MARK);
	return length > mark && !memcmp(frame + length - mark, MODEL_INLINED_MARK, mark) ? mark : 0;
}

static enum base_status html_flame_add_line(struct flame *f, const char *line, size_t length)
{
	struct base_str frame = {0};
	uint32_t at = 0;
	size_t end = length;
	while (end && line[end - 1] != ' ')
		end--;
	if (!end)
		return BASE_OK;
	double ns = strtod(line + end, NULL);
	enum base_status s = BASE_OK;
	for (size_t from = 0; s == BASE_OK && from < end - 1;) {
		const char *semicolon = memchr(line + from, ';', end - 1 - from);
		size_t to = semicolon ? (size_t)(semicolon - line) : end - 1;
		base_str_reset(&frame);
		size_t marked = inlined_suffix(line + from, to - from);
		base_str_add_bytes(&frame, line + from, to - from - marked);
		base_str_add(&frame, marked ? " (inlined)" : "");
		s = frame.failed ? BASE_ERR_NOMEM
				 : html_flame_child_of(f, &f->wait, at, base_str_text(&frame), &at);
		from = to + 1;
	}
	base_str_fini(&frame);
	if (s == BASE_OK && at) {
		BASE_ASSUME(f->wait.node);
		f->wait.node[at].own_ns += ns;
	}
	return s;
}

static enum base_status by_lines(struct flame *f, const char *text, struct base_err *err)
{
	while (text && *text) {
		const char *end = strchr(text, '\n');
		size_t length = end ? (size_t)(end - text) : strlen(text);
		if (html_flame_add_line(f, text, length) != BASE_OK)
			return report_no_memory(err);
		text = end ? end + 1 : NULL;
	}
	return BASE_OK;
}

static enum base_status by_waits(struct flame *f, const struct report_run *run, struct model *m,
	const struct report_html_options *opts, struct base_err *err)
{
	struct base_str lines = {0};
	enum base_status s =
		opts->waits_by_call_path ? opts->waits_by_call_path(run, m, &lines, err) : BASE_OK;
	if (s == BASE_OK)
		s = lines.failed ? report_no_memory(err) : by_lines(f, base_str_text(&lines), err);
	base_str_fini(&lines);
	return s;
}

/* ---- the document ---------------------------------------------------------------------------- */

static json_t *tree_json(const struct tree *t)
{
	json_t *list = json_array();
	for (size_t i = 0; i < t->nr; i++) {
		const struct node *n = &t->node[i];
		json_array_append_new(
			list, json_pack("[I, I, I]", (json_int_t)n->parent, (json_int_t)n->text,
				      (json_int_t)llround(n->own_ns)));
	}
	return list;
}

static void tree_fini(struct tree *t)
{
	base_free(t->node);
	base_map_fini(&t->child);
}

enum base_status report_html_flame_json(const struct report_run *run,
	const struct report_html_options *opts, json_t **ret, struct base_err *err)
{
	struct flame f = {.texts = base_strtab_new()};
	struct report_pass_options plain = {0};
	struct model *m = NULL;
	enum base_status s =
		f.texts ? report_pass(run, "weighing states and functions", &plain, &m, err)
			: report_no_memory(err);
	if (s == BASE_OK)
		s = html_flame_by_path(&f, m, err);
	if (s == BASE_OK)
		s = by_cpu(&f, m, err);
	if (s == BASE_OK)
		s = by_waits(&f, run, m, opts, err);
	if (s == BASE_OK) {
		json_t *texts = json_array();
		for (uint32_t i = 0; i < base_strtab_count(f.texts); i++)
			json_array_append_new(texts, json_string(base_strtab_get(f.texts, i)));
		*ret = json_pack("{s:o, s:o, s:o, s:o, s:o}", "texts", texts, "path",
			tree_json(&f.path), "cpu", tree_json(&f.cpu), "wait", tree_json(&f.wait),
			"cut", base_json_u64(f.path.nr_cut + f.cpu.nr_cut + f.wait.nr_cut));
		s = *ret ? s : report_no_memory(err);
	}
	model_free(m);
	tree_fini(&f.path);
	tree_fini(&f.cpu);
	tree_fini(&f.wait);
	base_strtab_free(f.texts);
	return s;
}
