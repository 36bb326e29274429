// SPDX-License-Identifier: Apache-2.0
// extras.tsx - panels that a page has when there is something for them: network, memory, deadlock.
import { Graph as Dagre, layout } from '@dagrejs/dagre';
import { useMemo } from 'preact/hooks';
import { T, count, doc, ns, pct, type Row } from './data';
import { Plot } from './plot';
import { Scope } from './panels';
import { isLane, lanes, range, selected, whole } from './select';
import { bins } from './tiles';
import { Table } from './table';

// Five steps of one hue, named in the legend: no meaning in colour alone.
const step = (v: number) => (v <= 0 ? 'h0' : v < 0.25 ? 'h1' : v < 0.5 ? 'h2' : v < 0.75 ? 'h3' : 'h4');
const Steps = ({ of }: { of: string }) => (
  <ul class="legend">{['none', 'up to 25 %', 'up to 50 %', 'up to 75 %', 'more'].map((t, i) => <li><svg class="sw" viewBox="0 0 1 1" preserveAspectRatio="none"><rect class={`h${i}`} width="1" height="1" /></svg> {t}</li>)}<li>{of}</li></ul>
);

// What --with brought is of another run.
const Foreign = () => <Scope>Of a recording of its own, not of this trace's time: nothing here follows the selection.</Scope>;
export const isNetwork = () => !!T && /platform/.test(`${doc.trace?.recorded_by} ${doc.trace?.command}`);
// Parts of the simulated computers, by the share of each slot of time in which they are busy; what packets take in queues.
export function Network() {
  const slots = 64, b = bins.value, [from, to] = range.value ?? [0, whole], per = T ? Math.max(1, Math.ceil((T.bins * (to - from)) / whole / slots)) : 1;
  const rows = useMemo(() => {
    if (!b || !T) return [];
    const n = T.bins, first = Math.floor((from * n) / whole);
    return T.lanes.flatMap((l, i) => {
      if (!isLane(i)) return [];
      const s: number[] = [];
      let all = 0;
      for (let k = first; k < n && (k * whole) / n < to; k += per) {
        let v = 0, time = 0;
        for (let j = k; j < Math.min(k + per, n); j++) {
          time += whole / n;
          for (const [state, t] of b[i][j]) if (!T!.states[state].waits) v += t;
        }
        s.push(Math.min(1, v / time));
        all += v;
      }
      return all > 0 ? [{ name: l.name, s, mean: s.reduce((x, y) => x + y, 0) / s.length }] : [];
    }).sort((x, y) => y.mean - x.mean).slice(0, 24);
  }, [b, from, to, lanes.value]);
  const queues: Row[] = (doc.histograms?.queues ?? []).filter((q: Row) => q.histograms.residence.count_units > 0);
  const times = useMemo(() => queues.map((q) => {
    const x: number[] = [], y: number[] = [], d = q.histograms.residence;
    let sum = 0;
    for (const k of d.buckets) {
      sum += k.count_units;
      const at = Math.max(k.high_ns, 1);
      if (!x.length || at > x[x.length - 1]) { x.push(at); y.push(sum / d.count_units); }
    }
    return { q, x, y: [y] };
  }).filter((t) => t.x.length > 1).slice(0, 4), []);
  return (
    <>
      <h3>Who is busy when</h3>
      {rows.length ? <>
        <div class="scroll" tabIndex={0} role="region" aria-label="utilisation over time">
          <svg class="heat" width="100%" height={rows.length * 18} role="img" aria-label="heat map of utilisation; the table beneath has the means">
            {rows.map((r, i) => <>
              <text x="0" y={i * 18 + 13}>{r.name}</text>
              {r.s.map((v, k) => <rect class={step(v)} x={`${18 + (82 * k) / r.s.length}%`} width={`${84 / r.s.length}%`} y={i * 18} height="17"><title>{`${r.name}: ${pct(v)}`}</title></rect>)}
            </>)}
          </svg>
        </div>
        <Steps of={`of a slot of ${ns((per * whole) / T!.bins)} busy`} />
        <Table name="mean utilisation" limit={6} rows={rows} columns={[['part', (r) => r.name], ['busy', (r) => r.mean, (r) => pct(r.mean)]]} />
      </> : <p class="absent">Nothing was busy then.</p>}
      {times.length > 0 && <><h3>How long units stay in queues</h3><Scope>Of the whole run and of all parts, whatever is selected.</Scope>
        <div class="two">{times.map((t) => <Plot label={`distribution of times in ${t.q.queue}`} x={t.x} y={t.y} xLabel={`${t.q.queue}: share that stays at most so long`} xText={ns} yText={(v) => pct(v)} height={190} log
          series={[{ label: 'share', color: '--s0', steps: true }]} />)}</div>{!selected.value && <p class="more">Of the whole run.</p>}</>}
    </>
  );
}

export function Memory() {
  const c: Row = doc.attached.ciat, m: number[][] = c.communication_matrix, most = Math.max(1, ...m.flat()), u: Row = c.usage, n = m.length;
  return (
    <>
      <Foreign />
      <p>{count(c.threads)} threads touched {count(u.touched_pages)} pages, {count(u.touched_bytes)} bytes; {count(u.shared_bytes)} bytes are shared, {count(u.page_shared_bytes)} lie on pages that are. {pct(u.accesses ? u.shared_data_accesses / u.accesses : 0)} of all accesses are to shared bytes.</p>
      <h3>Who reads what others wrote</h3>
      <div class="scroll" tabIndex={0} role="region" aria-label="communication matrix">
        <svg class="heat" width={Math.min(60 + n * 40, 900)} height={40 + n * Math.min(40, 600 / n)} role="img" aria-label="communication matrix; the table beneath has the numbers">
          {m.map((row, i) => { const h = Math.min(40, 600 / n), w = Math.min(40, 800 / n); return <>
            {n <= 64 && <text x="0" y={36 + i * h}>{i}</text>}{n <= 64 && <text x={44 + i * w} y="14">{i}</text>}
            {row.map((v, k) => <rect class={step(v / most)} x={40 + k * w} y={20 + i * h} width={w - 1} height={h - 1}><title>{`thread ${k} read ${count(v)} locations that thread ${i} wrote`}</title></rect>)}</>; })}
        </svg>
      </div>
      <Steps of={`of ${count(most)}; a row wrote, a column read`} />
      <Table name="communication" limit={10} rows={m.flatMap((row, i) => row.flatMap((v, k) => (v ? [{ i, k, v }] : []))).sort((a, b) => b.v - a.v)} columns={[['wrote', (r) => r.i], ['read', (r) => r.k], ['times', (r) => r.v, (r) => count(r.v)]]} />
      {c.total && <><h3>How many threads share</h3><div class="two">
        <Degrees name="sharing degree" of="readers of a value" what="values" values={c.total.sharing_degree_from_1} />
        <Degrees name="invalidation degree" of="readers whose copies a write ended" what="writes" values={c.total.invalidation_degree_from_1} /></div></>}
      {Array.isArray(c.lines) && c.lines.length > 0 && <PageMap lines={c.lines} bytes={c.line_bytes} />}
      {Array.isArray(c.lines) && c.lines.length > 0 && <><h3>Lines that move</h3>
        <Table name="lines" rows={c.lines} columns={[['address', (r: Row) => r.address ?? ''], ['false sharing misses', (r: Row) => r.false_misses ?? 0, (r: Row) => count(r.false_misses ?? 0)], ['true', (r: Row) => r.true_misses ?? 0, (r: Row) => count(r.true_misses ?? 0)],
          ['upgrades', (r: Row) => r.upgrades ?? 0, (r: Row) => count(r.upgrades ?? 0)]]} /></>}
      <p class="more">Of a recording of memory accesses (longpole ciat).</p>
    </>
  );
}

// How often one, two, ... threads.
function Degrees({ name, of, what, values }: { name: string; of: string; what: string; values: number[] }) {
  const all = values.reduce((x, y) => x + y, 0);
  if (!all) return <p class="absent">{name}: none.</p>;
  return <Table name={name} limit={8} rows={values.map((v, i) => ({ i: i + 1, v })).filter((r) => r.v)} columns={[[of, (r) => r.i], [what, (r) => r.v, (r) => count(r.v)], ['share', (r) => r.v / all, (r) => pct(r.v / all)]]} />;
}

// Pages that have moved lines: a row a page, a square a line, shaded by the misses that other threads' writes caused there.
function PageMap({ lines, bytes }: { lines: Row[]; bytes: number }) {
  const page = 4096n, per = 4096 / bytes, of = new Map<bigint, number[]>();
  for (const l of lines) {
    const a = BigInt(l.address), p = a / page;
    if (!of.has(p)) of.set(p, Array(per).fill(0));
    of.get(p)![Number((a % page) / BigInt(bytes))] += (l.false_misses ?? 0) + (l.true_misses ?? 0);
  }
  const pages = [...of].sort((x, y) => (x[0] < y[0] ? -1 : 1)).slice(0, 48), most = Math.max(1, ...pages.flatMap((p) => p[1])), w = Math.max(6, Math.min(12, 700 / per));
  return <><h3>Where on their pages</h3>
    <div class="scroll" tabIndex={0} role="region" aria-label="page map"><svg class="heat" viewBox={`0 0 ${per * w + 150} ${pages.length * 14 + 4}`} style={{ width: '100%', maxWidth: `${per * w + 150}px` }} role="img" aria-label="pages whose lines move; the table beneath has the lines">
      {pages.map(([p, v], i) => <><text x="0" y={i * 14 + 11}>{`0x${(p * page).toString(16)}`}</text>
        {v.map((m, k) => <rect class={step(m / most)} x={146 + k * w} y={i * 14} width={w - 1} height="12"><title>{`0x${(p * page + BigInt(k * bytes)).toString(16)}: ${count(m)} misses`}</title></rect>)}</>)}
    </svg></div><Steps of={`of ${count(most)} misses by sharing; a row a page of 4 KiB, a square a line; of the ${lines.length} lines that move most`} /></>;
}

// Where routers are drawn: on their grid where the network has two dimensions, else none.
function grid(c: Row): [number, number] | null {
  if (!['mesh', 'torus', 'cmesh', 'flatfly'].includes(c.topology)) return null;
  const dims: number[] = c.dims ? c.dims.split('x').map(Number) : Array(Number(c.n)).fill(Number(c.k));
  return dims.length === 1 ? [dims[0], 1] : dims.length === 2 && c.topology !== 'flatfly' ? [dims[0], dims[1]] : null;
}
export function Noc() {
  const r: Row = doc.attached['noc-sim'], links: Row[] = r.links ?? [], g = grid(r.config), most = Math.max(1e-9, ...links.map((l) => l.busy_share));
  const n = r.routers, pitch = g ? Math.max(14, Math.min(56, 860 / Math.max(...g))) : Math.max(3, Math.min(24, 600 / n));
  const at = (router: number): [number, number] => [(router % g![0]) * pitch + pitch, Math.floor(router / g![0]) * pitch + pitch];
  const title = (l: Row) => `router ${l.from_router} to ${l.to_router}: ${pct(l.busy_share)} busy, ${count(l.flits)} flits`;
  // A link is drawn beside the middle between its routers, on the right of its direction; one round the edge is short.
  const line = (l: Row) => {
    const [x, y] = at(l.from_router), [u, v] = at(l.to_router), d = Math.hypot(u - x, v - y) || 1, far = d > 1.5 * pitch, sx = (far ? -1 : 1) * (u - x) / d, sy = (far ? -1 : 1) * (v - y) / d, o = pitch * 0.12;
    const a = pitch * 0.24, b = far ? pitch * 0.48 : pitch * 0.76;
    return { x1: x + sx * a - sy * o, y1: y + sy * a + sx * o, x2: x + sx * b - sy * o, y2: y + sy * b + sx * o };
  };
  const x: number[] = [], y: number[] = [];
  let sum = 0;
  const packets = (r.histogram ?? []).reduce((s: number, b: Row) => s + b.packets, 0);
  for (const b of r.histogram ?? []) { sum += b.packets; x.push(b.to_cycles); y.push(sum / packets); }
  const place = (l: Row) => ({ from: l.from_router, to: l.to_router, busy: l.busy_share, flits: l.flits });
  return (
    <>
      <Foreign />
      <p>{r.config.topology}, {count(r.routers)} routers, {count(r.nodes)} nodes, {r.config.routing} routing, {r.config.traffic} traffic at {r.config.load} flits a node and cycle:
        latency {r.latency_cycles.mean === null ? 'unknown' : `${Number(r.latency_cycles.mean).toFixed(1)}${r.latency_cycles.half_width_95 === null ? '' : ` ±${Number(r.latency_cycles.half_width_95).toFixed(1)}`}`} cycles, {Number(r.accepted_flits_node_cycle).toFixed(3)} accepted{r.saturated ? '; it is saturated' : ''}. Simulated.</p>
      <h3>How busy links are</h3>
      <div class="scroll" tabIndex={0} role="region" aria-label="links">
        {g ? <svg class="heat" width={(g[0] + 1) * pitch} height={(g[1] + 1) * pitch} role="img" aria-label="map of the network's links; the table beneath has the busiest">
          {links.map((l) => <line class={`link ${step(l.busy_share / most)}`} {...line(l)} stroke-width={Math.max(2, pitch * 0.16)}><title>{title(l)}</title></line>)}
          {Array.from({ length: g[0] * g[1] }, (_, i) => { const [u, v] = at(i), s = pitch * 0.2; return <><rect class="router" x={u - s} y={v - s} width={2 * s} height={2 * s} rx="2"><title>{`router ${i}`}</title></rect>{pitch >= 30 && <text class="router" x={u} y={v + 4}>{i}</text>}</>; })}
        </svg> : <svg class="heat" width={n * pitch + 4} height={n * pitch + 4} role="img" aria-label="links as a matrix; the table beneath has the busiest">
          {links.map((l) => <rect class={step(l.busy_share / most)} x={l.to_router * pitch} y={l.from_router * pitch} width={pitch - 0.5} height={pitch - 0.5}><title>{title(l)}</title></rect>)}
        </svg>}
      </div>
      <Steps of={`of the busiest link's ${pct(most)}${g ? '; each direction on its own right side, links round the edge as stubs' : '; rows send, columns receive'}`} />
      <Table name="busiest links" limit={8} rows={links.map(place).sort((p, q) => q.busy - p.busy)} columns={[['from router', (l) => l.from], ['to', (l) => l.to], ['busy', (l) => l.busy, (l) => pct(l.busy)], ['flits', (l) => l.flits, (l) => count(l.flits)]]} />
      {x.length > 1 && <><h3>How long packets take</h3><Plot label="distribution of packet latency" x={x} y={[y]} xLabel="cycles: share of packets that takes at most so long" xText={(v) => count(v)} yText={(v) => pct(v)} height={190} series={[{ label: 'share', color: '--s0', steps: true }]} /></>}
      <p class="more">A simulation of its own (longpole noc sim).</p>
    </>
  );
}

export function Deadlock() {
  const d: Row = doc.attached.deadlock, found: Row[] = d.deadlocks;
  return (
    <>
      <Foreign />
      <p class="finding">{d.finding}</p>
      {found.map((f) => <Circle f={f} />)}
      <p class="more">{count(d.threads)} threads of {count(d.processes)} processes were looked at, {count(d.threads_asleep)} had been asleep for long. A look at running programs (longpole deadlock), beside this trace.</p>
    </>
  );
}
function Circle({ f }: { f: Row }) {
  const laid = useMemo(() => {
    const g = new Dagre({ multigraph: true });
    g.setGraph({ rankdir: 'LR', ranksep: 60, marginx: 10, marginy: 10 });
    g.setDefaultEdgeLabel(() => ({}));
    for (const t of f.threads) g.setNode(`t${t.tid}`, { label: `${t.name} ${t.tid}`, what: 'actor', width: 60 + `${t.name}${t.tid}`.length * 7, height: 30 });
    for (const e of f.edges) {
      g.setNode(`e${e.event}`, { label: e.event, what: 'queue', width: 40 + e.event.length * 7, height: 30 });
      for (const t of [e.waiter_tid, e.producer_tid]) if (!g.hasNode(`t${t}`)) g.setNode(`t${t}`, { label: `thread ${t}`, what: 'actor', width: 120, height: 30 });
      g.setEdge(`t${e.waiter_tid}`, `e${e.event}`, { text: 'waits for' }, 'w');
      g.setEdge(`e${e.event}`, `t${e.producer_tid}`, { text: e.why }, 'o');
    }
    layout(g);
    return g;
  }, [f]);
  const w = laid.graph().width ?? 10, h = laid.graph().height ?? 10;
  return (
    <>
      <h3>{f.finding}</h3>
      <div class="graph" tabIndex={0} role="region" aria-label="resource graph">
        <svg width={w} height={h} role="img" aria-label="resource graph; the table beneath has the same">
          {laid.edges().map((e: any) => <path class="e on-path" marker-end="url(#tip)" d={`M${(laid.edge(e) as any).points.map((p: any) => `${p.x} ${p.y}`).join('L')}`}><title>{(laid.edge(e) as any).text}</title></path>)}
          {laid.nodes().map((v: string) => { const p = laid.node(v) as any; return <g class={`v ${p.what}`} transform={`translate(${p.x} ${p.y})`}><rect x={-p.width / 2} y="-15" width={p.width} height="30" rx={p.what === 'queue' ? 15 : 4} /><text y="4">{p.label}</text></g>; })}
        </svg>
      </div>
      <Table name="who waits for whom" rows={f.threads} columns={[['thread', (t: Row) => `${t.name} ${t.tid}`], ['waits', (t: Row) => t.wait], ['for', (t: Row) => t.waits_for.join(', ')],
        ['in', (t: Row) => (t.frames ?? []).slice(0, 4).map((x: Row) => `${x.function || x.module}${x.file ? ` (${x.file}:${x.line})` : ''}`).join(' < ')]]} />
    </>
  );
}
