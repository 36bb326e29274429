// SPDX-License-Identifier: Apache-2.0
// page.mjs CHROMIUM DIRECTORY - drives DIRECTORY/*.html from file://; prints a line a test. Asserts on structure and on numbers
// that the page shows: pictures would differ by fonts.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [executablePath, directory] = process.argv.slice(2);
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
    assert.deepEqual(await page.locator('section > h2').allTextContents(), ['Answer', 'Timeline', 'What-if', 'Locks', 'Queues', 'Graph', 'Flame',
      ...(doc.attached.ciat ? ['Memory'] : []), ...(/platform/.test(doc.trace.recorded_by) ? ['Network'] : []), ...(doc.attached.deadlock ? ['Deadlock'] : []), ...(doc.connections ? ['Connections'] : []), 'Data quality']);
    assert.ok((await page.locator('#answer .finding').textContent()).startsWith(doc.answer.finding));
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
    assert.deepEqual(page.trouble, []);
  });
  await test(`page/${name}/what_if`, async () => {
    const page = await open(name, '#p=whatif'), curve = doc.whatif.states[0], slider = page.locator('#whatif input[type=range]').first();
    for (const percent of [100, 30]) {
      await slider.fill(String(percent));
      const piece = curve.pieces.find((p) => percent / 100 <= p.to + 1e-9), share = (percent / 100 - piece.from) / (piece.to - piece.from);
      const gain = doc.whatif.length_ns / (piece.from_ns + share * (piece.to_ns - piece.from_ns));
      const shown = Number((await page.locator('#whatif .finding').textContent()).match(/: ([\d.]+)×/)[1]);
      assert.ok(Math.abs(shown - gain) < 0.011 || gain > 1e6, `${shown} instead of ${gain}`);
    }
    assert.deepEqual(page.trouble, []);
  });
  await test(`page/${name}/selection`, async () => {
    const a = Math.floor(whole * 0.25), b = Math.floor(whole * 0.5);
    const page = await open(name, `#t=${a}-${b}&threads=0`);
    assert.equal(await page.locator('header .chip').count(), 2);
    assert.ok((await page.locator('header .chip').last().textContent()).startsWith(t.lanes[0].name));
    await page.waitForSelector('#answer .box');
    assert.equal(await page.locator('[aria-label=threads] tbody tr.on').count(), 1);
    // Nothing of an unselected thread is counted.
    if (t.lanes.length > 1) assert.equal((await page.locator('[aria-label=threads] tbody tr').nth(1).locator('td').nth(2).textContent()).trim(), '0 ns');
    if (doc.queues.queues.length) assert.ok((await page.locator('#queues thead').first().textContent()).includes('waited, selected'));
    assert.ok(await page.locator('#flame .scope').count() === 1 && await page.locator('#whatif .scope').count() === 1);
    await page.locator('header .chip').first().click();
    await page.locator('header .chip').first().click();
    assert.equal(await page.locator('header .chip').count(), 0);
    await page.waitForFunction(() => !location.hash.includes('t='));
    await page.goBack();
    await page.waitForSelector('header .chip');
    assert.deepEqual(page.trouble, []);
  });
  await test(`page/${name}/sums`, async () => {
    // All threads in the selected half and the other half together are the whole.
    const read = async (hash) => {
      const page = await open(name, hash);
      await page.waitForFunction(() => document.querySelector('[aria-label=threads] tbody td.n'));
      await paint(page);
      const all = await page.locator('[aria-label=threads] tbody tr td:nth-child(2)').allTextContents();
      assert.deepEqual(page.trouble, []);
      return all.map((s) => { const [, v, u] = s.match(/([\d.]+) (\S+)/); return Number(v) * { ns: 1, 'µs': 1e3, ms: 1e6, s: 1e9 }[u]; }).reduce((x, y) => x + y, 0);
    };
    if (t.lanes.length > 12) return;
    const cut = Math.floor(whole * 0.3711), first = await read(`#t=0-${cut}`), second = await read(`#t=${cut}-${whole}`), all = await read('');
    assert.ok(Math.abs(first + second - all) < all * 0.02, `${first} + ${second} is not ${all}`);
    assert.ok(Math.abs(all - whole) < whole * 0.02, `the path is ${all} of ${whole}`);
  });
}

if (names.includes('tcp'))
  await test('page/attached', async () => {
    const page = await open('tcp');
    assert.equal(await page.locator('#memory svg.heat rect').count(), 4);
    assert.deepEqual(await page.locator('[aria-label=communication] tbody tr').first().locator('td').allTextContents(), ['0', '1', '7']);
    assert.equal(await page.locator('#deadlock g.v').count(), 4);
    assert.equal(await page.locator('#deadlock path.e').count(), 4);
    assert.ok((await page.locator('#deadlock .finding').textContent()).includes('<b>two</b>'));
    await page.waitForSelector('#network svg.heat rect');
    assert.ok(await rows(page, 'mean utilisation') > 3);
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
  await page.waitForFunction(() => location.hash.includes('t='));
  const [, a, b] = page.url().match(/t=(\d+)-(\d+)/).map(Number), t = data(some).timeline, whole = t.end_ns - t.start_ns;
  const left = Math.min(230, Math.max(110, box.width * 0.2)), want = (0.2 * box.width) / (box.width - left);
  assert.ok(Math.abs((b - a) / whole - want) < 0.02, `${(b - a) / whole} of the run instead of ${want}`);
  await page.keyboard.press('z');
  await page.waitForFunction(() => location.hash.includes('v='));
  await page.mouse.move(box.x + box.width * 0.5, box.y + 75);
  await page.waitForSelector('.tip');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('header .chip').count(), 0);
  assert.deepEqual(page.trouble, []);
});
await test('page/zooms_to_nanoseconds', async () => {
  const page = await open(some, '#p=timeline&v=1000000-1002000');
  await page.waitForFunction(() => document.querySelector('.span').textContent.startsWith('2.00 µs'));
  await paint(page);
  assert.ok((await colours(page)) > 3);
  assert.deepEqual(page.trouble, []);
});
for (const colorScheme of ['light', 'dark'])
  await test(`page/axe_${colorScheme}`, async () => {
    const page = await open(some, '#t=1000000-2000000', { axe: true, colorScheme });
    await page.locator('#graph').scrollIntoViewIfNeeded();
    await page.waitForSelector('#graph g.v');
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    const serious = found.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.nodes[0].target} (${v.nodes.length}) ${v.nodes[0].failureSummary}`);
    assert.deepEqual(serious, []);
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
  assert.ok((await page.locator('#static .finding').textContent()).startsWith(doc.answer.finding));
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
await browser.close();
