// SPDX-License-Identifier: Apache-2.0
// select.ts - what is looked at: one selection for all panels, in the address. Times are ns since the timeline's start.
import { computed, effect, signal } from '@preact/signals';
import { doc, T } from './data';
import { bins } from './tiles';

export const whole = T ? T.end_ns - T.start_ns : 1;
export type Range = readonly [number, number];
export const view = signal<Range>([0, whole]); // what the timeline shows
export const range = signal<Range | null>(null); // what is selected of time: null all
export const lanes = signal<ReadonlySet<number> | null>(null); // ... of threads: null all
export const connection = signal<number | null>(null); // its id
export const panel = signal('answer');
export const search = signal('');

const numbers = (s: string | null, sep: string) => (s ? s.split(sep).map(Number).filter(Number.isFinite) : []);
const ordered = (s: string | null): Range | null => {
  const [a, b] = numbers(s, '-');
  return T && a >= 0 && b > a ? [Math.min(a, whole - 1), Math.min(b, whole)] : null;
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
const text = computed(() => {
  const p: string[] = [], r = range.value, v = view.value, add = (k: string, x: string) => p.push(`${k}=${x}`);
  if (panel.value !== 'answer') add('p', panel.value);
  if (r) add('t', `${Math.round(r[0])}-${Math.round(r[1])}`);
  if (v[0] > 0 || v[1] < whole) add('v', `${Math.round(v[0])}-${Math.round(v[1])}`);
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
  const names = new Set(doc.connections!.servers.filter((s: any) => s.connections.includes(id)).map((s: any) => s.actor));
  const l = T.lanes.flatMap((x, i) => (names.has(x.name) || names.has(x.group) ? [i] : []));
  lanes.value = l.length ? new Set(l) : null;
}

// Time in each state within the selection: [lane][state] and the path's by step. Bins that the range cuts count in
// proportion; `within` says what that can be off by.
export type Sums = { lane: Map<number, number>[]; path: Map<number, number>; within: number; ns: number };
export const sums = computed<Sums | null>(() => {
  if (!bins.value || !T) return null;
  const [a, b] = range.value ?? [0, whole], n = T.bins, add = (m: Map<number, number>, k: number, x: number) => m.set(k, (m.get(k) ?? 0) + x);
  const first = Math.floor((a * n) / whole), last = Math.min(n - 1, Math.ceil((b * n) / whole) - 1), width = whole / n;
  const share = (k: number) => (Math.min(b, (k + 1) * width) - Math.max(a, k * width)) / width;
  const of = (bin: [number, number][][]) => {
    const m = new Map<number, number>();
    for (let k = first; k <= last; k++) for (const [v, x] of bin[k]) add(m, v, x * Math.min(1, Math.max(0, share(k))));
    return m;
  };
  const path = of(bins.value[T.lanes.length]);
  for (const k of path.keys()) if (!isLane(T.steps[k][0])) path.delete(k);
  const cut = (share(first) < 0.9999 ? 1 : 0) + (last > first && share(last) < 0.9999 ? 1 : 0);
  return { lane: T.lanes.map((_, i) => (isLane(i) ? of(bins.value![i]) : new Map())), path, within: cut ? (cut * width) / 2 : 0, ns: b - a };
});
// Per state, over the selected lanes.
export const stateSums = computed(() => {
  const m = new Map<number, number>();
  for (const l of sums.value?.lane ?? []) for (const [k, v] of l) m.set(k, (m.get(k) ?? 0) + v);
  return m;
});
export const pathSums = computed(() => {
  const m = new Map<number, number>();
  for (const [k, v] of sums.value?.path ?? []) m.set(T!.steps[k][1], (m.get(T!.steps[k][1]) ?? 0) + v);
  return m;
});
