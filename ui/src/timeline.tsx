// SPDX-License-Identifier: Apache-2.0
// timeline.tsx - the critical path, then lanes, then queues; on one canvas. Running is a bar, waiting a flat line.
import { signal, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { T, at, brief, color, colorName, count, exact, ns } from './data';
import { decoded, find, spanNs, walk, type Tile, type Track } from './tiles';
import { connection, isLane, lanes, range, rows, search, snapped, toggleLane, unfolded, view, whole, type Row, type Range } from './select';

const ROW = 22, BAR = 15, FLAT = 5, PATH = 38, PATH_BAR = 20, AXIS = 46, TOP = AXIS + PATH, QUEUE = 34, LEFT = () => Math.min(230, Math.max(110, width * 0.2));
let width = 900;
export const tip = signal<{ x: number; y: number; text: string[] } | null>(null);
export const first = signal(0); // row at the top
const still = matchMedia('(prefers-reduced-motion: reduce)');

// ---- moving about
let goal: Range | null = null, frame = 0;
const clamp = ([a, b]: Range): Range => {
  const d = Math.min(Math.max(b - a, 20), whole), at = Math.min(Math.max(a, 0), whole - d);
  return [at, at + d];
};
export function go(to: Range, now = still.matches) {
  goal = clamp(to);
  if (now) return void (view.value = goal);
  if (!frame) frame = requestAnimationFrame(step);
}
function step() {
  frame = 0;
  const v = view.value, g = goal!, d = Math.abs(g[0] - v[0]) + Math.abs(g[1] - v[1]);
  const close = d < (g[1] - g[0]) / 500;
  view.value = close ? g : [v[0] + (g[0] - v[0]) * 0.35, v[1] + (g[1] - v[1]) * 0.35];
  if (!close) frame = requestAnimationFrame(step);
}
const aim = () => (frame ? goal! : view.value);
export function zoom(factor: number, at?: number, now?: boolean) {
  const v = aim(), c = at ?? (v[0] + v[1]) / 2;
  go([c - (c - v[0]) * factor, c + (v[1] - c) * factor], now);
}
export function pan(share: number, now?: boolean) {
  const v = aim(), d = (v[1] - v[0]) * share;
  go([v[0] + d, v[1] + d], now);
}
export const scrollLanes = (by: number) => (first.value = Math.min(Math.max(first.value + by, 0), Math.max(rows.value.length - shown(), 0)));
export const shown = () => Math.min(rows.value.length, Math.max(6, Math.floor((innerHeight * 0.62 - TOP) / ROW)));

// ---- drawing
export const swatch = (i: number) => `sw ${T!.states[i].waits ? 'wait' : ''} ${colorName(i).slice(2)}`;

function ticks(a: number, b: number, px: number): number[] {
  const raw = (b - a) / Math.max(px / 110, 1), p = 10 ** Math.floor(Math.log10(raw)), m = raw / p;
  const d = Math.max(p * (m > 5 ? 10 : m > 2 ? 5 : m > 1 ? 2 : 1), 1), r: number[] = [];
  for (let t = Math.ceil(a / d) * d; t < b; t += d) r.push(t);
  return r;
}
// Times along the axis, all in one unit, with as many digits as tell them apart.
function label(t: number, d: number) {
  const [u, s] = at(whole) >= 1e9 ? ['s', 1e9] : at(whole) >= 1e6 ? ['ms', 1e6] : at(whole) >= 1e3 ? ['µs', 1e3] : ['ns', 1];
  return `${(t / (s as number)).toFixed(Math.max(0, Math.ceil(Math.log10((s as number) / d) - 1e-9)))} ${u}`;
}
const cut = (g: CanvasRenderingContext2D, s: string, w: number) => {
  if (g.measureText(s).width <= w) return s;
  let n = s.length;
  while (n > 1 && g.measureText(`…${s.slice(-n)}`).width > w) n--;
  return `…${s.slice(-n)}`;
};

// Runs of a track as they are drawn: one a run, or one a pixel where several share it, with what had most of it and its parts.
type Emit = (x: number, w: number, active: number, activePart: number, waiting: number, waitPart: number) => void;
function runs(r: Track, from: number, to: number, x: (t: number) => number, split: (i: number) => [number, number], emit: Emit) {
  const [active, waiting] = [new Map<number, number>(), new Map<number, number>()];
  let px = NaN;
  const most = (m: Map<number, number>): [number, number] => {
    let best = -1, all = 0;
    for (const [v, w] of m) { if (best < 0 || w > m.get(best)!) best = v; all += w; }
    m.clear();
    return [best, Math.min(all, 1)];
  };
  const flush = () => { if (active.size || waiting.size) emit(px, 1, ...most(active), ...most(waiting)); };
  const put = (m: Map<number, number>, v: number, w: number) => w > 0 && m.set(v, (m.get(v) ?? 0) + w);
  for (let i = find(r, from); i < r.a.length && r.from[i] < to; i++) {
    if (!r.q[i]) continue;
    const [a, w] = split(i), x0 = x(Math.max(r.from[i], from)), x1 = x(Math.min(r.from[i + 1], to));
    const pa = a < 0 ? 0 : w < 0 ? Math.max(r.q[i] >> 4, r.q[i] & 15) / 15 : (r.q[i] >> 4) / 15, pw = w < 0 ? 0 : a < 0 ? Math.max(r.q[i] >> 4, r.q[i] & 15) / 15 : (r.q[i] & 15) / 15;
    if (x1 - x0 >= 1) {
      flush();
      emit(x0, x1 - x0, a, pa, w, pw);
      continue;
    }
    if (Math.floor(x0) !== px) flush();
    px = Math.floor(x0);
    put(active, a, pa * (x1 - x0));
    put(waiting, w, pw * (x1 - x0));
  }
  flush();
}
const LEAST_PX = 1; // of a bar's height: a little work in much waiting is seen
const barOf = (part: number, h: number) => (part > 0 ? Math.max(part * h, LEAST_PX) : 0);
// The waits of a row, then what it did: of several lanes that are folded into one row, the work stays to be seen.
function drawRow(g: CanvasRenderingContext2D, t: Tile, row: Row, from: number, to: number, x: (t: number) => number, y: number, find_: string) {
  const match = (s: number) => !find_ || T!.states[s].name.toLowerCase().includes(find_);
  for (const waits of [true, false])
    for (const lane of row.lanes) {
      const r = t.tracks[lane], own = isLane(lane) ? 1 : 0.3;
      runs(r, from, to, x, (i) => [r.q[i] >> 4 ? r.a[i] : -1, r.q[i] & 15 ? r.w[i] : -1], (x0, w, a, pa, b, pb) => {
        const state = waits ? b : a, h = waits ? (pb > 0 ? FLAT : 0) : barOf(pa, BAR);
        if (state < 0 || !h) return;
        g.globalAlpha = match(state) ? own : 0.12;
        g.fillStyle = color(colorName(state));
        g.fillRect(x0, y + BAR - h, w, h);
      });
    }
  g.globalAlpha = 1;
}
function drawPathBars(g: CanvasRenderingContext2D, r: Track, from: number, to: number, x: (t: number) => number, bottom: number, bar: number, alpha: (step: number) => number) {
  const step = (i: number) => (r.a[i] >= 0 && (r.q[i] >> 4) >= (r.q[i] & 15) ? r.a[i] : r.w[i]);
  const split = (i: number): [number, number] => { const s = step(i); return s < 0 || T!.steps[s][1] < 0 ? [-1, -1] : T!.states[T!.steps[s][1]].waits ? [-1, s] : [s, -1]; };
  runs(r, from, to, x, split, (x0, w, a, pa, b, pb) => {
    for (const [s, h] of [[b, pb > 0 ? FLAT : 0], [a, barOf(pa, bar)]]) {
      if (s < 0 || !h) continue;
      g.globalAlpha = alpha(s);
      g.fillStyle = color(colorName(T!.steps[s][1]));
      g.fillRect(x0, bottom - h, w, h);
    }
  });
  g.globalAlpha = 1;
}

// What the path was at most of a run of its track: [lane, state].
const stepAt = (r: Tile['tracks'][0], i: number) => T!.steps[r.a[i] >= 0 && (r.q[i] >> 4) >= (r.q[i] & 15) ? r.a[i] : r.w[i]] ?? [-1, -1];
// The path as a lane of its own: bars in the states' colours, and the thread's name where there is room. In the lanes beneath, a line
// where the path is in them.
function drawPath(g: CanvasRenderingContext2D, x: (t: number) => number, from: number, to: number, nr: number, perPx: number, find_: string) {
  const rowOf = new Map(rows.value.flatMap((r, i) => r.lanes.map((l) => [l, i] as const))), names: [number, number, number][] = [];
  walk(from, to, perPx, (t, a, b) => {
    const r = t.tracks[T!.lanes.length], pale = ([lane, state]: [number, number]) => !isLane(lane) || (find_ && !T!.states[state].name.toLowerCase().includes(find_));
    drawPathBars(g, r, a, b, x, AXIS + PATH_BAR, PATH_BAR, (s) => (pale(T!.steps[s]) ? 0.25 : 1));
    for (let i = find(r, a); i < r.a.length && r.from[i] < b; i++) {
      const [lane, state] = stepAt(r, i), x0 = x(Math.max(r.from[i], a)), x1 = x(Math.min(r.from[i + 1], b)), w = Math.max(x1 - x0, 0.4);
      if (state < 0) continue;
      const row = rowOf.get(lane) ?? -1;
      g.globalAlpha = isLane(lane) ? 1 : 0.25;
      g.fillStyle = color('--path');
      if (row >= first.value && row < first.value + nr) g.fillRect(x0, TOP + (row - first.value) * ROW + BAR + 1, w, 2);
      const last = names[names.length - 1];
      if (last && last[0] === lane && x0 - last[2] < 1.5) last[2] = x1;
      else names.push([lane, x0, x1]);
    }
  });
  g.globalAlpha = 1;
  g.save();
  g.font = `11px ${color('--sans')}`;
  g.fillStyle = color('--dim');
  for (const [lane, x0, x1] of names) {
    const s = T!.lanes[lane]?.name ?? 'others', tail = s.split('/').pop()!, text = [s, tail].find((n) => g.measureText(n).width < x1 - x0 - 6);
    if (text) g.fillText(text, x0 + 3, AXIS + PATH_BAR + 8);
  }
  g.restore();
}

function drawQueue(g: CanvasRenderingContext2D, k: number, x: (t: number) => number, from: number, to: number, y: number, perPx: number) {
  const q = T!.queues[k], h = QUEUE - 10, scale = (v: number) => (q.greatest ? (Math.min(v, q.greatest) / q.greatest) * h : 0);
  walk(from, to, perPx, (t, a, b) => {
    const r = t.tracks[T!.lanes.length + 1 + k];
    for (let i = find(r, a); i < r.a.length && r.from[i] < b; i++) {
      const x0 = x(Math.max(r.from[i], a)), w = Math.max(x(Math.min(r.from[i + 1], b)) - x0, 0.4);
      g.fillStyle = color('--queue-most');
      g.fillRect(x0, y + h - scale(r.w[i]), w, scale(r.w[i]));
      g.fillStyle = color('--queue-least');
      g.fillRect(x0, y + h - scale(r.a[i]), w, scale(r.a[i]));
    }
  });
}

// Where every slice is there, to the nanosecond: a strip beneath the axis.
function drawDetail(g: CanvasRenderingContext2D, x: (t: number) => number, from: number, to: number) {
  if (T!.whole) return;
  g.fillStyle = color('--detail');
  for (const key of T!.leaves) {
    const [level, index] = key.split('/').map(Number), a = index * spanNs(level), b = a + spanNs(level);
    if (b > from && a < to) g.fillRect(x(a), AXIS - 6, Math.max(x(b) - x(a), 1), 3);
  }
}

function overview(g: CanvasRenderingContext2D, left: number) {
  const px = width - left, x = (t: number) => left + (t / whole) * px;
  walk(0, whole, whole / px, (t, a, b) => {
    drawPathBars(g, t.tracks[T!.lanes.length], a, b, x, 15, 12, () => 1);
  });
  const v = view.value;
  g.fillStyle = color('--shade');
  g.fillRect(left, 2, x(v[0]) - left, 14);
  g.fillRect(x(v[1]), 2, width - x(v[1]), 14);
  g.strokeStyle = color('--ink');
  g.lineWidth = 1.5;
  g.strokeRect(x(v[0]), 2, Math.max(x(v[1]) - x(v[0]), 3), 14);
}

function draw(c: HTMLCanvasElement) {
  const g = c.getContext('2d')!, ratio = devicePixelRatio || 1, nr = shown(), left = LEFT();
  width = c.clientWidth;
  const height = TOP + nr * ROW + T!.queues.length * QUEUE + 6;
  if (c.width !== Math.round(width * ratio) || c.height !== Math.round(height * ratio)) {
    c.width = Math.round(width * ratio);
    c.height = Math.round(height * ratio);
    c.style.height = `${height}px`;
  }
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  const [from, to] = view.value, px = width - left, perPx = (to - from) / px, x = (t: number) => left + (t - from) / perPx;
  g.font = `12px ${color('--sans')}`;
  overview(g, left);
  const marks = ticks(at(from), at(to), px).map((t) => t - at(0));
  g.textBaseline = 'middle';
  for (const t of marks) {
    g.fillStyle = color('--line');
    g.fillRect(x(t), AXIS - 8, 1, height);
    g.fillStyle = color('--dim');
    const s = label(at(t), marks.length > 1 ? marks[1] - marks[0] : to - from);
    if (x(t) + 4 + g.measureText(s).width < width) g.fillText(s, x(t) + 4, 29);
  }
  g.save();
  g.beginPath();
  g.rect(left, 0, px, height);
  g.clip();
  drawDetail(g, x, from, to);
  const q = search.value.toLowerCase();
  walk(from, to, perPx, (t, a, b) => {
    for (let i = 0; i < nr && first.value + i < rows.value.length; i++) drawRow(g, t, rows.value[first.value + i], a, b, x, TOP + i * ROW, q);
  });
  const r = range.value;
  drawPath(g, x, from, to, nr, perPx, q);
  const bottom = TOP + nr * ROW + 4;
  T!.queues.forEach((_, k) => drawQueue(g, k, x, from, to, bottom + k * QUEUE + 4, perPx));
  if (r) {
    g.fillStyle = color('--shade');
    g.fillRect(left, AXIS - 14, x(r[0]) - left, height);
    g.fillRect(x(r[1]), AXIS - 14, width, height);
    g.strokeStyle = color('--ink');
    g.lineWidth = 1;
    g.strokeRect(x(r[0]) + 0.5, AXIS - 13, Math.max(x(r[1]) - x(r[0]), 1), height - AXIS + 12);
    const s = ns(r[1] - r[0]), w = g.measureText(s).width, mid = Math.min(Math.max((x(r[0]) + x(r[1])) / 2, left + w / 2 + 6), width - w / 2 - 6);
    g.fillStyle = color('--ink');
    g.fillRect(mid - w / 2 - 5, AXIS - 26, w + 10, 17);
    g.fillStyle = color('--paper');
    g.fillText(s, mid - w / 2, AXIS - 17);
  }
  g.restore();
  g.fillStyle = color('--ink');
  g.fillText(cut(g, 'critical path', left - 14), 7, AXIS + PATH_BAR / 2 + 1);
  for (let i = 0; i < nr && first.value + i < rows.value.length; i++) {
    const row = rows.value[first.value + i], y = TOP + i * ROW;
    g.fillStyle = color(row.lanes.some(isLane) ? '--ink' : '--dim');
    if (row.lanes.some((l) => lanes.value?.has(l))) g.fillRect(0, y, 3, BAR);
    g.fillText(cut(g, brief(row.name, 60), left - 14), 7, y + BAR / 2 + 1);
  }
  g.fillStyle = color('--dim');
  T!.queues.forEach((k, i) => {
    g.fillText(cut(g, brief(k.name, 60), left - 14), 7, bottom + i * QUEUE + 10);
    g.fillText(`${k.waiters ? 'waiting' : 'units'}, at most ${count(k.greatest)}`, 7, bottom + i * QUEUE + 24);
  });
}

// ---- what is under the pointer
function under(c: HTMLCanvasElement, e: MouseEvent) {
  const box = c.getBoundingClientRect(), left = LEFT(), [from, to] = view.value, perPx = (to - from) / (width - left);
  const y = e.clientY - box.top - TOP, i = Math.floor(y / ROW), px = e.clientX - box.left, nr = shown();
  return { px, left, perPx, at: from + (px - left) * perPx, y: e.clientY - box.top, path: y < 0 && y >= -PATH, row: y >= 0 && i < nr ? rows.value[first.value + i] : undefined,
    queue: y >= nr * ROW + 4 ? T!.queues[Math.floor((y - nr * ROW - 4) / QUEUE)] : undefined };
}
type Under = ReturnType<typeof under>;
function nameOf(u: Under): string[] {
  if (u.path) return ['critical path', 'the chain of work and waits that makes the run as long as it is'];
  if (!u.row) return u.queue ? [u.queue.name] : [];
  if (u.row.folded) return [u.row.name, 'click: each in a row of its own'];
  const l = T!.lanes[u.row.lanes[0]];
  return [l.name, `process ${l.pid}, thread ${l.tid}`, 'click: only these threads'];
}
const sayState = (s: number, share: string) => [`${share}${T!.states[s].name}`, ...(T!.states[s].where ? [`  ${T!.states[s].where}`] : [])];
function sayTime(t: Tile, from: number, to: number, a: number) {
  return t.leaf ? `from ${exact(at(from))}, ${exact(to - from)}` : `in ${ns(t.width)} at ${ns(at(a))}: what most of it was`;
}
function describe(u: Under): string[] {
  const out: string[] = [];
  if (u.px < u.left) return nameOf(u);
  walk(u.at, u.at + 1, u.perPx, (t, a) => {
    const p = t.tracks[T!.lanes.length], k = find(p, a), [lane, state] = stepAt(p, k);
    if (u.path && state >= 0) out.push('critical path', ...sayState(state, ''), T!.lanes[lane]?.name ?? 'a thread that has no lane here', sayTime(t, p.from[k], p.from[k + 1], a));
    if (u.queue) {
      const r = t.tracks[T!.lanes.length + 1 + T!.queues.indexOf(u.queue)], i = find(r, a);
      out.push(u.queue.name, `${r.a[i] === r.w[i] ? count(r.a[i]) : `${count(r.a[i])} to ${count(r.w[i])}`} ${u.queue.waiters ? 'waiting' : 'units'}`);
    }
    if (!u.row) return;
    const busy = u.row.lanes.filter((l) => { const r = t.tracks[l]; return r.q[find(r, a)] >> 4; });
    if (u.row.folded) out.push(u.row.name, busy.length ? `${busy.length} of them active` : 'none of them active');
    for (const l of u.row.folded ? busy.slice(0, 3) : u.row.lanes) {
      const r = t.tracks[l], i = find(r, a), q = r.q[i];
      out.push(T!.lanes[l].name);
      for (const [s, part] of [[r.a[i], q >> 4], [r.w[i], q & 15]] as const)
        if (s >= 0 && part) out.push(...sayState(s, t.leaf ? '' : `about ${Math.round((part * 100) / 15)} %: `));
      out.push(sayTime(t, r.from[i], r.from[i + 1], a));
      if (lane === l) out.push('on the critical path');
    }
  });
  return out;
}

export function Timeline() {
  const ref = useRef<HTMLCanvasElement>(null), dirty = useRef(0);
  const again = () => (dirty.current ||= requestAnimationFrame(() => { dirty.current = 0; if (ref.current) draw(ref.current); }));
  useSignalEffect(() => {
    void [view.value, range.value, lanes.value, decoded.value, first.value, rows.value, search.value, connection.value];
    again();
  });
  useEffect(() => {
    const c = ref.current!, o = new ResizeObserver(again), dark = matchMedia('(prefers-color-scheme: dark)');
    o.observe(c);
    dark.addEventListener('change', again);
    let from: Under | null = null, moved = false, start: Range = [0, 0];
    const wheel = (e: WheelEvent) => {
      const u = under(c, e);
      if (e.ctrlKey || e.metaKey) zoom(1.0025 ** e.deltaY, u.at, true);
      else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan((e.deltaX || e.deltaY) / 900, true);
      else return;
      e.preventDefault();
    };
    const down = (e: PointerEvent) => {
      if (e.button) return;
      from = under(c, e);
      start = view.value;
      moved = false;
      c.setPointerCapture(e.pointerId);
    };
    const move = (e: PointerEvent) => {
      const u = under(c, e);
      if (!from) {
        const text = describe(u);
        tip.value = text.length ? { x: e.clientX, y: e.clientY, text } : null;
        return;
      }
      moved ||= Math.abs(u.px - from.px) > 3;
      if (!moved || from.px < from.left) return;
      tip.value = null;
      if (from.y < 18) {
        const d = start[1] - start[0], mid = ((u.px - u.left) / (width - u.left)) * whole;
        go([mid - d / 2, mid + d / 2], true);
      } else if (e.shiftKey) {
        const d = (from.px - u.px) * from.perPx;
        go([start[0] + d, start[1] + d], true);
      } else {
        const a = Math.min(Math.max(Math.min(u.at, from.at), 0), whole), b = Math.min(Math.max(u.at, from.at), whole);
        range.value = b > a ? [a, b] : null;
        connection.value = null;
      }
    };
    const up = (e: PointerEvent) => {
      const u = under(c, e);
      if (from && !moved && u.px < u.left) {
        if (u.row?.folded) unfolded.value = true;
        else if (u.row) toggleLane(u.row.lanes[0]);
      }
      else if (from && !moved && from.y < 18) {
        const d = view.value[1] - view.value[0], mid = ((u.px - u.left) / (width - u.left)) * whole;
        go([mid - d / 2, mid + d / 2]);
      } else if (from && !moved) range.value = null;
      else if (from && moved && range.value) range.value = snapped(range.value);
      from = null;
    };
    const twice = (e: MouseEvent) => zoom(0.3, under(c, e).at);
    const out = () => (tip.value = null);
    const l: [string, any][] = [['wheel', wheel], ['pointerdown', down], ['pointermove', move], ['pointerup', up], ['dblclick', twice], ['pointerleave', out]];
    for (const [k, f] of l) c.addEventListener(k, f, { passive: false });
    return () => o.disconnect();
  }, []);
  return <canvas ref={ref} class="lanes" tabIndex={0} role="img" aria-label={`Timeline of ${T!.lanes.length} threads. W and S zoom, A and D move; the table Threads beneath has the same in numbers.`} />;
}
