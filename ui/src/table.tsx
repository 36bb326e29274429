// SPDX-License-Identifier: Apache-2.0
// table.tsx - real tables, sorted by a click on a column's head.
import { useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

// [head, what it is sorted by, how it is shown]; a number is shown to the right.
export type Column<R> = [string, (r: R) => number | string, ((r: R) => ComponentChildren)?];
export function Table<R>({ columns, rows, limit = 15, name, click, chosen }: {
  columns: Column<R>[]; rows: R[]; limit?: number; name: string; click?: (r: R) => void; chosen?: (r: R) => boolean;
}) {
  const [by, setBy] = useState<[number, number] | null>(null), [all, setAll] = useState(false);
  const value = by && columns[by[0]][1];
  const sorted = value ? [...rows].sort((a, b) => by[1] * (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0)) : rows;
  const isText = columns.map((c) => rows.length > 0 && typeof c[1](rows[0]) === 'string');
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={name}>
      <table class={columns.length < 5 ? 'few' : ''}>
        <thead>
          <tr>
            {columns.map((c, i) => (
              <th scope="col" class={isText[i] ? '' : 'n'} aria-sort={by?.[0] === i ? (by[1] < 0 ? 'descending' : 'ascending') : undefined}>
                <button onClick={() => setBy([i, by?.[0] === i ? -by[1] : isText[i] ? 1 : -1])}>{c[0]}</button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, all ? undefined : limit).map((r) => (
            <tr class={`${click ? 'can' : ''} ${chosen?.(r) ? 'on' : ''}`} onClick={click && (() => click(r))}>
              {columns.map((c, i) => (
                <td class={isText[i] ? '' : 'n'}>
                  {click && !i ? <button class="link" aria-pressed={!!chosen?.(r)}>{c[2] ? c[2](r) : c[1](r)}</button> : c[2] ? c[2](r) : c[1](r)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > limit && <button onClick={() => setAll(!all)}>{all ? 'fewer' : `all ${rows.length}`}</button>}
    </div>
  );
}
export const Bar = ({ of }: { of: number }) => (
  <svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width={Math.min(100, of * 100)} height="10" /></svg>
);
