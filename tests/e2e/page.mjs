// SPDX-License-Identifier: Apache-2.0
// page.mjs CHROMIUM DIRECTORY GOLDEN [--update] - drives DIRECTORY/*.html from file://; prints a line a test. Asserts on structure, on
// numbers that the page shows, and, where the machine has the fonts of GOLDEN/fonts.json, on pictures of a trace that is always the same.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import { chromium } from 'playwright-core';

const [executablePath, directory, golden, update] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const names = readdirSync(directory).filter((f) => f.endsWith('.html') && f !== 'report.html').map((f) => f.slice(0, -5));
const data = (name) => {
  const text = readFileSync(join(directory, `${name}.html`), 'utf8');
  const from = text.indexOf('id="data">') + 10;
  return JSON.parse(text.slice(from, text.indexOf('</script>', from)));
};

async function open(name, hash = '', options = {}) {
  const context = await browser.newContext({ viewport: { width: 1300, height: 850 }, bypassCSP: !!options.axe, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(90000);
  page.trouble = [];
  page.on('console', (m) => m.type() === 'error' && page.trouble.push(m.text()));
  page.on('pageerror', (e) => page.trouble.push(e.message));
  page.on('request', (r) => /^(file|blob|data):/.test(r.url()) || page.trouble.push(`asked for ${r.url()}`));
  await page.goto(`file://${join(directory, name)}.html${hash}`);
  if (options.javaScriptEnabled !== false) {
    await page.waitForSelector('#quality');
    if (data(name).timeline) await page.waitForFunction(() => document.querySelector('canvas.lanes')?.height > 100);
  }
  return page;
}
async function test(name, f) {
  try {
    await f();
    console.log(`ok ${name}`);
  } catch (e) {
    console.error(`${name}: ${e.stack}`);
    console.log(`not ok ${name}: ${String(e.message).split('\n')[0].slice(0, 200)}`);
  } finally {
    for (const c of browser.contexts()) await c.close();
  }
}
const paint = (page) => page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(r, 60)))));
const rows = (page, name) => page.locator(`[aria-label="${name}"] tbody tr`).count();
// How many colours are in the canvas: an empty one has one.
const colours = (page) => page.evaluate(() => {
  const c = document.querySelector('canvas.lanes'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, s = new Set();
  for (let i = 0; i < d.length; i += 4 * 7) s.add((d[i] << 16) | (d[i + 1] << 8) | d[i + 2]);
  return s.size;
});

for (const name of names.filter((n) => n !== 'empty')) {
  const doc = data(name), t = doc.timeline, whole = t.end_ns - t.start_ns;
  await test(`page/${name}/panels`, async () => {
    const page = await open(name);
    assert.deepEqual(await page.locator('section > h2').allTextContents(), ['Answer', 'Timeline', 'What-if', 'Locks', 'Queues', 'Graph', 'Flame', 'Source',
      ...(doc.attached.ciat ? ['Memory'] : []), ...(/platform/.test(doc.trace.recorded_by) ? ['Network'] : []), ...(doc.attached['noc-sim'] ? ['On-chip network'] : []), ...(doc.attached.deadlock ? ['Deadlock'] : []), ...(doc.connections ? ['Connections'] : []), 'Data quality']);
    assert.ok((await page.locator('#answer .finding').textContent()).startsWith(doc.answer.pole));
    assert.ok(await rows(page, 'predicted gains') > 0 || !doc.answer.opportunities.length);
    assert.ok(await rows(page, 'the critical path') > 0);
    assert.equal(await rows(page, 'threads'), Math.min(12, t.lanes.length));
    await paint(page);
    assert.ok((await colours(page)) > 5, 'the timeline is empty');
    if (doc.locks.locks.length) assert.ok(await rows(page, 'locks') > 0);
    assert.ok(await rows(page, 'queues') > 0);
    assert.ok(await page.locator('#queues .uplot canvas').count() > 0);
    await page.locator('#graph').scrollIntoViewIfNeeded();
    await page.waitForSelector('#graph g.v');
    assert.equal(await page.locator('#graph g.v').count(), doc.graph.nodes.length);
    await page.locator('#graph select').selectOption('states_graph');
    await page.waitForFunction(() => document.querySelectorAll('#graph g.v.transition').length > 0);
    for (const which of ['path', 'cpu', 'wait']) {
      await page.locator('#flame select').selectOption(which);
      if (doc.flame[which].length > 1) assert.ok(await page.locator('#flame .f').count() > 1, which);
    }
    if (doc.source) {
      const f = doc.source.functions.at(-1), lines = f.files.flatMap((x) => x.lines);
      await page.locator('#source select').selectOption(String(doc.source.functions.length - 1));
      assert.equal(await page.locator('#source .code tbody tr.hot').count(), lines.filter((l) => l.samples > 0).length);
    } else assert.match(await page.locator('#source').textContent(), /No source: /);
    assert.deepEqual(page.trouble, []);
  });
  await test(`page/${name}/what_if`, async () => {
    const page = await open(name, '#p=whatif'), curve = doc.whatif.states[0], slider = page.locator('#whatif input[type=range]').first();
    for (const percent of [100, 30]) {
      await slider.fill(String(percent));
      const piece = curve.pieces.find((p) => percent / 100 <= p.to + 1e-9), share = (percent / 100 - piece.from) / (piece.to - piece.from);
      const gain = doc.whatif.length_ns / (piece.from_ns + share * (piece.to_ns - piece.from_ns));
      const text = await page.locator('#whatif .finding').textContent(), shown = Number((text.match(/longest path ([\d.]+)×/) ?? text.match(/: ([\d.]+)×/))[1]);
      assert.ok(Math.abs(shown - gain) < 0.011 || gain > 1e6, `${shown} instead of ${gain}`);
    }
    if (doc.whatif.states.length > 1) { // two at once: bounds, the best of them alone within
      await page.locator('#whatif input[type=range]').nth(1).fill('20');
      const text = await page.locator('#whatif .finding').textContent(), [least, most] = [...text.matchAll(/([\d.]+)×/g)].map((m) => Number(m[1]));
      assert.match(text, /2 changes together.*bounds/);
      assert.ok(most === undefined || least <= most, text);
      assert.equal((await page.locator('#whatif .more code').first().textContent()).match(/scale /g).length, 2);
      await page.locator('#whatif button', { hasText: 'nothing less' }).click();
      assert.match(await page.locator('#whatif .finding').textContent(), /^0 % less/);
    }
    assert.deepEqual(page.trouble, []);
  });
  await test(`page/${name}/selection`, async () => {
    const a = t.start_ns + Math.floor(whole * 0.25), b = t.start_ns + Math.floor(whole * 0.5);
    const page = await open(name, `#t=${a}-${b}&threads=0`);
    assert.equal(await page.locator('header .chip').count(), 2);
    assert.ok((await page.locator('header .chip').last().textContent()).startsWith(t.lanes[0].name));
    await page.waitForSelector('#answer .box');
    assert.equal(await page.locator('[aria-label=threads] tbody tr.on').count(), 1);
    // Nothing of an unselected thread is counted.
    if (t.lanes.length > 1) assert.equal((await page.locator('[aria-label=threads] tbody tr').nth(1).locator('td').nth(2).textContent()).trim(), '0 ns');
    if (doc.queues.queues.length) assert.ok((await page.locator('#queues thead').first().textContent()).includes('waited, selected'));
    assert.ok(await page.locator('#flame .scope').count() === 1 && await page.locator('#whatif .scope').count() === 1);
    // Every panel shows another thing than without the selection, or says what is of the whole run; a reload brings the same back.
    const texts = (p) => p.evaluate(() => Object.fromEntries([...document.querySelectorAll('section')].map((s) => [s.id, [...s.querySelectorAll('h2, p, td, th, .f title, g.v text, rect title')].map((e) => e.textContent).join('\n')])));
    const settle = async (p) => { await p.locator('#graph').scrollIntoViewIfNeeded(); await p.waitForSelector('#graph g.v'); await paint(p); };
    await settle(page);
    const here = await texts(page), said = await page.evaluate(() => [...document.querySelectorAll('.scope')].filter((e) => e.checkVisibility()).map((e) => e.closest('section').id));
    await page.reload();
    await page.waitForSelector('#answer .box');
    await page.waitForSelector('#quality');
    await settle(page);
    assert.deepEqual(await texts(page), here);
    await page.locator('header .chip').first().click();
    await page.locator('header .chip').first().click();
    await settle(page);
    const all = await texts(page);
    assert.equal(await page.locator('.scope').count(), 0);
    assert.deepEqual(Object.keys(here).filter((id) => here[id] === all[id] && (id !== 'locks' || doc.locks.locks.length) && (id !== 'source' || doc.source)), [], 'panels that do not change');
    for (const id of ['whatif', 'quality', ...(doc.source ? ['source'] : []), ...['memory', 'noc', 'deadlock'].filter((x) => x in here)]) assert.ok(said.includes(id), `${id} does not say that it is of the whole run`);
    for (const id of ['answer', 'timeline', 'flame', 'graph', ...(doc.locks.locks.length ? ['locks'] : []), ...('network' in here ? ['network'] : [])]) {
      const numbers = (s) => s.match(/[\d.,]+ (ns|µs|ms|s|%)/g)?.join() ?? '';
      assert.notEqual(numbers(here[id]), numbers(all[id]), `${id} has the whole run's numbers`);
    }
    assert.match(here.graph, /selected: /);
    assert.match(here.flame, /^selected|Nothing was seen of it/m); // (the path may have been in others)
    assert.equal(await page.locator('header .chip').count(), 0);
    await page.waitForFunction(() => !location.hash.includes('t='));
    await page.goBack();
    await page.waitForSelector('header .chip');
    assert.deepEqual(page.trouble, []);
  });
  if (t.lanes.length <= 12 && name !== 'redis') await test(`page/${name}/sums`, async () => {
    // All threads in the selected half and the other half together are the whole.
    const read = async (hash) => {
      const page = await open(name, hash);
      await page.waitForFunction(() => document.querySelector('[aria-label=threads] tbody td.n'));
      await paint(page);
      const all = await page.locator('[aria-label=threads] tbody tr td:nth-child(2)').allTextContents();
      assert.deepEqual(page.trouble, []);
      return all.map((s) => { const [, v, u] = s.match(/([\d.]+) (\S+)/); return Number(v) * { ns: 1, 'µs': 1e3, ms: 1e6, s: 1e9 }[u]; }).reduce((x, y) => x + y, 0);
    };
    const cut = t.start_ns + Math.floor(whole * 0.3711), first = await read(`#t=${t.start_ns}-${cut}`), second = await read(`#t=${cut}-${t.end_ns}`), all = await read('');
    assert.ok(Math.abs(first + second - all) < all * 0.02, `${first} + ${second} is not ${all}`);
    assert.ok(Math.abs(all - whole) < whole * 0.02, `the path is ${all} of ${whole}`);
  });
}

// ---- what a reader relies on ----------------------------------------------------------------------

// Every slice of a track, from the leaves of the document: brute force beside what the page counts.
async function slicesOf(name) {
  const t = data(name).timeline, all = t.lanes.map(() => []);
  const numbers = (text) => { const b = inflateSync(Buffer.from(text, 'base64')); let i = 0; return () => { let v = 0, s = 1, x; do { x = b[i++]; v += (x & 127) * s; s *= 128; } while (x & 128); return v; }; };
  for (const key of t.leaves) {
    const [level, index] = key.split('/').map(Number), span = 2 ** (t.bucket_log2 - 2 * level) * t.buckets, next = numbers(t.tiles[key]);
    assert.equal(next(), 1);
    for (const lane of all) for (let at = 0; at < span;) { const v = next() - 1, d = next(); if (v >= 0) lane.push([index * span + at, index * span + at + d, v]); at += d; }
  }
  return all;
}
// What "1.23 ms" says, and by how much it may be off.
const said = (text) => { const [, v, u] = text.match(/([\d.]+) (ns|µs|ms|s)/) ?? assert.fail(`no duration: '${text}'`), unit = { ns: 1, 'µs': 1e3, ms: 1e6, s: 1e9 }[u]; return [Number(v) * unit, unit / 10 ** (v.split('.')[1] ?? '').length]; };
for (const name of names.filter((n) => n !== 'empty' && data(n).timeline.whole && data(n).timeline.lanes.length <= 12))
  await test(`page/${name}/counts_what_is_drawn`, async () => {
    const t = data(name).timeline, whole = t.end_ns - t.start_ns, lanes = await slicesOf(name);
    for (const [p, q] of [[0.1237, 0.4419], [0.5, 0.50003], [0, 1]]) {
      const a = Math.floor(whole * p), b = Math.ceil(whole * q), page = await open(name, `#p=timeline&t=${t.start_ns + a}-${t.start_ns + b}`);
      await page.waitForSelector('[aria-label=threads] tbody tr');
      await page.waitForTimeout(300);
      const cells = await page.locator('[aria-label=threads] tbody tr').evaluateAll((r) => r.map((x) => [...x.querySelectorAll('td')].map((c) => c.textContent)));
      lanes.forEach((slices, i) => {
        const sum = (waits) => slices.reduce((n, [x, y, v]) => n + (t.states[v].waits === waits ? Math.max(0, Math.min(y, b) - Math.max(x, a)) : 0), 0);
        for (const [column, waits] of [[2, false], [3, true]]) {
          const [ns, off] = said(cells[i][column]);
          assert.ok(Math.abs(ns - sum(waits)) <= off / 2 + 0.5, `lane ${i} of ${a}-${b}: ${cells[i][column]} instead of ${sum(waits)} ns`);
        }
      });
      assert.deepEqual(page.trouble, []);
    }
  });
for (const name of names.filter((n) => n !== 'empty'))
  await test(`page/${name}/nothing_is_cut`, async () => {
    for (const width of [800, 1280, 1920]) {
      const page = await open(name, '', { viewport: { width, height: 900 } });
      await page.locator('#graph').scrollIntoViewIfNeeded();
      await page.waitForSelector('#graph g.v');
      await page.waitForTimeout(200);
      const cut = await page.evaluate(() => {
        const inside = (e) => e.closest('.graph, .flame, svg.heat, .uplot, .hidden'), bad = [];
        for (const e of document.querySelectorAll('main *, header *')) {
          const b = e.getBoundingClientRect();
          if (b.width && (b.right > innerWidth + 1 || b.left < -1) && !inside(e)) bad.push(`${e.closest('section')?.id}: ${e.tagName} to ${Math.round(b.right)}`);
        }
        for (const e of document.querySelectorAll('.scroll')) if (e.scrollWidth > e.clientWidth + 1) bad.push(`table ${e.getAttribute('aria-label')}: ${e.scrollWidth} in ${e.clientWidth}`);
        const svg = document.querySelector('.graph svg'), view = svg.viewBox.baseVal;
        for (const e of svg.querySelectorAll('g.v, path.e')) {
          const b = e.getBBox(), m = e.transform.baseVal.length ? e.transform.baseVal[0].matrix : { e: 0, f: 0 };
          if (b.x + m.e < view.x || b.y + m.f < view.y || b.x + m.e + b.width > view.x + view.width || b.y + m.f + b.height > view.y + view.height) bad.push('the graph leaves its frame');
        }
        return bad;
      });
      assert.deepEqual(cut, [], `at ${width}`);
      await page.context().close();
    }
  });
if (names.includes('tcp'))
  await test('page/table', async () => {
    const page = await open('tcp'), head = page.locator('[aria-label=queues] thead th'), cell = (n) => page.locator(`[aria-label=queues] tbody tr td:nth-child(${n})`).allTextContents();
    const names = await head.allTextContents(), at = names.indexOf('waited') + 1, order = async () => (await cell(at)).map((s) => said(s)[0]);
    const down = (l) => l.every((v, i) => !i || l[i - 1] >= v);
    assert.ok(down(await order()), 'queues are opened by waiting time');
    assert.equal((await page.locator('#queues select').nth(1).evaluate((e) => e.selectedOptions[0].textContent)).includes('wait'), true);
    await head.nth(at - 1).locator('button').focus();
    await page.keyboard.press('Enter');
    assert.equal(await head.nth(at - 1).getAttribute('aria-sort'), 'descending');
    await page.keyboard.press('Enter');
    assert.equal(await head.nth(at - 1).getAttribute('aria-sort'), 'ascending');
    assert.ok(down((await order()).reverse()));
    const all = await rows(page, 'queues'), word = (await cell(1))[0].split(' ')[0];
    await page.getByLabel('filter queues').fill(word);
    assert.ok((await cell(1)).every((s) => s.includes(word)));
    await page.getByLabel('filter queues').fill('no such thing');
    assert.equal(await rows(page, 'queues'), 0);
    await page.getByLabel('filter queues').fill('');
    assert.equal(await rows(page, 'queues'), all);
    assert.deepEqual(page.trouble, []);
  });

if (names.includes('tcp'))
  await test('page/attached', async () => {
    const page = await open('tcp');
    assert.equal(await page.locator('#memory svg.heat').first().locator('rect').count(), 4);
    assert.deepEqual(await page.locator('#memory [aria-label="sharing degree"] tbody tr td').allTextContents(), ['1', '5', '100 %']);
    assert.deepEqual(await page.locator('#memory [aria-label="invalidation degree"] tbody tr td').allTextContents(), ['2', '2', '100 %']);
    assert.equal(await page.locator('#memory [aria-label="page map"] rect').count(), 64);
    assert.equal(await page.locator('#memory [aria-label="page map"] rect.h4').count(), 1);
    const links = data('tcp').attached['noc-sim'].links, busiest = links.reduce((a, b) => (b.busy_share > a.busy_share ? b : a));
    assert.equal(await page.locator('#noc line.link').count(), 48); // a mesh of 4 by 4
    assert.deepEqual((await page.locator('[aria-label="busiest links"] tbody tr').first().locator('td').allTextContents()).slice(0, 2), [busiest.from_router, busiest.to_router].map(String));
    assert.deepEqual(await page.locator('[aria-label=communication] tbody tr').first().locator('td').allTextContents(), ['0', '1', '7']);
    assert.equal(await page.locator('#deadlock g.v').count(), 4);
    assert.equal(await page.locator('#deadlock path.e').count(), 4);
    assert.ok((await page.locator('#deadlock .finding').textContent()).includes('<b>two</b>'));
    await page.waitForSelector('#network svg.heat rect');
    assert.ok(await rows(page, 'mean utilisation') > 3);
    assert.deepEqual(page.trouble, []);
  });

if (names.includes('tcp'))
  await test('page/connection', async () => {
    const page = await open('tcp'), c = data('tcp').connections.connections[0];
    await page.locator('[aria-label=connections] tbody button').first().click();
    await page.waitForFunction((id) => location.hash.includes(`connection=${id}`) && location.hash.includes('threads='), c.connection);
    assert.ok((await page.locator('header .chips').textContent()).includes(`connection ${c.connection}`));
    assert.equal(await page.locator('[aria-label=connections] tbody tr.on').count(), 1);
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('header .chip').count(), 0);
    assert.deepEqual(page.trouble, []);
  });

const some = names.find((n) => n === 'pigz') ?? names.find((n) => n !== 'empty');
const now = (page) => page.locator('.span').textContent();
await test('page/keys', async () => {
  const page = await open(some);
  const before = await now(page);
  await page.keyboard.press('w');
  await page.waitForFunction((s) => document.querySelector('.span').textContent !== s, before);
  await page.waitForFunction(() => location.hash.includes('v='));
  const zoomed = await now(page);
  await page.keyboard.press('d');
  await page.waitForFunction((s) => document.querySelector('.span').textContent !== s, zoomed);
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('0');
  await page.waitForFunction((s) => document.querySelector('.span').textContent === s, before);
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'search');
  await page.keyboard.type('wwq');
  assert.equal(await now(page), before); // letters in a field are letters
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.waitForSelector('dialog[open]');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog:not([open])', { state: 'attached' });
  await page.keyboard.press('4');
  await page.waitForFunction(() => location.hash.includes('p=locks'));
  assert.deepEqual(page.trouble, []);
});
await test('page/drag_measures', async () => {
  const page = await open(some, '#p=timeline'), box = await page.locator('canvas.lanes').boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 90);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 95, { steps: 4 });
  await page.mouse.up();
  const t = data(some).timeline, whole = t.end_ns - t.start_ns, left = Math.min(230, Math.max(110, box.width * 0.2)), want = (0.2 * box.width) / (box.width - left);
  // (the address follows the drag, so its first step may still be there)
  await page.waitForFunction(([whole, want]) => {
    const t = location.hash.match(/t=(\d+)-(\d+)/);
    return t && Math.abs((t[2] - t[1]) / whole - want) < 0.02;
  }, [whole, want]);
  await page.keyboard.press('z');
  await page.waitForFunction(() => location.hash.includes('v='));
  await page.mouse.move(box.x + box.width * 0.5, box.y + 75);
  await page.waitForSelector('.tip');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('header .chip').count(), 0);
  assert.deepEqual(page.trouble, []);
});
await test('page/zooms_to_nanoseconds', async () => {
  const { start_ns } = data(some).timeline, page = await open(some, `#p=timeline&v=${start_ns + 1000000}-${start_ns + 1002000}`);
  await page.waitForFunction(() => document.querySelector('.span').textContent.startsWith('2.00 µs'));
  await paint(page);
  assert.ok((await colours(page)) > 3);
  assert.deepEqual(page.trouble, []);
});
// Every panel: a program's page, and that of the simulated network with all that can be attached.
for (const [name, colorScheme] of [[some, 'light'], [some, 'dark'], ...(names.includes('tcp') ? [['tcp', 'light'], ['tcp', 'dark']] : [])])
  await test(`page/${name}/axe_${colorScheme}`, async () => {
    const { start_ns } = data(name).timeline, page = await open(name, `#t=${start_ns + 1000000}-${start_ns + 2000000}`, { axe: true, colorScheme });
    await page.locator('#graph').scrollIntoViewIfNeeded();
    await page.waitForSelector('#graph g.v');
    await page.locator('#graph summary').click();
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    const wrong = found.violations.map((v) => `${v.id}: ${v.nodes[0].target} (${v.nodes.length}) ${v.nodes[0].failureSummary}`);
    assert.deepEqual(wrong, []);
  });
await test('page/no_network', async () => {
  const page = await open(some);
  const got = await page.evaluate(() => fetch('https://example.invalid/').then(() => 'sent', (e) => e.name));
  assert.equal(got, 'TypeError');
  assert.ok(page.trouble.some((t) => /Content Security Policy/.test(t)), page.trouble.join());
  assert.equal(await page.evaluate(() => { const s = document.createElement('script'); s.textContent = 'window.evil = 1'; document.body.append(s); return window.evil; }), undefined);
});
await test('page/without_javascript', async () => {
  const page = await open(some, '', { javaScriptEnabled: false }), doc = data(some);
  assert.ok((await page.locator('#static .finding').textContent()).startsWith(doc.answer.pole));
  assert.ok(await page.locator('#static svg.timeline').isVisible());
  assert.ok(await page.locator('#static svg.timeline rect').count() > doc.timeline.lanes.length);
  assert.ok(await page.locator('#static table').count() >= 3);
  assert.ok(!(await page.locator('#app').isVisible()));
});
await test('page/paper', async () => {
  const page = await open(some);
  assert.ok(!(await page.locator('#static h1').isVisible()));
  await page.emulateMedia({ media: 'print' });
  assert.ok(await page.locator('#static svg.timeline').isVisible());
  assert.ok(!(await page.locator('header').isVisible()));
  const pdf = await page.pdf();
  assert.ok(pdf.length > 10000);
});
if (names.includes('empty'))
  await test('page/empty', async () => {
    const page = await open('empty');
    assert.ok((await page.locator('#answer').textContent()).includes('There is no answer for this trace'));
    assert.equal(await page.locator('canvas').count(), 0);
    assert.deepEqual(page.trouble, []);
    for (const k of 'wasd0z?') await page.keyboard.press(k);
    assert.deepEqual(page.trouble, []);
  });

// ---- pictures -----------------------------------------------------------------------------------

// A picture at a quarter of its size, as the mean colours of 4 x 4 pixels: { url, w, h, rgb }.
const small = (page, url, by) => page.evaluate(async ([from, n]) => {
  const i = await createImageBitmap(await (await fetch(from)).blob()), c = new OffscreenCanvas(Math.ceil(i.width / n), Math.ceil(i.height / n)), g = c.getContext('2d');
  g.imageSmoothingQuality = 'high';
  g.drawImage(i, 0, 0, i.width / n, i.height / n);
  const d = g.getImageData(0, 0, c.width, c.height).data, blob = await c.convertToBlob({ type: 'image/png' });
  const bytes = new Uint8Array(await blob.arrayBuffer());
  return { w: c.width, h: c.height, rgb: [...d], png: btoa(Array.from(bytes, (x) => String.fromCharCode(x)).join('')) };
}, [url, by]);
// The share of pixels whose colour is another one by more than an eighth of the range; 1 when the sizes differ by more than a line.
function differs(a, b) {
  if (a.w !== b.w || Math.abs(a.h - b.h) > 3) return 1;
  const n = Math.min(a.rgb.length, b.rgb.length) / 4;
  let bad = 0;
  for (let i = 0; i < n; i++) bad += [0, 1, 2].some((k) => Math.abs(a.rgb[4 * i + k] - b.rgb[4 * i + k]) > 32);
  return bad / n;
}
if (names.includes('tcp')) {
  const page = await open('tcp', '', { reducedMotion: 'reduce', bypassCSP: true });
  await page.addStyleTag({ content: 'header { position: static !important; }' }); // it would lie over what is higher than the window
  const fonts = await page.evaluate(() => ['Answer of 1,234.5 ms', 'WAVE'].map((s) => { const g = document.createElement('canvas').getContext('2d'); g.font = '100px ' + getComputedStyle(document.body).fontFamily; return Math.round(g.measureText(s).width); }).join());
  const known = update ? fonts : JSON.parse(readFileSync(join(golden, 'fonts.json'), 'utf8'));
  if (update) writeFileSync(join(golden, 'fonts.json'), JSON.stringify(fonts) + '\n');
  const blank = await (await browser.newContext()).newPage();
  for (const id of ['answer', 'timeline', 'whatif', 'queues', 'graph', 'flame', 'memory', 'network', 'noc', 'deadlock']) {
    if (known !== fonts) {
      console.log(`skip page/picture/${id}: this machine has other fonts than the pictures in tests/e2e/golden`);
      continue;
    }
    const section = page.locator(`#${id}`);
    await section.scrollIntoViewIfNeeded();
    await page.waitForTimeout(200);
    await paint(page);
    const now = await small(blank, `data:image/png;base64,${(await section.screenshot({ animations: 'disabled' })).toString('base64')}`, 4), file = join(golden, `${id}.png`);
    if (update) writeFileSync(file, Buffer.from(now.png, 'base64'));
    const then = await small(blank, `data:image/png;base64,${readFileSync(file).toString('base64')}`, 1), share = differs(now, then);
    console.log(share <= 0.02 ? `ok page/picture/${id}` : `not ok page/picture/${id}: ${(share * 100).toFixed(1)} % differs from tests/e2e/golden/${id}.png; if it should, tests/e2e/run.sh --update, and look`);
    if (share > 0.02) writeFileSync(join(directory, `${id}.now.png`), Buffer.from(now.png, 'base64'));
  }
}
await browser.close();
