// SPDX-License-Identifier: Apache-2.0
// graph.tsx - who waits on whom, and the states' transitions; laid out by dagre when they come into sight.
import { Graph as Dagre, layout } from '@dagrejs/dagre';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { T, count, doc, ns, pct, type Row } from './data';
import { lanes, search, selected, stateSums, sums, waitsOf } from './select';
import { Absent, Scope } from './panels';
import { Table } from './table';

const short = (s: string, n = 34) => (s.length > n ? `${s.slice(0, n / 2 - 1)}…${s.slice(-n / 2)}` : s);
const title = (n: Row) => (n.kind === 'transition' ? (n.from_state ? `${n.from_state} → ${n.to_state}` : `begins: ${n.to_state}`) : n.name);
const lines = (n: Row) => (n.kind === 'transition' ? [short(n.from_state || 'begins'), `→ ${short(n.to_state)}`] : [short(n.name)]);
// A lane's nodes: those of its name; where its group is drawn as one, those of the group.
function nodesOf(g: Row, lane: number): Row[] {
  const { name, group } = T!.lanes[lane], own = g.nodes.filter((n: Row) => n.kind !== 'queue' && n.name === name);
  return own.length ? own : g.nodes.filter((n: Row) => n.kind !== 'queue' && (n.name === group || n.name.startsWith(`${group} `)));
}
// Actors of the selected threads, and what they use.
function chosen(g: Row): Set<number> | null {
  const l = lanes.value;
  if (!l || !T) return null;
  const s = new Set<number>([...l].flatMap((i) => nodesOf(g, i).map((n) => n.node)));
  for (const e of g.edges) for (const [a, b] of [[e.from, e.to], [e.to, e.from]]) if (s.has(a) && g.nodes[b]?.kind === 'queue') s.add(b);
  return s;
}
// What the page knows of a node within the selection: an actor's time on the path, the waits for a queue.
function inSelection(g: Row): Map<number, string> | null {
  const s = sums.value, said = new Map<number, string>(), own = new Map<number, number>(), waited = waitsOf(stateSums.value);
  if (!selected.value || !s || g.view !== 'interaction') return null;
  for (const [step, v] of s.path) if (T!.steps[step][0] >= 0) for (const n of nodesOf(g, T!.steps[step][0])) own.set(n.node, (own.get(n.node) ?? 0) + v);
  for (const n of g.nodes) if (n.kind === 'actor') said.set(n.node, `selected: ${pct((own.get(n.node) ?? 0) / s.ns)} of the path`);
    else if (waited.has(n.name)) said.set(n.node, `selected: waited ${ns(waited.get(n.name)!)}`);
  return said;
}
const LEAST = 0.002; // of the path: what it passes for less is left out when only its way is asked for
type Part = 'nodes' | 'path';
// All that is drawn, lines too, which the layout's own size leaves out: x, y, w, h.
function frame(d: Dagre, nodes: Row[], edges: Row[]) {
  const boxes = nodes.map((n) => d.node(`${n.node}`) as any), ends = edges.flatMap((e, i) => (d.edge({ v: `${e.from}`, w: `${e.to}`, name: `${i}` })?.points ?? []) as any[]);
  const all = (k: 'x' | 'y', size: string) => [...boxes.flatMap((b) => [b[k] - b[size] / 2, b[k] + b[size] / 2]), ...ends.map((p) => p[k])];
  const xs = all('x', 'width'), ys = all('y', 'height'), x = Math.min(...xs) - 12, y = Math.min(...ys) - 12;
  return nodes.length ? { x, y, w: Math.max(...xs) + 12 - x, h: Math.max(...ys) + 12 - y } : { x: 0, y: 0, w: 100, h: 40 };
}
const LEAST_SCALE = 0.62; // smaller, its texts are not read: then it is moved in its frame
function Drawing({ g, part }: { g: Row; part: Part }) {
  const laid = useMemo(() => {
    const d = new Dagre({ multigraph: true });
    d.setGraph({ rankdir: 'LR', nodesep: 14, ranksep: 46, marginx: 12, marginy: 12 });
    d.setDefaultEdgeLabel(() => ({}));
    const least = g.elapsed_ns * LEAST, on = (e: Row) => part === 'nodes' || e.path_ns >= least;
    const nodes: Row[] = g.nodes.filter((n: Row) => on(n) || g.edges.some((e: Row) => on(e) && (e.from === n.node || e.to === n.node)));
    const ids = new Set(nodes.map((n) => n.node)), edges: Row[] = g.edges.filter((e: Row) => ids.has(e.from) && ids.has(e.to) && on(e));
    for (const n of nodes) d.setNode(`${n.node}`, { width: Math.max(150, 30 + Math.max(...lines(n).map((t) => t.length)) * 6.7), height: 24 + 15 * lines(n).length });
    edges.forEach((e, i) => d.setEdge(`${e.from}`, `${e.to}`, {}, `${i}`));
    layout(d);
    return { nodes, edges, d, ...frame(d, nodes, edges) };
  }, [g, part]);
  const { nodes, edges, d } = laid, on = chosen(g), here = inSelection(g), most = Math.max(1, ...edges.map((e) => e.path_ns)), q = search.value.toLowerCase();
  const dim = (n: Row) => (on && !on.has(n.node)) || (q && !title(n).toLowerCase().includes(q));
  return (
    <div class="graph" tabIndex={0} role="region" aria-label="graph; the table beneath has the same">
      <svg style={{ width: '100%', maxWidth: `${laid.w}px`, minWidth: `${laid.w * LEAST_SCALE}px` }} viewBox={`${laid.x} ${laid.y} ${laid.w} ${laid.h}`} role="img" aria-label="graph of who waits on whom">
        {edges.map((e, i) => {
          const p = d.edge({ v: `${e.from}`, w: `${e.to}`, name: `${i}` })?.points;
          return p && (
            <path class={`e ${e.path_ns > 0 ? 'on-path' : ''} ${dim(g.nodes[e.from]) || dim(g.nodes[e.to]) ? 'dim' : ''}`} d={`M${p.map((x: any) => `${x.x.toFixed(1)} ${x.y.toFixed(1)}`).join('L')}`}
              stroke-width={1 + (5 * e.path_ns) / most} marker-end="url(#tip)" marker-start={e.kind === 'put_and_take' ? 'url(#tip)' : undefined}>
              <title>{`${e.name}: ${count(e.times)} times${e.waiting_ns ? `, waited ${ns(e.waiting_ns)}` : ''}${e.path_ns ? `, ${ns(e.path_ns)} of the path` : ''}`}</title>
            </path>
          );
        })}
        {nodes.map((n) => {
          const p = d.node(`${n.node}`) as any, s = n.path_ns / g.elapsed_ns;
          return (
            <g class={`v ${n.kind} ${n.path_ns > 0 ? 'on-path' : ''} ${dim(n) ? 'dim' : ''}`} transform={`translate(${p.x} ${p.y})`}>
              <title>{`${title(n)}: ${n.path_ns ? `${ns(n.path_ns)} of the path, ` : ''}${count(n.times)} times${n.waiting_ns ? `, waited ${ns(n.waiting_ns)}` : ''}`}</title>
              <rect x={-p.width / 2} y={-p.height / 2} width={p.width} height={p.height} rx={n.kind === 'queue' ? 19 : 4} />
              {lines(n).map((t, i) => <text y={16 + 14 * i - p.height / 2}>{t}</text>)}
              <text y={p.height / 2 - 7} class="small">{here?.get(n.node) ?? (n.path_ns ? `${pct(s)} of the path` : n.waiting_ns ? `waited ${ns(n.waiting_ns)}` : `${count(n.times)}×`)}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
export function GraphPanel() {
  const [which, setWhich] = useState<'graph' | 'states_graph'>('graph'), [seen, setSeen] = useState(false), ref = useRef<HTMLDivElement>(null), g = doc[which];
  const [part, setPart] = useState<Part>('nodes');
  useEffect(() => {
    const o = new IntersectionObserver((e) => e.some((x) => x.isIntersecting) && setSeen(true), { rootMargin: '300px' });
    o.observe(ref.current!);
    return () => o.disconnect();
  }, []);
  return (
    <div ref={ref}>
      <div class="row">
        <label>Show <select value={which} onChange={(e) => { setWhich(e.currentTarget.value as any); setPart(e.currentTarget.value === 'graph' ? 'nodes' : 'path'); }}><option value="graph">threads and queues: who waits on whom</option><option value="states_graph">states and transitions</option></select></label>
        <label><input type="checkbox" checked={part === 'path'} onChange={(e) => setPart(e.currentTarget.checked ? 'path' : 'nodes')} /> only where the critical path is for 0.2 % and more</label>
      </div>
      {selected.value && <Scope>{`Numbers ${which === 'graph' ? 'that do not say “selected”, lines and the table ' : ''}are of the whole run; what the selected threads have no part in is pale.`}</Scope>}
      {!g ? <Absent of={which} what="graph" /> : seen && <>
        <Drawing g={g} part={part} />
        {g.left_out.nodes > 0 && <p class="more">{count(g.left_out.nodes)} nodes with {ns(g.left_out.time_ns)} are left out; <code>longpole graph</code> draws more.</p>}
        <details><summary>As a table</summary><Table name="edges of the graph" rows={g.edges} columns={[['from', (e: Row) => title(g.nodes[e.from])], ['to', (e: Row) => g.nodes[e.to] ? title(g.nodes[e.to]) : ''], ['what', (e: Row) => e.name],
          ['of the path', (e: Row) => e.path_ns, (e: Row) => ns(e.path_ns)], ['times', (e: Row) => e.times, (e: Row) => count(e.times)], ['waited', (e: Row) => e.waiting_ns, (e: Row) => ns(e.waiting_ns)]]} /></details>
      </>}
    </div>
  );
}
