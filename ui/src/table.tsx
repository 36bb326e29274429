// SPDX-License-Identifier: Apache-2.0
// table.tsx - real tables: sorted by a click on a column's head, filtered by words, never wider than the page.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { brief } from './data';

// [head, what it is sorted by, how it is shown, rank]; a number is shown to the right. Where the page is narrow, the columns of the
// greatest rank go first (a column's rank is its place unless it says another one); a button brings them back.
export type Column<R> = [string, (r: R) => number | string, ((r: R) => ComponentChildren)?, number?];
const FILTER_FROM = 6; // rows: fewer are seen at a glance
const LEAST_COLUMNS = 2;

// Which columns are shown when `less` of them are not: the first one always is.
function fitting<R>(columns: Column<R>[], less: number): Column<R>[] {
  const ranks = columns.map((c, i) => [i ? c[3] ?? i : -1, i]).sort((a, b) => b[0] - a[0]).slice(0, less).map((r) => r[1]);
  return columns.filter((_, i) => !ranks.includes(i));
}
const words = (s: string) => s.toLowerCase().split(/\s+/).filter(Boolean);
// Every word is somewhere in the row's texts or numbers.
function has<R>(columns: Column<R>[], r: R, want: string[]) {
  const text = columns.map((c) => { const shown = c[2]?.(r); return `${c[1](r)} ${typeof shown === 'string' ? shown : ''}`; }).join(' ').toLowerCase();
  return want.every((w) => text.includes(w));
}
const cell = <R,>(c: Column<R>, r: R): ComponentChildren => {
  const shown = c[2] ? c[2](r) : c[1](r);
  return typeof shown === 'string' && brief(shown) !== shown ? <span title={shown}>{brief(shown)}</span> : shown;
};
export function Table<R>({ columns, rows, limit = 15, name, click, chosen }: {
  columns: Column<R>[]; rows: R[]; limit?: number; name: string; click?: (r: R) => void; chosen?: (r: R) => boolean;
}) {
  const [by, setBy] = useState<[string, number] | null>(null), [all, setAll] = useState(false), [filter, setFilter] = useState('');
  const [less, setLess] = useState(0), [wide, setWide] = useState(false), box = useRef<HTMLDivElement>(null), width = useRef(0);
  const shown = wide ? columns : fitting(columns, less), value = by && columns.find((c) => c[0] === by[0])?.[1], want = words(filter);
  const kept = want.length ? rows.filter((r) => has(columns, r, want)) : rows;
  const sorted = value ? [...kept].sort((a, b) => by[1] * (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0)) : kept;
  const isText = (c: Column<R>) => rows.length > 0 && typeof c[1](rows[0]) === 'string';
  useLayoutEffect(() => {
    const b = box.current!;
    if (!wide && b.scrollWidth > b.clientWidth + 1 && columns.length - less > LEAST_COLUMNS) setLess(less + 1);
  });
  useLayoutEffect(() => {
    const o = new ResizeObserver(() => {
      const w = box.current!.clientWidth;
      if (w !== width.current) setLess(0); // it may have become wider: once more from all columns
      width.current = w;
    });
    o.observe(box.current!);
    return () => o.disconnect();
  }, []);
  return (
    <div class="tab">
      {rows.length >= FILTER_FROM && <div class="row filter">
        <input type="search" placeholder="filter" aria-label={`filter ${name}`} value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        {want.length > 0 && <span class="now" role="status">{kept.length} of {rows.length}</span>}
      </div>}
      <div class="scroll" tabIndex={0} role="group" aria-label={name} ref={box}>
        <table class={columns.length < 5 ? 'few' : ''}>
          <thead>
            <tr>
              {shown.map((c) => (
                <th scope="col" class={isText(c) ? '' : 'n'} aria-sort={by?.[0] === c[0] ? (by[1] < 0 ? 'descending' : 'ascending') : undefined}>
                  <button onClick={() => setBy([c[0], by?.[0] === c[0] ? -by[1] : isText(c) ? 1 : -1])}>{c[0]}</button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, all ? undefined : limit).map((r) => (
              <tr class={`${click ? 'can' : ''} ${chosen?.(r) ? 'on' : ''}`} onClick={click && (() => click(r))}>
                {shown.map((c, i) => (
                  <td class={isText(c) ? '' : 'n'}>
                    {click && !i ? <button class="link" aria-pressed={!!chosen?.(r)}>{cell(c, r)}</button> : cell(c, r)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {kept.length > limit && <button onClick={() => setAll(!all)}>{all ? 'fewer' : `all ${kept.length}`}</button>}
      {(less > 0 || wide) && <button onClick={() => setWide(!wide)}>{wide ? 'fewer columns' : `${less} more column${less > 1 ? 's' : ''}`}</button>}
    </div>
  );
}
export const Bar = ({ of }: { of: number }) => (
  <svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width={Math.min(100, of * 100)} height="10" /></svg>
);
