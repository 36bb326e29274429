/* SPDX-License-Identifier: Apache-2.0 */
/* netrace_write.c - writing Netrace's format. */
#include "noc/pdg/netrace.h"

#include <bzlib.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	HEADER_BYTES = 72,
	REGION_BYTES = 24,
	PACKET_BYTES = 21,
	NODES_MAX = 255,
	DEPENDENTS_MAX = 255,
	READ_REQUEST = 1,
	READ_RESPONSE = 2,
	LONG_BYTES = 72,
	SHORT_MAX_FLITS = 1,
};

struct writing {
	const struct noc_pdg *g;
	enum base_status (*write)(void *ctx, const void *bytes, size_t nr, struct base_err *err);
	void *ctx;
	uint64_t *first; /* dependents of packet p: dependent[first[p] .. first[p + 1]) */
	uint32_t *dependent;
	struct noc_netrace_losses losses;
};

static void netrace_write_put(uint8_t *p, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static enum base_status write_header(struct writing *w, struct base_err *err)
{
	static const uint8_t start[8] = {0x55, 0x54, 0x4a, 0x48, 0, 0, 0x80, 0x3f};
	const struct noc_pdg *g = w->g;
	uint64_t cycles = g->nr_packets ? g->transmit_cycle[g->nr_packets - 1] + 1 : 0;
	size_t notes = strlen(g->origin) + 1;
	uint8_t h[HEADER_BYTES] = {0}, region[REGION_BYTES] = {0};
	memcpy(h, start, sizeof start);
	memcpy(h + 8, "longpole", 9);
	h[38] = (uint8_t)g->nr_nodes;
	netrace_write_put(h + 40, cycles, 8);
	netrace_write_put(h + 48, g->nr_packets, 8);
	netrace_write_put(h + 56, notes, 4);
	netrace_write_put(h + 60, 1, 4);
	netrace_write_put(region + 8, cycles, 8);
	netrace_write_put(region + 16, g->nr_packets, 8);
	enum base_status s = w->write(w->ctx, h, sizeof h, err);
	if (s == BASE_OK)
		s = w->write(w->ctx, g->origin, notes, err);
	return s == BASE_OK ? w->write(w->ctx, region, sizeof region, err) : s;
}

/* A type says the size; one that is Netrace's already is kept. */
static uint8_t netrace_write_type_of(struct writing *w, uint32_t i)
{
	const struct noc_pdg *g = w->g;
	if (g->has_addresses && noc_netrace_bytes(g->type[i]))
		return g->type[i];
	bool is_long = g->size_flits[i] > SHORT_MAX_FLITS;
	w->losses.sizes += g->size_flits[i] != 1 && g->size_flits[i] != 5;
	return is_long ? READ_RESPONSE : READ_REQUEST;
}

static enum base_status write_packet(struct writing *w, uint32_t i, struct base_err *err)
{
	const struct noc_pdg *g = w->g;
	uint8_t p[PACKET_BYTES + 4 * DEPENDENTS_MAX];
	uint64_t nr = w->first[i + 1] - w->first[i];
	if (nr > DEPENDENTS_MAX) {
		w->losses.dependents += nr - DEPENDENTS_MAX;
		nr = DEPENDENTS_MAX;
	}
	netrace_write_put(p, g->transmit_cycle[i], 8);
	netrace_write_put(p + 8, i, 4);
	netrace_write_put(p + 12, g->address[i] & UINT32_MAX, 4);
	p[16] = netrace_write_type_of(w, i);
	p[17] = (uint8_t)g->source[i];
	p[18] = (uint8_t)g->destination[i];
	p[19] = g->units[i];
	p[20] = (uint8_t)nr;
	for (uint64_t k = 0; k < nr; k++)
		netrace_write_put(p + PACKET_BYTES + 4 * k, w->dependent[w->first[i] + k], 4);
	w->losses.addresses += g->address[i] > UINT32_MAX;
	w->losses.copies += noc_pdg_is_copy(g, i);
	w->losses.previous += (g->inputs[i] & NOC_PDG_PREVIOUS) != 0;
	w->losses.delays += g->first[i + 1] > g->first[i] && !(g->inputs[i] & NOC_PDG_NOT_BEFORE);
	return w->write(w->ctx, p, PACKET_BYTES + 4 * nr, err);
}

static enum base_status find_dependents(struct writing *w, struct base_err *err)
{
	const struct noc_pdg *g = w->g;
	uint64_t nr = 0;
	for (uint32_t i = 0, gate = 0; i < g->nr_packets; i++) {
		gate = noc_pdg_is_copy(g, i) ? gate : i;
		nr += g->first[gate + 1] - g->first[gate];
	}
	w->first = base_alloc(((size_t)g->nr_packets + 2) * sizeof *w->first);
	w->dependent = base_alloc((nr + 1) * sizeof *w->dependent);
	if (!w->first || !w->dependent)
		return base_fail(err, BASE_ERR_NOMEM,
			"no memory for %llu {dependency|dependencies}", (unsigned long long)nr);
	uint64_t *at = w->first + 1;
	for (uint32_t i = 0, gate = 0; i < g->nr_packets; i++) {
		gate = noc_pdg_is_copy(g, i) ? gate : i;
		for (uint64_t d = g->first[gate]; d < g->first[gate + 1]; d++)
			at[g->dependency[d] + 1]++;
	}
	for (uint32_t i = 0; i < g->nr_packets; i++)
		at[i + 1] += at[i];
	for (uint32_t i = 0, gate = 0; i < g->nr_packets; i++) {
		gate = noc_pdg_is_copy(g, i) ? gate : i;
		for (uint64_t d = g->first[gate]; d < g->first[gate + 1]; d++)
			w->dependent[at[g->dependency[d]]++] = i;
	}
	return BASE_OK;
}

enum base_status noc_netrace_write(const struct noc_pdg *g,
	enum base_status (*write)(void *ctx, const void *bytes, size_t nr, struct base_err *err),
	void *ctx, struct noc_netrace_losses *ret, struct base_err *err)
{
	struct writing w = {.g = g, .write = write, .ctx = ctx};
	*ret = (struct noc_netrace_losses){0};
	if (g->nr_nodes > NODES_MAX)
		return base_fail(err, BASE_ERR_LIMIT, "Netrace has at most %d nodes, this has %u",
			NODES_MAX, g->nr_nodes);
	for (uint32_t i = 1; i < g->nr_packets; i++)
		if (g->transmit_cycle[i] < g->transmit_cycle[i - 1])
			return base_fail(err, BASE_ERR_USAGE,
				"packets are not numbered in the order of their times (a skewed "
				"run?)");
	enum base_status s = find_dependents(&w, err);
	if (s == BASE_OK)
		s = write_header(&w, err);
	for (uint32_t i = 0; i < g->nr_packets && s == BASE_OK; i++)
		s = write_packet(&w, i, err);
	base_free(w.first);
	base_free(w.dependent);
	*ret = w.losses;
	return s;
}

/* ---- compressed, to a file ------------------------------------------------------------------- */

static enum base_status compress(void *ctx, const void *bytes, size_t nr, struct base_err *err)
{
	uint8_t copy[2048]; /* its interface wants bytes that may be written */
	for (size_t done = 0; done < nr;) {
		size_t part = nr - done < sizeof copy ? nr - done : sizeof copy;
		memcpy(copy, (const uint8_t *)bytes + done, part);
		if (BZ2_bzwrite(ctx, copy, (int)part) != (int)part)
			return base_fail(err, BASE_ERR_IO, "writing bzip2 data failed");
		done += part;
	}
	return BASE_OK;
}

enum base_status noc_netrace_write_file(const struct noc_pdg *g, const char *path,
	struct noc_netrace_losses *ret, struct base_err *err)
{
	struct base_err refused = {0};
	FILE *file = base_output_stream(path, BASE_OUTPUT_PLAIN, err ? err : &refused);
	int bz_error = BZ_OK;
	if (!file)
		return err ? err->status : refused.status;
	BZFILE *bz = BZ2_bzWriteOpen(&bz_error, file, 9, 0, 0);
	enum base_status s = BASE_OK;
	if (!bz) {
		fclose(file);
		return base_fail(err, BASE_ERR_NOMEM, "no memory to compress %s", path);
	}
	s = noc_netrace_write(g, compress, bz, ret, err);
	BZ2_bzWriteClose(&bz_error, bz, s != BASE_OK, NULL, NULL);
	if (s == BASE_OK && bz_error != BZ_OK)
		s = base_fail(err, BASE_ERR_IO, "compressing %s failed", path);
	if (fclose(file) && s == BASE_OK)
		s = base_fail_errno(err, errno, "cannot write %s", path);
	return s;
}
