// SPDX-License-Identifier: Apache-2.0
// main.tsx - the page: its panels, its keys. Without it the static part of the page stays.
import { signal } from '@preact/signals';
import { Component, render, type ComponentChild } from 'preact';
import { PALETTE, T, at, brief, count, doc, forgetColors, ns } from './data';
import { Deadlock, Noc, Memory, Network, isNetwork } from './extras';
import { Flame } from './flame';
import { GraphPanel } from './graph';
import { Answer, Connections, Locks, Quality, Queues, Scope, Selection, Threads, WhatIf } from './panels';
import { clear, connection, lanes, nrIdle, panel, range, rows, search, selected, startHash, unfolded, view, whole } from './select';
import { loadBins } from './tiles';
import { Source } from './source';
import { Timeline, first, go, pan, scrollLanes, shown as rowsShown, swatch, tip, zoom } from './timeline';

const rest = signal(false);
const KEYS: [string, string][] = [['W S', 'zoom in, out'], ['A D, ← →', 'move'], ['↑ ↓', 'other threads'], ['drag', 'measure: selects that time'], ['Shift + drag', 'move'], ['Ctrl + wheel', 'zoom'],
  ['click on a name', 'select that thread'], ['Z', 'zoom to the selection'], ['0', 'the whole run'], ['Esc', 'select everything again'], ['/', 'search'], ['1 … 9', 'panels'], ['?', 'this help']];

function Legend() {
  const own = new Map<number, number>(), kinds = new Map<string, number>();
  T!.states.forEach((s, i) => {
    if (s.topic < PALETTE && !s.waits) own.set(s.topic, own.get(s.topic) ?? i);
    else if (!kinds.has(s.kind)) kinds.set(s.kind, i);
  });
  const text: Record<string, string> = { run: 'other running', hold: 'other holding', wait: 'waiting', latency: 'hand-off', runnable: 'ready, no processor', blocked: 'blocked, not seen in what', external: 'waiting for the outside',
    sleep: 'sleeping', io: 'in the kernel', start: 'starting', elsewhere: 'serving others', annotated: 'other states', device: 'device at work' };
  return (
    <ul class="legend">
      {[...own].sort((a, b) => a[0] - b[0]).map(([, i]) => <li><i class={swatch(i)} /> <span title={T!.states[i].name}>{brief(T!.states[i].name, 50)}</span></li>)}
      {[...kinds].map(([k, i]) => <li><i class={`sw ${T!.states[i].waits ? 'wait' : ''} k-${k}`} /> {text[k] ?? k}</li>)}
      <li><i class="sw path-key" /> critical path</li>
    </ul>
  );
}
function TimelinePanel() {
  if (!T) return <p class="absent">No timeline: {doc.absent.timeline}.</p>;
  const b = (text: string, f: () => void, label: string) => <button onClick={f} aria-label={label === text ? undefined : label} title={label}>{text}</button>;
  return (
    <>
      <div class="row">
        {b('+', () => zoom(0.5), 'zoom in')}{b('−', () => zoom(2), 'zoom out')}{b('←', () => pan(-0.3), 'move left')}{b('→', () => pan(0.3), 'move right')}
        {b('all', () => go([0, whole]), 'all: the whole run')}{range.value && b('zoom to selection', () => go(range.value!), 'zoom to selection')}
        {nrIdle > 0 && <button aria-expanded={unfolded.value} onClick={() => (unfolded.value = !unfolded.value)}>{unfolded.value ? 'fold' : 'show'} {nrIdle} idle threads</button>}
        {rows.value.length > rowsShown() && <>{b('↑', () => scrollLanes(-5), 'lanes further up')}{b('↓', () => scrollLanes(5), 'lanes further down')}<span class="now">lanes {first.value + 1}–{Math.min(first.value + rowsShown(), rows.value.length)} of {rows.value.length}{T.lanes_left_out ? `; ${count(T.lanes_left_out)} that did less are left out` : ''}</span></>}
        <span class="now span" aria-live="off">{ns(view.value[1] - view.value[0])} at {ns(at(view.value[0]))}</span>
      </div>
      <Timeline />
      <Legend />
      {lanes.value && T.queues.length > 0 && <Scope>Queues beneath the lanes are of all threads.</Scope>}
      <Selection of="timeline" />
      <h3>Threads</h3>
      <Threads />
    </>
  );
}
// A document of another version may lack what a panel draws: that panel says so, the others stay.
class Safe extends Component<{ children: ComponentChild }> {
  state = { why: '' };
  componentDidCatch(e: Error) { this.setState({ why: e.message }); }
  render() { return this.state.why ? <p class="absent">This part cannot be drawn: {this.state.why}</p> : this.props.children; }
}
type Panel = [string, string, () => ComponentChild, boolean?];
const PANELS: Panel[] = [['answer', 'Answer', () => <Answer />], ['timeline', 'Timeline', () => <TimelinePanel />], ['whatif', 'What-if', () => <WhatIf />], ['locks', 'Locks', () => <Locks />],
  ['queues', 'Queues', () => <Queues />], ['graph', 'Graph', () => <GraphPanel />], ['flame', 'Flame', () => <Flame />], ['source', 'Source', () => <Source />], ['memory', 'Memory', () => <Memory />, !doc.attached.ciat], ['network', 'Network', () => <Network />, !isNetwork()], ['noc', 'On-chip network', () => <Noc />, !doc.attached['noc-sim']], ['deadlock', 'Deadlock', () => <Deadlock />, !doc.attached.deadlock], ['connections', 'Connections', () => <Connections />, !doc.connections], ['quality', 'Data quality', () => <Quality />]];
const shown = PANELS.filter((p) => !p[3]);
const show = (id: string) => { panel.value = id; rest.value = true; requestAnimationFrame(() => document.getElementById(id)?.scrollIntoView({ block: 'start' })); };

function Chips() {
  if (!selected.value) return null;
  const chip = (text: string, f: () => void) => <button class="chip" onClick={f} title="select everything again">{text} ×</button>;
  return (
    <span class="chips" aria-live="polite">
      {range.value && chip(`${ns(range.value[1] - range.value[0])} from ${ns(at(range.value[0]))}`, () => { range.value = null; connection.value = null; })}
      {lanes.value && T && chip(lanes.value.size === 1 ? T.lanes[[...lanes.value][0]].name : `${lanes.value.size} threads`, () => { lanes.value = null; connection.value = null; })}
      {connection.value !== null && chip(`connection ${connection.value}`, clear)}
    </span>
  );
}
// Whether it is open is asked of the element: its close event comes late on a busy machine, after the next key.
const help = () => document.getElementById('help') as HTMLDialogElement;
function Help() {
  return (
    <dialog id="help" aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      <dl>{KEYS.map(([k, v]) => <><dt><kbd>{k}</kbd></dt><dd>{v}</dd></>)}</dl>
      <button onClick={() => help().close()}>close</button>
    </dialog>
  );
}
function App() {
  return (
    <>
      <header>
        <strong>{doc.name}</strong>
        <nav aria-label="panels">{shown.map(([id, name]) => <a href={`#p=${id}`} aria-current={panel.value === id ? 'true' : undefined} onClick={(e) => { e.preventDefault(); show(id); }}>{name}</a>)}</nav>
        <Chips />
        <input type="search" id="search" placeholder="search ( / )" aria-label="search states, threads, locks, queues" value={search.value} onInput={(e) => (search.value = e.currentTarget.value)} />
        <button onClick={() => help().showModal()} aria-label="? keys" title="keys">?</button>
      </header>
      <main>
        <h1 class="hidden">longpole: {doc.name}</h1>
        {shown.map(([id, name, f], i) => (i < 2 || rest.value) && <section id={id} aria-labelledby={`h-${id}`}><h2 id={`h-${id}`}>{name}</h2><Safe>{f()}</Safe></section>)}
      </main>
      {tip.value && <div class="tip" ref={(e) => { if (e) { e.style.left = `${Math.min(tip.value!.x + 14, innerWidth - 340)}px`; e.style.top = `${Math.min(tip.value!.y + 16, innerHeight - 120)}px`; } }}>{tip.value.text.map((t) => <div>{t}</div>)}</div>}
      <Help />
      <svg class="hidden" aria-hidden="true"><defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse" markerUnits="userSpaceOnUse"><path d="M0 0L8 4L0 8z" /></marker></defs></svg>
    </>
  );
}

function key(e: KeyboardEvent) {
  const el = e.target as HTMLElement, typing = el.matches('input, select, textarea');
  if (e.key === 'Escape') {
    if (typing) el.blur();
    else clear();
    return;
  }
  if (typing || e.ctrlKey || e.metaKey || e.altKey || help().open) return;
  const onTimeline = el.matches('canvas') || el === document.body, k = e.key.length === 1 ? e.key.toLowerCase() : e.key;
  const keys: Record<string, () => void> = { '/': () => document.getElementById('search')!.focus(), '?': () => help().showModal() };
  if (T) Object.assign(keys, { w: () => zoom(0.6), s: () => zoom(1 / 0.6), a: () => pan(-0.2), d: () => pan(0.2), 0: () => go([0, whole]), z: () => range.value && go(range.value) });
  if (T && onTimeline) Object.assign(keys, { ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2) });
  if (T && el.matches('canvas')) Object.assign(keys, { ArrowUp: () => scrollLanes(-1), ArrowDown: () => scrollLanes(1) });
  if (k >= '1' && k <= '9' && shown[Number(k) - 1]) keys[k] = () => show(shown[Number(k) - 1][0]);
  if (!keys[k]) return;
  e.preventDefault();
  keys[k]();
}

startHash();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { forgetColors(); });
addEventListener('keydown', key);
render(<App />, document.getElementById('app')!);
document.documentElement.classList.add('live');
if (T) void loadBins();
// What is not seen at once comes after the first paint.
const later = () => { rest.value = true; if (panel.value !== 'answer') show(panel.value); };
'requestIdleCallback' in window ? requestIdleCallback(later, { timeout: 300 }) : setTimeout(later, 60);
