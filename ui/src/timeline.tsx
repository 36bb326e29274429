// SPDX-License-Identifier: Apache-2.0
// timeline.tsx - lanes, the critical path through them, queues beneath; on one canvas.
import { signal, useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { T, color, colorName, count, exact, ns } from './data';
import { decoded, find, spanNs, walk, type Tile } from './tiles';
import { connection, isLane, lanes, range, search, toggleLane, view, whole, type Range } from './select';

const ROW = 22, BAR = 15, TOP = 46, QUEUE = 34, LEFT = () => Math.min(230, Math.max(110, width * 0.2));
let width = 900;
export const tip = signal<{ x: number; y: number; text: string[] } | null>(null);
export const first = signal(0); // lane at the top
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
export const scrollLanes = (by: number) => (first.value = Math.min(Math.max(first.value + by, 0), Math.max(T!.lanes.length - shown(), 0)));
export const shown = () => Math.min(T!.lanes.length, Math.max(6, Math.floor((innerHeight * 0.62 - TOP) / ROW)));

// ---- drawing
const patterns = new Map<string, CanvasPattern>();
export const forgetPatterns = () => patterns.clear();
function hatch(g: CanvasRenderingContext2D, name: string): CanvasPattern {
  let p = patterns.get(name);
  if (!p) {
    const c = document.createElement('canvas'), k = c.getContext('2d')!;
    c.width = c.height = 6;
    k.fillStyle = color('--hatch');
    k.fillRect(0, 0, 6, 6);
    k.strokeStyle = color(name);
    k.lineWidth = 1.7;
    for (const d of [-6, 0, 6]) {
      k.moveTo(d - 1, name.endsWith('runnable') ? -1 : 7);
      k.lineTo(d + 7, name.endsWith('runnable') ? 7 : -1);
    }
    k.stroke();
    patterns.set(name, (p = g.createPattern(c, 'repeat')!));
  }
  return p;
}
export const swatch = (i: number) => `sw ${T!.states[i].waits ? 'wait' : ''} ${colorName(i).slice(2)}`;

function ticks(a: number, b: number, px: number): number[] {
  const raw = (b - a) / Math.max(px / 110, 1), p = 10 ** Math.floor(Math.log10(raw)), m = raw / p;
  const d = Math.max(p * (m > 5 ? 10 : m > 2 ? 5 : m > 1 ? 2 : 1), 1), r: number[] = [];
  for (let t = Math.ceil(a / d) * d; t < b; t += d) r.push(t);
  return r;
}
// Times along the axis, all in one unit, with as many digits as tell them apart.
function label(t: number, d: number) {
  const [u, s] = whole >= 1e9 ? ['s', 1e9] : whole >= 1e6 ? ['ms', 1e6] : whole >= 1e3 ? ['µs', 1e3] : ['ns', 1];
  return `${(t / (s as number)).toFixed(Math.max(0, Math.ceil(Math.log10((s as number) / d) - 1e-9)))} ${u}`;
}
const cut = (g: CanvasRenderingContext2D, s: string, w: number) => {
  if (g.measureText(s).width <= w) return s;
  let n = s.length;
  while (n > 1 && g.measureText(`…${s.slice(-n)}`).width > w) n--;
  return `…${s.slice(-n)}`;
};

function drawLane(g: CanvasRenderingContext2D, t: Tile, lane: number, from: number, to: number, x: (t: number) => number, y: number, find_: string) {
  const r = t.tracks[lane], own = isLane(lane) ? 1 : 0.3, match = (s: number) => s < 0 || !find_ || T!.states[s].name.toLowerCase().includes(find_);
  for (let i = find(r, from); i < r.a.length && r.from[i] < to; i++) {
    const q = r.q[i];
    if (!q) continue;
    const x0 = x(Math.max(r.from[i], from)), w = Math.max(x(Math.min(r.from[i + 1], to)) - x0, 0.4), hw = (BAR * (q & 15)) / 15, ha = (BAR * (q >> 4)) / 15;
    if (ha) {
      g.globalAlpha = match(r.a[i]) ? own : 0.12;
      g.fillStyle = color(colorName(r.a[i]));
      g.fillRect(x0, y + BAR - ha, w, ha);
    }
    if (hw) {
      g.globalAlpha = match(r.w[i]) ? own : 0.12;
      g.fillStyle = hatch(g, colorName(r.w[i]));
      g.fillRect(x0, y + BAR - ha - hw, w, hw);
    }
  }
  g.globalAlpha = 1;
}

function drawPath(g: CanvasRenderingContext2D, x: (t: number) => number, from: number, to: number, top: number, nr: number, perPx: number) {
  const p = new Path2D(), n = T!.lanes.length;
  let last = NaN, open = false, turns = 0;
  walk(from, to, perPx, (t, a, b) => {
    const r = t.tracks[n];
    for (let i = find(r, a); i < r.a.length && r.from[i] < b; i++) {
      if (r.a[i] < 0) { open = false; continue; }
      const lane = T!.steps[r.a[i]][0], row = Math.min(Math.max(lane - first.value, -0.6), nr - 0.4);
      if (lane < 0) { open = false; continue; }
      const y = top + row * ROW + BAR + 3, x0 = x(Math.max(r.from[i], a)), x1 = x(Math.min(r.from[i + 1], b));
      if (!open) p.moveTo(x0, y);
      else if (y !== last) { p.lineTo(x0, y); turns++; }
      p.lineTo(x1, y);
      last = y;
      open = true;
    }
  });
  g.lineJoin = 'round';
  const dense = turns * 9 > width - LEFT(); // a turn every few pixels: thinner and pale, that lanes stay to be seen
  g.globalAlpha = dense ? Math.max(0.3, Math.min(0.8, (width - LEFT()) / (turns * 4))) : 1;
  for (const [c, w] of [['--paper', dense ? 0.01 : 5], ['--path', dense ? 1 : 2.2]] as const) {
    g.strokeStyle = color(c);
    g.lineWidth = w;
    g.stroke(p);
  }
  g.globalAlpha = 1;
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
    if (b > from && a < to) g.fillRect(x(a), TOP - 6, Math.max(x(b) - x(a), 1), 3);
  }
}

function overview(g: CanvasRenderingContext2D, left: number) {
  const px = width - left, x = (t: number) => left + (t / whole) * px;
  walk(0, whole, whole / px, (t, a, b) => {
    const r = t.tracks[T!.lanes.length];
    for (let i = find(r, a); i < r.a.length && r.from[i] < b; i++) {
      const s = r.a[i] < 0 ? -1 : T!.steps[r.a[i]][1];
      if (s < 0) continue;
      g.fillStyle = T!.states[s].waits ? hatch(g, colorName(s)) : color(colorName(s));
      g.fillRect(x(r.from[i]), 3, Math.max(x(r.from[i + 1]) - x(r.from[i]), 0.4), 12);
    }
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
  const marks = ticks(from, to, px);
  g.textBaseline = 'middle';
  for (const t of marks) {
    g.fillStyle = color('--line');
    g.fillRect(x(t), TOP - 8, 1, height);
    g.fillStyle = color('--dim');
    const s = label(t, marks.length > 1 ? marks[1] - marks[0] : to - from);
    if (x(t) + 4 + g.measureText(s).width < width) g.fillText(s, x(t) + 4, 29);
  }
  g.save();
  g.beginPath();
  g.rect(left, 0, px, height);
  g.clip();
  drawDetail(g, x, from, to);
  const q = search.value.toLowerCase();
  walk(from, to, perPx, (t, a, b) => {
    for (let i = 0; i < nr; i++) if (first.value + i < T!.lanes.length) drawLane(g, t, first.value + i, a, b, x, TOP + i * ROW, q);
  });
  const r = range.value;
  drawPath(g, x, from, to, TOP, nr, perPx);
  const bottom = TOP + nr * ROW + 4;
  T!.queues.forEach((_, k) => drawQueue(g, k, x, from, to, bottom + k * QUEUE + 4, perPx));
  if (r) {
    g.fillStyle = color('--shade');
    g.fillRect(left, TOP - 14, x(r[0]) - left, height);
    g.fillRect(x(r[1]), TOP - 14, width, height);
    g.strokeStyle = color('--ink');
    g.lineWidth = 1;
    g.strokeRect(x(r[0]) + 0.5, TOP - 13, Math.max(x(r[1]) - x(r[0]), 1), height - TOP + 12);
    const s = ns(r[1] - r[0]), w = g.measureText(s).width, at = Math.min(Math.max((x(r[0]) + x(r[1])) / 2, left + w / 2 + 6), width - w / 2 - 6);
    g.fillStyle = color('--ink');
    g.fillRect(at - w / 2 - 5, TOP - 26, w + 10, 17);
    g.fillStyle = color('--paper');
    g.fillText(s, at - w / 2, TOP - 17);
  }
  g.restore();
  for (let i = 0; i < nr && first.value + i < T!.lanes.length; i++) {
    g.fillStyle = color(isLane(first.value + i) ? '--ink' : '--dim');
    if (lanes.value?.has(first.value + i)) g.fillRect(0, TOP + i * ROW, 3, BAR);
    g.fillText(cut(g, T!.lanes[first.value + i].name, left - 14), 7, TOP + i * ROW + BAR / 2 + 1);
  }
  g.fillStyle = color('--dim');
  T!.queues.forEach((k, i) => {
    g.fillText(cut(g, k.name, left - 14), 7, bottom + i * QUEUE + 10);
    g.fillText(`${k.waiters ? 'waiting' : 'units'}, at most ${count(k.greatest)}`, 7, bottom + i * QUEUE + 24);
  });
}

// ---- what is under the pointer
function under(c: HTMLCanvasElement, e: MouseEvent) {
  const box = c.getBoundingClientRect(), left = LEFT(), [from, to] = view.value, perPx = (to - from) / (width - left);
  const y = e.clientY - box.top - TOP, row = Math.floor(y / ROW), px = e.clientX - box.left, nr = shown();
  return { px, left, perPx, at: from + (px - left) * perPx, y: e.clientY - box.top, lane: y >= 0 && row < nr ? first.value + row : -1,
    queue: Math.floor((y - nr * ROW - 4) / QUEUE) };
}
function describe(u: ReturnType<typeof under>): string[] {
  const out: string[] = [];
  const isQueue = u.lane < 0 && u.queue >= 0 && u.queue < T!.queues.length;
  if (u.px < u.left) return u.lane >= 0 && T!.lanes[u.lane] ? [T!.lanes[u.lane].name, `process ${T!.lanes[u.lane].pid}, thread ${T!.lanes[u.lane].tid}`, 'click: only these threads'] : [];
  if (u.lane < 0 && !isQueue) return [];
  walk(u.at, u.at + 1, u.perPx, (t, a) => {
    const r = t.tracks[isQueue ? T!.lanes.length + 1 + u.queue : u.lane], i = find(r, a), q = r.q[i];
    if (isQueue) {
      out.push(T!.queues[u.queue].name, `${r.a[i] === r.w[i] ? count(r.a[i]) : `${count(r.a[i])} to ${count(r.w[i])}`} ${T!.queues[u.queue].waiters ? 'waiting' : 'units'}`);
      return;
    }
    out.push(T!.lanes[u.lane].name);
    for (const [s, part] of [[r.a[i], q >> 4], [r.w[i], q & 15]] as const)
      if (s >= 0 && part) {
        const st = T!.states[s];
        out.push(`${t.leaf ? '' : `about ${Math.round((part * 100) / 15)} %: `}${st.name}`);
        if (st.where) out.push(`  ${st.where}`);
      }
    if (t.leaf) out.push(`from ${exact(r.from[i])}, ${exact(r.from[i + 1] - r.from[i])}`);
    else out.push(`in ${ns(t.width)} at ${ns(a)}: what most of it was`);
    const p = t.tracks[T!.lanes.length], k = find(p, a);
    if (p.a[k] >= 0 && T!.steps[p.a[k]][0] === u.lane) out.push('on the critical path');
  });
  return out;
}

export function Timeline() {
  const ref = useRef<HTMLCanvasElement>(null), dirty = useRef(0);
  const again = () => (dirty.current ||= requestAnimationFrame(() => { dirty.current = 0; if (ref.current) draw(ref.current); }));
  useSignalEffect(() => {
    void [view.value, range.value, lanes.value, decoded.value, first.value, search.value, connection.value];
    again();
  });
  useEffect(() => {
    const c = ref.current!, o = new ResizeObserver(again), dark = matchMedia('(prefers-color-scheme: dark)');
    o.observe(c);
    dark.addEventListener('change', again);
    let from: ReturnType<typeof under> | null = null, moved = false, start: Range = [0, 0];
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
        const d = start[1] - start[0], at = ((u.px - u.left) / (width - u.left)) * whole;
        go([at - d / 2, at + d / 2], true);
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
      if (from && !moved && u.px < u.left && u.lane >= 0 && u.lane < T!.lanes.length) toggleLane(u.lane);
      else if (from && !moved && from.y < 18) {
        const d = view.value[1] - view.value[0], at = ((u.px - u.left) / (width - u.left)) * whole;
        go([at - d / 2, at + d / 2]);
      } else if (from && !moved) range.value = null;
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
