// SPDX-License-Identifier: Apache-2.0
// tiles.ts - the pyramid: unpacked when first looked at. See src/report/page/html_time.h.
import { signal } from '@preact/signals';
import { T } from './data';

// A row of runs: from[i]..from[i + 1] in ns since the start. Buckets: a active, w waiting state (-1 none), q fifteenths.
export type Track = { from: Float64Array; a: Int32Array; w: Int32Array; q: Uint8Array };
export type Tile = { leaf: boolean; tracks: Track[]; width: number };
export const decoded = signal(0); // changes when a tile has come

const tiles = new Map<string, Tile | null>();
const log2 = T ? T.bucket_log2 : 0;
export const bucketNs = (level: number) => 2 ** Math.max(log2 - 2 * level, 0);
export const spanNs = (level: number) => bucketNs(level) * T!.buckets;

async function unpack(text: string): Promise<() => number> {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const bytes = new Uint8Array(
    await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'))).arrayBuffer());
  let at = 0;
  return () => {
    let v = 0, scale = 1, b;
    do {
      b = bytes[at++];
      v += (b & 127) * scale;
      scale *= 128;
    } while (b & 128);
    return v;
  };
}

async function decode(level: number, index: number, text: string): Promise<Tile> {
  const next = await unpack(text), leaf = next() === 1, width = bucketNs(level), span = spanNs(level);
  const nrStates = T!.lanes.length + 1, tracks: Track[] = [];
  for (let i = 0; i < nrStates + T!.queues.length; i++) {
    const from: number[] = [], a: number[] = [], w: number[] = [], q: number[] = [], units = i >= nrStates;
    for (let at = 0; at < span; ) {
      from.push(index * span + at);
      if (leaf) {
        const v = next() - 1, waits = i < T!.lanes.length && v >= 0 && T!.states[v].waits;
        a.push(units ? Math.max(v, 0) : waits ? -1 : v);
        w.push(units ? Math.max(v, 0) : waits ? v : -1);
        q.push(v < 0 ? 0 : waits ? 0x0f : 0xf0);
        at += next();
      } else {
        at += next() * width;
        a.push(next() - (units ? 0 : 1));
        w.push(next() - (units ? 0 : 1));
        q.push(units ? 0 : next());
      }
    }
    from.push((index + 1) * span);
    tracks.push({ from: Float64Array.from(from), a: Int32Array.from(a), w: Int32Array.from(w), q: Uint8Array.from(q) });
  }
  return { leaf, tracks, width };
}

// Undefined: there is none, or it is on its way.
export function tile(level: number, index: number): Tile | undefined {
  const key = `${level}/${index}`, known = tiles.get(key), text = T!.tiles[key];
  if (known || known === null || !text) return known ?? undefined;
  tiles.set(key, null);
  void decode(level, index, text).then((t) => {
    tiles.set(key, t);
    decoded.value++;
  });
}

// Calls draw(tile, from, to) for [from, to), each part by the coarsest tile that has a bucket a pixel, or the finest there is.
export function walk(from: number, to: number, nsPerPixel: number, draw: (t: Tile, from: number, to: number) => void,
  level = 0, index = 0): boolean {
  const t = tile(level, index);
  if (!t) return false;
  const span = spanNs(level), begin = Math.max(index * span, from), end = Math.min((index + 1) * span, to);
  if (begin >= end) return true;
  if (t.leaf || t.width <= nsPerPixel * 1.5) draw(t, begin, end);
  else
    for (let k = 0; k < 4; k++) {
      const at = (index * 4 + k) * (span / 4), b = Math.max(at, begin), e = Math.min(at + span / 4, end);
      if (b < e && !walk(from, to, nsPerPixel, draw, level + 1, index * 4 + k)) draw(t, b, e);
    }
  return true;
}
// The first run that ends after `at`.
export function find(t: Track, at: number): number {
  let low = 0, high = t.a.length - 1;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (t.from[mid + 1] > at) high = mid;
    else low = mid + 1;
  }
  return low;
}

// ---- exact sums: time in each state, a bin each, lane by lane; the path last
export type Bins = [number, number][][][]; // lane, bin, [value, ns]
export const bins = signal<Bins | null>(null);
export async function loadBins() {
  const next = await unpack(T!.sums), all: Bins = [];
  for (let i = 0; i <= T!.lanes.length; i++) {
    const lane: [number, number][][] = [];
    for (let k = 0; k < T!.bins; k++) lane.push(Array.from({ length: next() }, () => [next(), next()] as [number, number]));
    all.push(lane);
  }
  bins.value = all;
}
