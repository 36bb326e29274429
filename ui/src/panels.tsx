// SPDX-License-Identifier: Apache-2.0
// panels.tsx - answer, threads, what-if, locks, queues, connections, data quality.
import { useMemo, useState } from 'preact/hooks';
import { T, at, brief, count, doc, ns, pct, times, type Row } from './data';
import { Plot } from './plot';
import { chooseConnection, connection, lanes, pathSums, range, search, selected, stateSums, sums, toggleLane, waitsOf } from './select';
import { Bar, Table } from './table';
import { swatch } from './timeline';

const has = (text: string) => !search.value || text.toLowerCase().includes(search.value.toLowerCase());
export const Absent = ({ of, what }: { of: string; what: string }) => <p class="absent">No {what}: {doc.absent[of] ?? 'this trace has nothing of it'}.</p>;
const within = () => (sums.value?.within ? `, within ${ns(sums.value.within)}` : '');
export const Scope = ({ children }: { children: string }) => (selected.value ? <p class="scope">{children}</p> : null);
const total = (m: Map<number, number>) => [...m.values()].reduce((a, b) => a + b, 0);

export function Selection({ of }: { of: string }) {
  const path = sums.value?.path;
  if (!selected.value || !path) return null;
  const all = total(path), state = (r: [number, number]) => T!.steps[r[0]][1], who = (r: [number, number]) => T!.lanes[T!.steps[r[0]][0]]?.name ?? 'others';
  const rows = [...path].filter((r) => state(r) >= 0).sort((a, b) => b[1] - a[1]);
  return (
    <div class="box">
      <h3>In the selection</h3>
      <p>The critical path is {ns(all)} long there{within()}{lanes.value ? `, in ${lanes.value.size} thread${lanes.value.size > 1 ? 's' : ''}` : ''}.{connection.value !== null ? ' A connection is selected as its time and the threads that served it, whatever else they did then.' : ''}{range.value && <> The same in a terminal: <code>longpole report --from={at(range.value[0]).toFixed(0)}ns --to={at(range.value[1]).toFixed(0)}ns {doc.name}</code></>}</p>
      {rows.length > 0 && <Table name={`the path in the selection, ${of}`} limit={8} rows={rows} columns={[
        ['state', (r) => T!.states[state(r)].name, (r) => <span title={T!.states[state(r)].name}><i class={swatch(state(r))} /> {brief(T!.states[state(r)].name)}</span>], ['who', who],
        ['where', (r) => T!.states[state(r)].where], ['on the path', (r) => r[1], (r) => ns(r[1])], ['share', (r) => r[1], (r) => <>{pct(r[1] / all)} <Bar of={r[1] / all} /></>]]} />}
    </div>
  );
}

export function Answer() {
  const a = doc.answer;
  if (!a) return <p class="finding">There is no answer for this trace: {doc.absent.answer}.</p>;
  const by = new Map<string, Row[]>();
  for (const o of a.opportunities) by.set(o.state, [...(by.get(o.state) ?? []), o]);
  const fixes = [...by.values()].filter((o) => has(o[0].state));
  const predicted = (o: Row) => doc.whatif?.states.find((s: Row) => s.state === o.state && s.kind === o.kind)?.predicted.find((r: Row) => r.reduction_percent === o.reduction_percent);
  const gain = (o: Row | undefined) => {
    const r = o && predicted(o);
    if (!o) return '';
    return r && r.speedup_high - r.speedup_low >= 0.005 ? <>{times(o.predicted_speedup)} <small>{r.speedup_low.toFixed(2)}–{r.speedup_high.toFixed(2)}</small></> : times(o.predicted_speedup);
  };
  return (
    <>
      <p class="finding">{a.pole ?? a.finding} <span class="sure">({a.certainty})</span></p>
      <Scope>The sentence above, the predicted gains and what to be careful about are of the whole run; the path is of the selection.</Scope>
      <Selection of="answer" />
      <h3>What a fix would buy</h3>
      <Table name="predicted gains" limit={6} rows={fixes} columns={[
        ['if it took less', (o) => o[0].state], ['of the path', (o) => o[0].share, (o) => <>{pct(o[0].share)} <Bar of={o[0].share} /></>],
        ...[10, 25, 50, 100].map((p) => [p === 100 ? 'gone' : `−${p} %`, (o: Row[]) => o.find((x) => x.reduction_percent === p)?.predicted_speedup ?? 0,
          (o: Row[]) => gain(o.find((x) => x.reduction_percent === p)), { 10: 9, 25: 8, 50: 1, 100: 2 }[p]] as any),
        ['helps until', (o) => o[0].helps_until_percent, (o) => (o[0].helps_until_percent >= 100 ? 'all of it' : `${o[0].helps_until_exact ? '' : 'at least '}${o[0].helps_until_percent < 1 ? '<1' : `−${o[0].helps_until_percent.toFixed(0)}`} %`)],
        ['then it is', (o) => o[0].next_bottleneck]]} />
      <p class="more">Predicted, as longpole whatif does, from replays of the run or the longest path with less of that state. Small: the interval{doc.whatif?.replayed ? ` (replay repeats the run itself within ${pct(Math.abs(doc.whatif.replay_error))})` : ''}.</p>
      {a.caveats.length > 0 && <><h3>What to be careful about</h3><ul>{a.caveats.map((c: string) => <li>{c}</li>)}</ul></>}
      {!(selected.value && sums.value) && <><h3>The critical path, {ns(a.elapsed_ns)}</h3>
      <Table name="the critical path" rows={a.path.filter((r: Row) => has(r.state + r.actor + r.where))} columns={[
        ['state', (r: Row) => r.state], ['who', (r: Row) => r.actor], ['where', (r: Row) => r.where], ['time', (r: Row) => r.path_ns, (r: Row) => ns(r.path_ns)],
        ['share', (r: Row) => r.share, (r: Row) => <>{pct(r.share)} <Bar of={r.share} /></>], ['waiting', (r: Row) => r.waiting_share, (r: Row) => pct(r.waiting_share)],
        ['visits', (r: Row) => r.visits, (r: Row) => count(r.visits)]]} /></>}
    </>
  );
}

export function Threads() {
  const s = sums.value, on = T!.lanes.map((l, i) => {
    const m = s?.lane[i] ?? new Map<number, number>();
    let active = 0, wait = 0, path = 0;
    for (const [k, v] of m) if (T!.states[k].waits) wait += v; else active += v;
    for (const [k, v] of s?.path ?? []) if (T!.steps[k][0] === i) path += v;
    return { l, i, active, wait, path };
  });
  return (
    <Table name="threads" limit={12} rows={on.filter((r) => has(r.l.name))} click={(r) => toggleLane(r.i)} chosen={(r) => !!lanes.value?.has(r.i)} columns={[
      ['thread', (r) => r.l.name], ['on the path', (r) => r.path, (r) => <>{ns(r.path)} <Bar of={r.path / (s?.ns || 1)} /></>],
      ['active', (r) => r.active, (r) => ns(r.active)], ['waiting', (r) => r.wait, (r) => ns(r.wait)], ['process', (r) => r.l.pid, (r) => r.l.pid || ''], ['thread id', (r) => r.l.tid, (r) => r.l.tid || '']]} />
  );
}

// Loops through one resource that have the same gains are one row.
function resources(): Row[] {
  const by = new Map<string, Row>();
  for (const l of doc.loops!.loops) {
    const key = JSON.stringify([l.queue, l.space, l.more, l.predicted_speedup_unbounded, l.next_bottleneck]), had = by.get(key);
    by.set(key, had ? { ...had, rounds: had.rounds + l.rounds } : l);
  }
  return [...by.values()];
}
// Lengths between points: [reduction, ns] from 0 on.
type Points = [number, number][];
const between = (p: Points, q: number) => {
  const found = p.findIndex((x) => q <= x[0] + 1e-9), i = found < 0 ? p.length - 1 : Math.max(1, found), [a, x] = p[i - 1], [b, y] = p[i];
  return b > a ? x + ((q - a) / (b - a)) * (y - x) : y;
};
const pathPoints = (s: Row): Points => [[0, s.pieces[0].from_ns], ...s.pieces.map((p: Row) => [p.to, p.to_ns])] as Points;
const predictedPoints = (s: Row, speedup: string): Points => [[0, doc.whatif!.length_ns], ...s.predicted.map((p: Row) => [p.reduction_percent / 100, doc.whatif!.length_ns / p[speedup]])] as Points;
// Several states at once. The longest path is a convex function of what is taken away: it is at most what one of the changes alone makes it,
// or what lies between them, and at least what its slopes at nothing less say together.
function together(chosen: [Row, number][], whole: number): [number, number] {
  const sum = chosen.reduce((a, [, r]) => a + r, 0);
  const alone = Math.min(...chosen.map(([s, r]) => between(pathPoints(s), r)));
  const mixed = sum <= 1 ? chosen.reduce((a, [s, r]) => a + (r / sum) * between(pathPoints(s), sum), 0) : alone;
  const most = Math.min(alone, mixed), slope = (s: Row) => (s.pieces[0].to_ns - s.pieces[0].from_ns) / (s.pieces[0].to - s.pieces[0].from || 1);
  return [Math.min(most, Math.max(0, chosen.reduce((a, [s, r]) => a + r * slope(s), whole))), most];
}
const span = (a: string, b: string) => (a === b ? a : `${a} to ${b}`);

export function WhatIf() {
  const w = doc.whatif, [at_, setAt] = useState<[number, Record<number, number>]>([0, { 0: 50 }]), [last, less] = at_;
  const s = w?.states[last], pieces: Row[] = s?.pieces ?? [], r = (less[last] ?? 0) / 100;
  const curve = useMemo(() => {
    if (!s) return { x: [], y: [] };
    const path = pathPoints(s), x = [...new Set([...path.map((p) => p[0]), 1, ...s.predicted.map((p: Row) => p.reduction_percent / 100)])].sort((a, b) => a - b);
    return { x: x.map((v) => v * 100), y: [x.map((v) => between(path, v)), x.map((v) => s.predicted.find((p: Row) => p.reduction_percent / 100 === v)?.length_ns ?? null)] };
  }, [last]);
  if (!w || !s) return <Absent of="whatif" what="predictions" />;
  const piece = pieces.find((x) => r <= x.to + 1e-9) ?? pieces[pieces.length - 1], now = between(pathPoints(s), r);
  const chosen = w.states.flatMap((x: Row, i: number): [Row, number][] => (less[i] ? [[x, less[i] / 100]] : []));
  const stuck = s.predicted.some((p: Row) => p.stuck), by = (speedup: string) => between(predictedPoints(s, speedup), r);
  const best = by('speedup'), least = Math.min(best, by('speedup_high')), longest = Math.max(best, by('speedup_low'));
  const edits = (chosen.length ? chosen : [[s, r]]).map(([x, q]: [Row, number]) => `'${x.state.replaceAll("'", "'\\''")}=-${Math.round(q * 100)}%'`);
  const [low, high] = chosen.length > 1 ? together(chosen, w.length_ns) : [least, longest];
  const gain = (t: number) => times(w.length_ns / Math.max(t, 1));
  return (
    <>
      <Scope>Predictions are for the whole run; for a part of it, make a page with --from and --to.</Scope>
      <div class="two">
        <div>
          {w.states.map((x: Row, i: number) => has(x.state) && (
            <label class={`slider ${i === last ? 'on' : ''}`}>
              <span title={x.state}>{brief(x.state)} <small>{pct(x.path_ns / w.length_ns)} of the path{less[i] ? `, ${less[i]} % less` : ''}</small></span>
              <input type="range" min="0" max="100" value={less[i] ?? 0} aria-label={`less of ${x.state}, per cent`} onInput={(e) => setAt([i, { ...less, [i]: Number(e.currentTarget.value) }])} />
            </label>
          ))}
          <button onClick={() => setAt([last, {}])}>nothing less</button>
        </div>
        <div>
          <p class="finding" aria-live="polite">{chosen.length > 1
            ? <>{chosen.length} changes together: {span(gain(high), gain(low))}, {span(ns(low), ns(high))} instead of {ns(w.length_ns)} <span class="sure">({chosen.every(([x]: [Row, number]) => x.pieces[0].exact) ? '' : 'about; '}bounds of the longest path, from what each change does alone)</span></>
            : <>{less[last] ?? 0} % less of “{brief(s.state)}”: {gain(best)}, {ns(best)} instead of {ns(w.length_ns)} <span class="sure">({gain(high) === gain(low) ? '' : `${span(gain(high), gain(low))}; `}longest path {gain(now)}{piece.exact ? '' : ' at least'})</span></>}</p>
          <Plot label={`run time against less of ${s.state}`} x={curve.x} y={curve.y} mark={less[last] ?? 0} xLabel={`per cent less of “${s.state.length > 40 ? `${s.state.slice(0, 39)}…` : s.state}”`} xText={(v) => `${+v.toFixed(1)} %`} yText={ns}
            series={[{ label: 'longest path', color: '--s0' }, { label: 'predicted', color: '--accent', points: true }]} />
          <p class="more">The curve is of one change alone. {pieces.filter((p) => p.exact).length} of its {pieces.length} pieces are exact, the others chords (the path is at most that long).{stuck ? ' Where replay got stuck, what is predicted is the path’s.' : ''} {chosen.length > 1 ? 'What they are together:' : 'The same, in a terminal:'} <code>longpole whatif {doc.name} {edits.map((e: string) => `scale ${e}`).join(' ')}</code></p>
        </div>
      </div>
      {doc.loops?.loops.length > 0 && <>
        <h3>More of what is finite</h3>
        <Table name="finite resources" limit={8} rows={resources().filter((l: Row) => has(l.queue))} columns={[
          ['resource', (l: Row) => l.queue, (l: Row) => `${l.space ? 'room in ' : ''}${l.queue}`], ['rounds of the path', (l: Row) => l.rounds, (l: Row) => count(l.rounds)],
          ...[0, 1, 2].map((k) => [['a little more', 'more', 'much more'][k], (l: Row) => l.more?.[k]?.predicted_speedup ?? 0,
            (l: Row) => (l.more?.[k] ? <>{times(l.more[k].predicted_speedup)} <small>+{l.more[k].units}</small></> : '–')] as any),
          ['without end', (l: Row) => l.predicted_speedup_unbounded, (l: Row) => times(l.predicted_speedup_unbounded)], ['then it is', (l: Row) => l.next_bottleneck]]} />
      </>}
      {w.processors.length > 0 && <>
        <h3>More processors</h3>
        <Table name="more processors" rows={w.processors} columns={[
          ['processors', (p: Row) => p.more_processors, (p: Row) => `${w.nr_processors} + ${p.more_processors}`],
          ['predicted', (p: Row) => p.speedup, (p: Row) => (p.stuck ? `${times(p.speedup)} (${count(p.stuck)} stuck)` : times(p.speedup))], ['run', (p: Row) => p.length_ns, (p: Row) => ns(p.length_ns)]]} />
        <p class="more">By replay, which repeats the run itself within {pct(Math.abs(w.replay_error))}.{doc.answer?.path.some((p: Row) => /that other programs had$/.test(p.state)) ? ' Waits for a processor that other programs had stay as they were: what those would do with more is not known.' : ''}</p>
      </>}
    </>
  );
}

// Waits for queues in the selection: who was waited for most comes first, in columns of their own.
const MARKED = 'Columns marked “selected” are of the selection, and rows are in their order; the other columns';
function inSelection(rows: Row[], key: string): { rows: Row[]; columns: any[] } {
  if (!selected.value || !T || !sums.value) return { rows, columns: [] };
  const waited = waitsOf(stateSums.value), onPath = waitsOf(pathSums.value), of = (m: Map<string, number>, r: Row) => m.get(r[key]) ?? 0;
  const column = (title: string, m: Map<string, number>) => [title, (r: Row) => of(m, r), (r: Row) => ns(of(m, r))];
  return { rows: [...rows].sort((a, b) => of(waited, b) - of(waited, a)), columns: [column('waited, selected', waited), column('on the path, selected', onPath)] };
}

export function Locks() {
  const l = doc.locks;
  if (!l?.locks.length) return <Absent of="locks" what="locks" />;
  const q = (l: Row, d: string, k: string) => l[d]?.[k] ?? 0, here = inSelection(l.locks, 'lock'), some = (v: number) => (v ? ns(v) : '–');
  const quantile = (title: string, d: string, k: string): any => [title, (r: Row) => q(r, d, k), (r: Row) => some(q(r, d, k))];
  return (
    <>
      <Scope>{`${MARKED} and the places are of the whole run.`}</Scope>
      <Table name="locks" rows={here.rows.filter((r: Row) => has(r.lock))} columns={[
        ['lock', (r: Row) => r.lock], ['on the path', (r: Row) => r.path_ns ?? 0, (r: Row) => <>{ns(r.path_ns ?? 0)} <Bar of={r.path_share ?? 0} /></>], ...here.columns,
        ['held half as long', (r: Row) => r.halved_hold?.predicted_speedup ?? 0, (r: Row) => (r.halved_hold ? times(r.halved_hold.predicted_speedup) : '–')],
        ['taken', (r: Row) => r.acquisitions, (r: Row) => count(r.acquisitions)], ['had to wait', (r: Row) => r.contended_share, (r: Row) => pct(r.contended_share)],
        ['waited', (r: Row) => q(r, 'wait', 'total_ns'), (r: Row) => some(q(r, 'wait', 'total_ns'))], ['held', (r: Row) => r.held_ns ?? 0, (r: Row) => ns(r.held_ns ?? 0)],
        quantile('hold p50', 'hold_distribution', 'p50_ns'), quantile('hold p99', 'hold_distribution', 'p99_ns'), quantile('wait p50', 'wait_distribution', 'p50_ns'),
        quantile('wait p99', 'wait_distribution', 'p99_ns'), ['convoys', (r: Row) => r.convoys ?? 0], ['threads', (r: Row) => r.threads]]} />
      {l.locks.slice(0, 5).map((k: Row) => k.sites?.length > 0 && has(k.lock) && (
        <details><summary>Where {brief(k.lock)} is taken</summary>
          <Table name={`sites of ${k.lock}`} rows={k.sites} columns={[['where', (r: Row) => r.where], ['taken', (r: Row) => r.acquisitions, (r: Row) => count(r.acquisitions)],
            ['had to wait', (r: Row) => r.contended, (r: Row) => count(r.contended)], ['held', (r: Row) => r.held_ns ?? 0, (r: Row) => ns(r.held_ns ?? 0)]]} /></details>
      ))}
    </>
  );
}

const waited = (q: Row): number => q.wait_for_data_ns + q.wait_for_space_ns;
export function Queues() {
  const rows: Row[] = [...(doc.queues?.queues ?? [])].sort((a, b) => waited(b) - waited(a)), h = doc.histograms?.queues ?? [];
  const [which, choose] = useState(() => Math.max(0, h.findIndex((x: Row) => x.queue === rows[0]?.queue)));
  // Waiting times are what a queue is opened for; where nobody waited, what there is.
  const first = (i: number) => ['wait_data', 'wait_space', ...Object.keys(h[i]?.histograms ?? {})].find((k) => h[i]?.histograms[k]?.buckets.length) ?? 'wait_data';
  const [what, setWhat] = useState(() => first(which)), setWhich = (i: number) => { choose(i); if (!h[i].histograms[what]?.buckets.length) setWhat(first(i)); };
  const one = h[which], d = one?.histograms[what];
  const plot = useMemo(() => {
    if (!d?.buckets.length) return null;
    const keys = Object.keys(d.buckets[0]), low = keys.find((k) => k.startsWith('low'))!, n = keys.find((k) => k.startsWith('count'))!;
    const high = keys.find((k) => k.startsWith('high'))!, isNs = low.endsWith('ns'), log = isNs && d.buckets.length > 3, x: number[] = [], y: (number | null)[] = [];
    for (const b of d.buckets) {
      if (x.length && b[low] > x[x.length - 1]) { x.push(b[low]); y.push(0); y[y.length - 1] = b[n]; }
      else { x.push(log ? Math.max(b[low], 1) : b[low]); y.push(b[n]); }
      x.push(b[high] + 1);
      y.push(0);
    }
    const ux: number[] = [], uy: (number | null)[] = [];
    x.forEach((v, i) => { if (ux.length && v <= ux[ux.length - 1]) uy[uy.length - 1] = y[i]; else { ux.push(v); uy.push(y[i]); } });
    return { x: ux, y: [uy], isNs, countNs: n.endsWith('ns'), log };
  }, [which, what]);
  const rate = useMemo(() => {
    if (!one) return null;
    const w = doc.histograms!.rate_slot_ns, x = one.arrived_units.map((_: number, i: number) => i * w), r = range.value;
    const inside = x.map((v: number) => !r || (v + w > r[0] && v < r[1]));
    return { x: x.filter((_: number, i: number) => inside[i]), y: [one.arrived_units, one.departed_units].map((a: number[]) => a.filter((_, i) => inside[i])) };
  }, [which, range.value]);
  if (!rows.length) return <Absent of="queues" what="queues" />;
  const here = inSelection(rows, 'queue');
  return (
    <>
      <Scope>{`${MARKED} are of the whole run.`}</Scope>
      <Table name="queues" rows={here.rows.filter((r) => has(r.queue))} limit={10} click={(r) => { const i = h.findIndex((x: Row) => x.queue === r.queue); if (i >= 0) setWhich(i); }} chosen={(r) => r.queue === one?.queue} columns={[
        ['queue', (r) => r.queue, (r) => `${r.queue}${r.members > 1 ? ` ×${count(r.members)}` : ''}`], ['type', (r) => (r.type === 'nothing' ? '' : r.type), undefined, 8], ['waited', waited, (r) => ns(waited(r))], ['waits for units', (r) => r.waits_for_data, (r) => count(r.waits_for_data)],
        ['waited for room', (r) => r.wait_for_space_ns, (r) => ns(r.wait_for_space_ns)], ...here.columns, ['units in', (r) => r.enqueued_units, (r) => count(r.enqueued_units)],
        ['most in one', (r) => r.max_units, (r) => count(r.max_units)], ['mean, of all', (r) => r.mean_units, (r) => r.mean_units.toFixed(2)]]} />
      {one && <>
        <div class="row">
          <label>Queue <select value={which} onChange={(e) => setWhich(Number(e.currentTarget.value))}>{h.map((x: Row, i: number) => <option value={i}>{brief(x.queue, 70)}</option>)}</select></label>
          <label>Histogram of <select value={what} onChange={(e) => setWhat(e.currentTarget.value)}>{Object.entries<Row>(one.histograms).map(([k, v]) => <option value={k}>{v.text}</option>)}</select></label>
        </div>
        <Scope>The histogram is of the whole run; units that came and went are of the selected time, of all threads.</Scope>
        <div class="two">
          <div>{plot ? <Plot label={`histogram of ${d.text} of ${one.queue}`} x={plot.x} y={plot.y} log={plot.log} xLabel={d.text} xText={plot.isNs ? ns : count} yText={plot.countNs ? ns : count} counts={!plot.countNs}
            series={[{ label: 'count', color: '--s0', steps: true, fill: true }]} /> : <p class="absent">None of these in this queue.</p>}</div>
          <div>{rate && rate.x.length > 1 && <Plot label={`units a slot of ${one.queue}`} x={rate.x} y={rate.y} xLabel="time" xText={ns} yText={count} counts
            series={[{ label: 'came', color: '--s0', steps: true }, { label: 'went', color: '--accent', steps: true, dash: [5, 3] }]} />}</div>
        </div>
      </>}
    </>
  );
}

// What the selected threads, or the groups that they are of, have served.
const servedBy = (c: Row) => new Set<number>(c.actors.filter((a: Row) => [...lanes.value!].some((i) => [T!.lanes[i].name, T!.lanes[i].group].includes(a.actor))).flatMap((a: Row) => a.connections));
export function Connections() {
  const c = doc.connections;
  if (!c) return <Absent of="connections" what="connections" />;
  const all: Row[] = c.connections, r = range.value, served = lanes.value && servedBy(c), here = connection.value !== null ? all
    : all.filter((x) => (!r || (x.start_ns - T!.start_ns < r[1] && x.end_ns - T!.start_ns > r[0])) && (!served || served.has(x.connection)));
  return <><Scope>{`${connection.value !== null ? 'All connections' : `${count(here.length)} of ${count(all.length)} connections have a part in the selection`}; numbers are of each connection's whole path.`}</Scope>
    <Table name="connections" rows={here} click={(r: Row) => chooseConnection(connection.value === r.connection ? null : r.connection)} chosen={(r: Row) => connection.value === r.connection} columns={[
    ['connection', (r: Row) => r.connection], ['path', (r: Row) => r.path_ns, (r: Row) => ns(r.path_ns)], ['from', (r: Row) => r.start_ns, (r: Row) => ns(r.start_ns)],
    ['threads', (r: Row) => r.actors ?? 0], ['most of it', (r: Row) => r.states?.[0]?.state ?? '', (r: Row) => (r.states?.[0] ? `${pct(r.states[0].share)} ${r.states[0].state}` : '')]]} /></>;
}

export function Quality() {
  const t = doc.trace, cost = t?.recording_cost;
  return (
    <>
      <Scope>Of the whole recording, whatever is selected.</Scope>
      {t && <dl>
        <dt>Command</dt><dd><code>{t.command}</code> {t.host && ` on ${t.host}`}{t.processors > 0 && `, ${t.processors} processors`}</dd>
        <dt>Trace</dt><dd>{t.path}: {count(t.records)} records, {count(t.file_bytes)} bytes{t.readable_bytes < t.file_bytes ? `, of which only ${count(t.readable_bytes)} could be read` : ''}; recorded by {t.recorded_by}, page by {doc.tool}</dd>
        {doc.answer && <><dt>Explained</dt><dd>{pct(doc.answer.explained_share)} of the path; {ns(doc.answer.unexplained_ns)} are waits that no recorded event ended</dd></>}
        {doc.whatif && <><dt>Replay</dt><dd>{doc.whatif.replayed ? `repeats the unedited run within ${pct(Math.abs(doc.whatif.replay_error))}` : 'was left out: the log would not fit in memory'}</dd></>}
        {cost && <><dt>Cost of recording</dt><dd>{cost.share === null ? 'not known' : `${pct(cost.share)} of the program's processor time`}: {cost.parts.map((p: Row) => `${count(p.times)} ${p.what}, ${ns(p.total_ns)} (${p.method})`).join('; ')}</dd></>}
        {T && <><dt>Timeline</dt><dd>{T.whole ? 'every state to the nanosecond' : `complete in buckets of ${ns(2 ** Math.max(T.bucket_log2 - 2 * (T.whole_levels - 1), 0))}; to the nanosecond where the strip beneath the axis is blue; elsewhere make a page with --from and --to`}{T.lanes_left_out ? `; ${count(T.lanes_left_out)} lanes with less are left out` : ''}</dd></>}
        <dt>Clock</dt><dd>{doc.diagnostics?.some((d) => /clock/.test(d.name)) ? 'see below' : 'no trouble with clocks was noticed'}</dd>
      </dl>}
      {doc.diagnostics?.length ? <Table name="what was lost or guessed" rows={doc.diagnostics} columns={[['what', (d: Row) => d.text], ['how bad', (d: Row) => d.severity.replace('_', ' ')], ['seen by', (d: Row) => d.source], ['count', (d: Row) => d.count, (d: Row) => count(d.count)]]} /> : <p>Nothing was lost, and nothing in the records was odd.</p>}
      {Object.keys(doc.absent).length > 0 && <><h3>Not in this page</h3><ul>{Object.entries(doc.absent).map(([k, v]) => <li>{k}: {v}</li>)}</ul></>}
    </>
  );
}
