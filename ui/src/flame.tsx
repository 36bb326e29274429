// SPDX-License-Identifier: Apache-2.0
// flame.tsx - three trees of time: the critical path's, waiting's, the processors'.
import { useMemo, useState } from 'preact/hooks';
import { T, brief, colorName, doc, ns, pct } from './data';
import { pathSums, search, selected, sums } from './select';
import { Absent, Scope } from './panels';
import { Bar, Table } from './table';

type Node = { name: string; ns: number; own: number; kids: Map<string, Node>; up?: Node };
const node = (name: string, up?: Node): Node => ({ name, ns: 0, own: 0, kids: new Map(), up });
const kid = (n: Node, name: string) => n.kids.get(name) ?? (n.kids.set(name, node(name, n)), n.kids.get(name)!);
const add = (n: Node | undefined, v: number) => { if (n) n.own += v; for (; n; n = n.up) n.ns += v; };

function recorded(which: string): Node {
  const f = doc.flame!, root = node('all'), at: Node[] = [root];
  (f[which] as [number, number, number][]).forEach(([up, text, v], i) => {
    if (i) at[i] = kid(at[up], f.texts[text]);
    add(at[i], v);
  });
  return root;
}
// Of the selection: program, role, state. Functions and call paths are known of the whole run only.
function selectedTree(which: string): Node {
  const root = node('selected'), s = sums.value, put = (lane: number, state: number, v: number) => {
    if (lane < 0 || state < 0) return;
    const g = T!.lanes[lane].group.split('/');
    add(kid(kid(kid(root, g[0]), g.slice(1).join('/') || 'main'), T!.states[state].name), v);
  };
  if (which === 'path') for (const [k, v] of s?.path ?? []) put(...T!.steps[k], v);
  else s?.lane.forEach((m, i) => m.forEach((v, k) => T!.states[k].waits === (which === 'wait') && put(i, k, v)));
  return root;
}
// A state's colour, as in the timeline; what is in it has the same one. What a call path waits for is in brackets.
const colours = new Map<string, string>();
T?.states.forEach((s, i) => { if (!colours.has(s.name)) colours.set(s.name, colorName(i).slice(2)); });
const colourOf = (n: Node, above: string) => colours.get(n.name) ?? (/^\[(wait|sleep|blocked)/.test(n.name) ? (n.name.startsWith('[sleep') ? 'k-sleep' : 'k-wait') : above);
// Each name once a call path: how long it was there, or what it called.
type Sum = { name: string; ns: number; own: number };
function inclusive(root: Node): Sum[] {
  const by = new Map<string, Sum>(), open = new Set<string>();
  const visit = (n: Node) => {
    const fresh = !open.has(n.name), s = by.get(n.name) ?? { name: n.name, ns: 0, own: 0 };
    by.set(n.name, s);
    s.own += n.own;
    if (fresh) { s.ns += n.ns; open.add(n.name); }
    n.kids.forEach(visit);
    if (fresh) open.delete(n.name);
  };
  root.kids.forEach(visit);
  return [...by.values()].sort((a, b) => b.ns - a.ns);
}

export function Flame() {
  const [which, setWhich] = useState('path'), [path, setPath] = useState<string[]>([]);
  void pathSums.value;
  const root = useMemo(() => (!doc.flame ? null : selected.value && T ? selectedTree(which) : recorded(which)), [which, selected.value, sums.value]);
  if (!root) return <Absent of="flame" what="flame graph" />;
  let top = root;
  for (const p of path) top = top.kids.get(p) ?? top;
  const out: { n: Node; x: number; w: number; d: number; c: string }[] = [], q = search.value.toLowerCase();
  let depth = 0;
  const walk = (n: Node, x: number, w: number, d: number, above: string) => {
    const c = colourOf(n, above);
    if (w < 0.0012 || d > 40) return;
    out.push({ n, x, w, d, c });
    depth = Math.max(depth, d);
    for (const k of [...n.kids.values()].sort((a, b) => b.ns - a.ns)) {
      const kw = (w * k.ns) / n.ns;
      walk(k, x, kw, d + 1, c);
      x += kw;
    }
  };
  let above = '';
  for (let k: Node | undefined = top; k && !above; k = k.up) above = colourOf(k, '');
  if (top.ns > 0) walk(top, 0, 1, 0, above);
  const to = (n: Node) => { const p: string[] = []; for (let k: Node | undefined = n; k?.up; k = k.up) p.unshift(k.name); setPath(p); };
  return (
    <>
      <div class="row">
        <label>Weighted by <select value={which} onChange={(e) => { setWhich(e.currentTarget.value); setPath([]); }}><option value="path">the critical path</option><option value="wait">waiting</option><option value="cpu">running</option></select></label>
        {path.length > 0 && <button onClick={() => setPath([])}>whole</button>}
      </div>
      <Scope>Of the selection by program, role and state; functions and call paths are known of the whole run only.</Scope>
      {out.length ? (
        <div class="flame" role="group" aria-label={`flame graph by ${which}`}>
          <svg width="100%" height={(depth + 1) * 20} role="img" aria-label={`flame graph weighted by ${which}`}>
            {out.map(({ n, x, w, d, c }) => (
              <svg x={`${x * 100}%`} y={d * 20} width={`${w * 100}%`} height="19" class={`f ${c || 'plain'} ${q && n.name.toLowerCase().includes(q) ? 'hit' : ''} ${q && !n.name.toLowerCase().includes(q) ? 'dim' : ''}`} onClick={() => to(n)}>
                <title>{`${n.name}\n${ns(n.ns)}, ${pct(n.ns / root.ns)} of all`}</title>
                <rect width="100%" height="19" />
                {w > 0.02 && <text x="4" y="14">{brief(n.name)}</text>}
              </svg>
            ))}
          </svg>
        </div>
      ) : <p class="absent">{which === 'wait' ? 'Nobody waited.' : 'Nothing was seen of it.'}</p>}
      {top.ns > 0 && <details><summary>As a table: each with what it calls, and alone</summary><Table name={`flame graph by ${which}, as a table`} rows={inclusive(top)} columns={[['what', (r) => r.name], ['with what it calls', (r) => r.ns, (r) => ns(r.ns)],
        ['share', (r) => r.ns, (r) => <>{pct(r.ns / top.ns)} <Bar of={r.ns / top.ns} /></>], ['alone', (r) => r.own, (r) => ns(r.own)]]} /></details>}
      {doc.flame!.cut > 0 && <p class="more">Some deep call paths are cut: there were too many.</p>}
    </>
  );
}
