// SPDX-License-Identifier: Apache-2.0
// select.ts - what is looked at: one selection for all panels, in the address. Times are ns since the timeline's start, in the
// address since the recording's.
import { computed, effect, signal } from '@preact/signals';
import { at, doc, T } from './data';
import { bins, decoded, find, walk, type Tile } from './tiles';

export const whole = T ? T.end_ns - T.start_ns : 1;
export type Range = readonly [number, number];
export const view = signal<Range>([0, whole]); // what the timeline shows
export const range = signal<Range | null>(null); // what is selected of time: null all
export const lanes = signal<ReadonlySet<number> | null>(null); // ... of threads: null all
export const connection = signal<number | null>(null); // its id
export const panel = signal('answer');
export const search = signal('');

const numbers = (s: string | null, sep: string) => (s ? s.split(sep).map(Number).filter(Number.isFinite) : []);
// Times in the address are the recording's, as --from and --to have them.
const ordered = (s: string | null): Range | null => {
  const [a, b] = numbers(s, '-').map((t) => t - (T?.start_ns ?? 0));
  return T && b > 0 && b > a ? [Math.min(Math.max(a, 0), whole - 1), Math.min(b, whole)] : null;
};
export function readHash() {
  const p = new URLSearchParams(location.hash.slice(1));
  range.value = ordered(p.get('t'));
  view.value = ordered(p.get('v')) ?? [0, whole];
  const l = numbers(p.get('threads'), ',').filter((i) => T && Number.isInteger(i) && i >= 0 && i < T.lanes.length);
  lanes.value = l.length ? new Set(l) : null;
  const c = p.get('connection');
  connection.value = c ? Number(c) : null;
  search.value = p.get('q') ?? '';
  panel.value = p.get('p') ?? 'answer';
}
const span = (r: Range) => r.map((t) => Math.round(at(t))).join('-');
const text = computed(() => {
  const p: string[] = [], r = range.value, v = view.value, add = (k: string, x: string) => p.push(`${k}=${x}`);
  if (panel.value !== 'answer') add('p', panel.value);
  if (r) add('t', span(r));
  if (v[0] > 0 || v[1] < whole) add('v', span(v));
  if (lanes.value) add('threads', [...lanes.value].sort((a, b) => a - b).join(','));
  if (connection.value !== null) add('connection', `${connection.value}`);
  if (search.value) add('q', encodeURIComponent(search.value));
  return p.join('&');
});
export function startHash() {
  readHash();
  addEventListener('hashchange', readHash);
  let timer = 0, last = text.value;
  effect(() => {
    const t = text.value;
    clearTimeout(timer);
    // Zooming makes many of them: one entry when it rests.
    timer = setTimeout(() => {
      if (t !== last && t !== location.hash.slice(1)) history.pushState(null, '', `#${t}`);
      last = t;
    }, 250) as unknown as number;
  });
  addEventListener('popstate', readHash);
}
// A row of the timeline: a lane, or all threads that hardly did a thing. `unfolded`: each of those has a row, too.
export type Row = { name: string; lanes: number[]; folded: boolean };
export const unfolded = signal(false);
const IDLE_ACTIVE = 0.02, IDLE_PATH = 0.001, IDLE_LEAST = 3; // share of its time, of the path; threads that are worth folding
const idle = T ? T.lanes.flatMap((l, i) => (l.active_ns < IDLE_ACTIVE * (l.end_ns - l.begin_ns) && l.path_ns < IDLE_PATH * T!.path_ns ? [i] : [])) : [];
export const nrIdle = idle.length >= IDLE_LEAST ? idle.length : 0;
export const rows = computed<Row[]>(() => {
  const one = (i: number): Row => ({ name: T!.lanes[i].name, lanes: [i], folded: false });
  const fold = new Set(nrIdle && !unfolded.value ? idle.filter((i) => !lanes.value?.has(i)) : []);
  const out = (T?.lanes ?? []).flatMap((_, i) => (fold.has(i) ? [] : [one(i)]));
  if (fold.size) out.push({ name: `▸ ${fold.size} idle threads`, lanes: [...fold], folded: true });
  return out;
});
export function clear() {
  range.value = lanes.value = connection.value = null;
}
export const selected = computed(() => range.value !== null || lanes.value !== null || connection.value !== null);
export const isLane = (i: number) => !lanes.value || lanes.value.has(i);
export function toggleLane(i: number) {
  const s = new Set(lanes.value ?? []);
  if (!s.delete(i)) s.add(i);
  lanes.value = s.size ? s : null;
  connection.value = null;
}
// A connection is a time and the threads that served it.
export function chooseConnection(id: number | null) {
  connection.value = id;
  const c = doc.connections?.connections.find((x: any) => x.connection === id);
  if (!c || !T) return;
  range.value = [Math.max(c.start_ns - T.start_ns, 0), Math.min(c.end_ns - T.start_ns, whole)];
  const names = new Set(doc.connections!.actors.filter((s: any) => s.connections.includes(id)).map((s: any) => s.actor));
  const l = T.lanes.flatMap((x, i) => (names.has(x.name) || names.has(x.group) ? [i] : []));
  lanes.value = l.length ? new Set(l) : null;
}

// Time in each state within the selection: by lane and state, and the path's by step. Whole bins are exact; of a bin that the
// range cuts, the slices say it where they are there, else it counts in proportion, and `within` says what that can be off by.
export type Sums = { lane: Map<number, number>[]; path: Map<number, number>; within: number; ns: number };
function put<K>(m: Map<K, number>, k: K, x: number) {
  if (x > 0) m.set(k, (m.get(k) ?? 0) + x);
}
function slices(a: number, b: number, all: Map<number, number>[]): boolean {
  const parts: [Tile, number, number][] = [];
  if (!walk(a, b, 0, (t, x, y) => parts.push([t, x, y])) || parts.some(([t]) => !t.leaf)) return false;
  for (const [t, x, y] of parts)
    all.forEach((m, l) => {
      const r = t.tracks[l];
      for (let i = find(r, x); i < r.a.length && r.from[i] < y; i++) {
        const v = r.a[i] < 0 ? r.w[i] : r.a[i];
        if (v >= 0) put(m, v, Math.min(r.from[i + 1], y) - Math.max(r.from[i], x));
      }
    });
  return true;
}
const begin = (k: number) => Math.floor((whole * k) / T!.bins);
const within = (t: number) => Math.floor((t * T!.bins) / whole);
// Whether every slice around a moment is here, so that a selection may begin or end at it.
function sliced(t: number) {
  let leaf = true;
  return walk(t, t + 1, 0, (x) => (leaf &&= x.leaf)) && leaf;
}
// A range that can be counted to the nanosecond: an end without slices around it moves to the nearest bin's.
export function snapped([a, b]: Range): Range {
  const near = (t: number) => [0, 1].map((d) => begin(Math.min(within(t) + d, T!.bins))).sort((p, q) => Math.abs(p - t) - Math.abs(q - t))[0];
  const x = Math.floor(a), y = Math.ceil(b), from = sliced(x) ? x : near(x), to = sliced(y) ? y : near(y);
  return to > from ? [from, to] : [begin(within(x)), begin(within(x) + 1)];
}
export const sums = computed<Sums | null>(() => {
  const all = bins.value, [a, b] = range.value ?? [0, whole];
  if (!all || !T) return null;
  void decoded.value;
  const out = all.map(() => new Map<number, number>()), n = T.bins;
  let off = 0, k = Math.max(0, Math.floor((a * n) / whole) - 1);
  for (; k < n && begin(k) < b; k++) {
    const x = Math.max(a, begin(k)), y = Math.min(b, begin(k + 1)), width = begin(k + 1) - begin(k);
    if (x >= y) continue;
    const cut = y - x < width;
    if (cut && slices(x, y, out)) continue;
    if (cut) off += Math.min(y - x, width - (y - x));
    out.forEach((m, l) => { for (const [v, t] of all[l][k]) put(m, v, (t * (y - x)) / width); });
  }
  const path = out.pop()!;
  for (const s of path.keys()) if (!isLane(T.steps[s][0])) path.delete(s);
  return { lane: out.map((m, i) => (isLane(i) ? m : new Map())), path, within: off, ns: b - a };
});
// Per state, over the selected lanes.
export const stateSums = computed(() => {
  const m = new Map<number, number>();
  for (const l of sums.value?.lane ?? []) for (const [k, v] of l) m.set(k, (m.get(k) ?? 0) + v);
  return m;
});
// Waits by the name of the queue that they are for.
export function waitsOf(m: Map<number, number>) {
  const by = new Map<string, number>();
  for (const [k, v] of m) if (k >= 0 && T!.states[k].waits && T!.states[k].queue) put(by, T!.states[k].queue, v);
  return by;
}
export const pathSums = computed(() => {
  const m = new Map<number, number>();
  for (const [k, v] of sums.value?.path ?? []) m.set(T!.steps[k][1], (m.get(T!.steps[k][1]) ?? 0) + v);
  return m;
});
