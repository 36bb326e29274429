// SPDX-License-Identifier: Apache-2.0
// source.tsx - the source of the functions with most samples, with each line's share of them.
import { signal } from '@preact/signals';
import { brief, count, doc, pct, type Row } from './data';
import { Absent, Scope } from './panels';
import { Bar } from './table';

export const chosenFunction = signal(0);
const shell = (s: string) => `'${s.replaceAll("'", "'\\''")}'`;
function File({ f, all }: { f: Row; all: number }) {
  let last = 0;
  return (
    <>
      <h3>{f.file || 'no file known'}</h3>
      {f.unreadable && <p class="absent">Source not shown: {f.unreadable}.</p>}
      {f.changed_since && <p class="scope">This file was changed after the recording: lines may have moved.</p>}
      <div class="scroll code" tabIndex={0} role="group" aria-label={`source of ${f.file}`}>
        <table>
          <thead><tr><th scope="col" class="n">all</th><th scope="col" class="n">own</th><th scope="col" class="n">line</th><th scope="col">source</th></tr></thead>
          <tbody>
            {f.lines.flatMap((l: Row) => {
              const gap = last > 0 && l.line > last + 1, share = l.samples / all;
              last = l.line;
              return [gap && <tr><td colSpan={4} class="gap">⋮</td></tr>,
                <tr class={l.samples ? 'hot' : ''}><td class="n">{l.samples ? <>{pct(share)} <Bar of={share} /></> : ''}</td><td class="n">{l.own_samples ? pct(l.own_samples / all) : ''}</td><td class="n now">{l.line || ''}</td><td><code>{l.source ?? (l.line ? '' : 'no line known')}</code></td></tr>];
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}
export function Source() {
  const s = doc.source, fs: Row[] = s?.functions ?? [], f = fs[chosenFunction.value] ?? fs[0];
  if (!s || !f) return <Absent of="source" what="source" />;
  return (
    <>
      <Scope>Samples are of the whole run; for a part of it, make a page with --from and --to.</Scope>
      <div class="row"><label>Function <select value={chosenFunction.value} onChange={(e) => (chosenFunction.value = Number(e.currentTarget.value))}>{fs.map((x, i) => <option value={i}>{`${pct(x.samples / s.samples)} ${brief(x.function, 70)}`}</option>)}</select></label></div>
      <p>{pct(f.samples / s.samples)} of {count(s.samples)} samples are in <code title={f.function}>{brief(f.function)}</code> or in what it calls, {pct(f.own_samples / s.samples)} in its own code. The same in a terminal: <code>longpole annotate {shell(f.function)} {doc.name}</code></p>
      {f.files.map((x: Row) => <File f={x} all={s.samples} />)}
    </>
  );
}
