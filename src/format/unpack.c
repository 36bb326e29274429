/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - gzip and zstd files, unpacked into memory up to a limit. */
#include "format/unpack.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { PIECE_BYTES = 1 << 16, MAGIC_BYTES = 6, GZIP_ONLY = 16 };

struct pieces { /* the compressed bytes, one piece after the other */
	const struct format_source *from;
	uint64_t at;
	size_t nr, used;
	uint8_t piece[PIECE_BYTES];
};

static enum base_status pieces_fill(struct pieces *p, struct base_err *err)
{
	uint64_t left = p->from->size_bytes - p->at;
	if (p->used < p->nr)
		return BASE_OK;
	p->used = 0;
	p->nr = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
	enum base_status s =
		p->nr ? p->from->read(p->from->ctx, p->at, p->piece, p->nr, err) : BASE_OK;
	p->at += p->nr;
	return s;
}

/* Room for one piece more at least. */
static enum base_status unpack_room(struct format_unpacked *u, struct base_err *err)
{
	if (u->nr >= FORMAT_UNPACKED_BYTES_MAX)
		return base_fail(err, BASE_ERR_LIMIT,
			"unpacks to more than %d MiB: unpack it yourself and import a shorter part",
			FORMAT_UNPACKED_BYTES_MAX >> 20);
	if (u->capacity - u->nr >= PIECE_BYTES)
		return BASE_OK;
	if (base_grow(&u->bytes, &u->capacity, u->nr + PIECE_BYTES, 1) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for %zu unpacked {byte|bytes}",
			u->nr + PIECE_BYTES);
	return BASE_OK;
}

/* Damage behind the first bytes that were unpacked is a cut. */
static enum base_status unpack_damage(
	struct format_unpacked *u, const char *what, struct base_err *err)
{
	u->cut = true;
	return u->nr ? BASE_END
		     : base_fail(err, BASE_ERR_FOREIGN,
			       "begins as a %s file, but cannot be unpacked", what);
}

static enum base_status unpack_gzip(
	struct format_unpacked *u, struct pieces *p, struct base_err *err)
{
	z_stream z = {0};
	bool whole = false;
	enum base_status s = BASE_OK;
	if (inflateInit2(&z, GZIP_ONLY + MAX_WBITS) != Z_OK)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for unpacking");
	while (s == BASE_OK && (s = pieces_fill(p, err)) == BASE_OK) {
		if (p->used == p->nr) {
			u->cut |= !whole;
			break;
		}
		if (whole && inflateReset(&z) != Z_OK) /* a file may follow the other */
			break;
		s = unpack_room(u, err);
		if (s != BASE_OK)
			break;
		uInt room = PIECE_BYTES;
		z.next_in = p->piece + p->used;
		z.avail_in = (uInt)(p->nr - p->used);
		z.next_out = u->bytes + u->nr;
		z.avail_out = room;
		int r = inflate(&z, Z_NO_FLUSH);
		p->used = p->nr - z.avail_in;
		u->nr += room - z.avail_out;
		whole = r == Z_STREAM_END;
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			s = unpack_damage(u, "gzip", err);
	}
	inflateEnd(&z);
	return s == BASE_END ? BASE_OK : s;
}

static enum base_status unpack_zstd(
	struct format_unpacked *u, struct pieces *p, struct base_err *err)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	enum base_status s =
		z ? BASE_OK : base_fail(err, BASE_ERR_NOMEM, "out of memory for unpacking");
	size_t wanted = 0; /* 0: between two frames, and all that was unpacked is here */
	while (s == BASE_OK && (s = pieces_fill(p, err)) == BASE_OK) {
		if (p->used == p->nr && !p->nr && !wanted)
			break;
		s = unpack_room(u, err);
		if (s != BASE_OK)
			break;
		ZSTD_inBuffer in = {p->piece, p->nr, p->used};
		ZSTD_outBuffer out = {u->bytes + u->nr, PIECE_BYTES, 0};
		wanted = ZSTD_decompressStream(z, &out, &in);
		bool idle = in.pos == p->used && !out.pos;
		p->used = in.pos;
		u->nr += out.pos;
		if (ZSTD_isError(wanted))
			s = unpack_damage(u, "zstd", err);
		else if (idle) { /* the file has ended within a frame */
			u->cut = true;
			break;
		}
	}
	ZSTD_freeDStream(z);
	return s == BASE_END ? BASE_OK : s;
}

static const struct {
	uint8_t magic[MAGIC_BYTES];
	uint8_t length;
	const char *name, *command;
	enum base_status (*unpack)(
		struct format_unpacked *u, struct pieces *p, struct base_err *err);
} packers[] = {
	{{0x1f, 0x8b}, 2, "gzip", "gunzip", unpack_gzip},
	{{0x28, 0xb5, 0x2f, 0xfd}, 4, "zstd", "unzstd", unpack_zstd},
	{{0xfd, '7', 'z', 'X', 'Z', 0}, 6, "xz", "unxz", NULL},
	{{'B', 'Z', 'h'}, 3, "bzip2", "bunzip2", NULL},
	{{0x04, 0x22, 0x4d, 0x18}, 4, "lz4", "unlz4", NULL},
	{{'P', 'K', 3, 4}, 4, "zip", "unzip", NULL},
};

static enum base_status read_unpacked(
	void *ctx, uint64_t offset, void *to, size_t length, struct base_err *err)
{
	const struct format_unpacked *u = ctx;
	if (offset > u->nr || length > u->nr - offset)
		return base_fail(err, BASE_ERR_TRUNCATED, "ends before byte %llu",
			(unsigned long long)offset + length);
	if (length)
		memcpy(to, u->bytes + offset, length);
	return BASE_OK;
}

static enum base_status unpack_with(struct format_unpacked *u, size_t packer, struct base_err *err)
{
	if (!packers[packer].unpack || u->from->path)
		return base_fail(err, BASE_ERR_FOREIGN,
			"is compressed with %s: unpack it first (%s)", packers[packer].name,
			packers[packer].command);
	struct pieces *p = base_alloc(sizeof *p);
	if (!p)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for unpacking");
	p->from = u->from;
	enum base_status s = packers[packer].unpack(u, p, err);
	base_free(p);
	u->source.read = read_unpacked;
	u->source.ctx = u;
	u->source.size_bytes = u->nr;
	return s;
}

enum base_status format_unpack(
	const struct format_source *from, struct format_unpacked *ret, struct base_err *err)
{
	uint8_t first[MAGIC_BYTES] = {0};
	size_t nr = from->size_bytes < sizeof first ? (size_t)from->size_bytes : sizeof first;
	*ret = (struct format_unpacked){.source = *from, .from = from};
	enum base_status s = nr ? from->read(from->ctx, 0, first, nr, err) : BASE_OK;
	if (s != BASE_OK)
		return s;
	for (size_t i = 0; i < BASE_COUNT(packers); i++)
		if (nr >= packers[i].length && !memcmp(first, packers[i].magic, packers[i].length))
			return unpack_with(ret, i, err);
	return BASE_OK;
}

void format_unpack_fini(struct format_unpacked *u)
{
	base_free(u->bytes);
	u->bytes = NULL;
}
