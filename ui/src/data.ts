// SPDX-License-Identifier: Apache-2.0
// data.ts - the document as doc/page.md describes it, and numbers for people.
export type State = { name: string; where: string; kind: string; waits: boolean; path_ns: number; total_ns: number; queue: string; topic: number };
export type Lane = { name: string; group: string; pid: number; tid: number; active_ns: number; wait_ns: number; path_ns: number; begin_ns: number; end_ns: number };
export type Timeline = {
  start_ns: number; end_ns: number; path_ns: number; bucket_log2: number; buckets: number; whole: boolean; whole_levels: number;
  lanes: Lane[]; lanes_left_out: number; states: State[]; steps: [number, number][];
  queues: { name: string; type: string; waiters: boolean; greatest: number }[];
  bins: number; sums: string; tiles: Record<string, string>; leaves: string[];
};
// Parts that other commands print with --json keep their keys; only what is drawn is named here.
export type Row = Record<string, any>;
export type Doc = {
  tool: string; name: string; absent: Record<string, string>; trace?: Row; diagnostics?: Row[]; answer?: Row; whatif?: Row;
  loops?: Row; locks?: Row; queues?: Row; histograms?: Row; graph?: Row; states_graph?: Row; connections?: Row; flame?: Row; source?: Row;
  timeline?: Timeline; attached: Record<string, Row>;
};
export const doc: Doc = JSON.parse(document.getElementById('data')!.textContent!);
export const T = doc.timeline;

export function ns(v: number): string {
  const a = Math.abs(v);
  for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]] as const)
    if (a >= size) return `${(v / size).toPrecision(a / size >= 1000 ? 4 : 3).replace(/e.*/, '')} ${unit}`;
  return `${Math.round(v)} ns`;
}
export const exact = (v: number) => `${Math.round(v).toLocaleString('en')} ns`;
export const count = (v: number) => v.toLocaleString('en');
export const pct = (v: number) => (v > 0 && v < 0.001 ? '<0.1 %' : `${(v * 100).toFixed(v < 0.1 ? 1 : 0)} %`);
export const times = (v: number) => `${v.toFixed(2)}×`;

// The page counts from the timeline's start inside; people see the recording's clock, as --from and --to have it.
export const at = (since: number) => since + (T?.start_ns ?? 0);
// A long name in little room: what its templates are made of goes first, from the inside; then its middle.
export function brief(name: string, most = 90): string {
  let s = name;
  for (let had = ''; s.length > most && s !== had;) {
    had = s;
    s = s.replace(/<(?!…>)[^<>]*>/g, '<…>').replace(/<(…(, )?)+>/g, '<…>');
  }
  for (let had = ''; s.length > most && s !== had;) {
    had = s;
    s = s.replace(/\((?!…\))[^()]{12,}\)(?! *:)/g, '(…)');
  }
  return s.length <= most ? s : `${s.slice(0, Math.ceil(most / 2))}…${s.slice(1 - Math.floor(most / 2))}`;
}

// A state's colour: the path's first seven states have one each, the others that of their kind; all waits are of one family.
export const PALETTE = 7;
export const colorName = (i: number) => {
  const s = T!.states[i];
  return s.topic < PALETTE && !s.waits ? `--s${s.topic}` : `--k-${s.kind}`;
};
let css: CSSStyleDeclaration;
const seen = new Map<string, string>();
export const color = (name: string) => {
  css ??= getComputedStyle(document.documentElement);
  let c = seen.get(name);
  if (!c) seen.set(name, (c = css.getPropertyValue(name).trim() || '#888'));
  return c;
};
export const forgetColors = () => seen.clear();
