// SPDX-License-Identifier: Apache-2.0
// page.mjs CHROMIUM PAGE - {"paint": ms, "ready": ms} since navigation began: first contentful paint; everything drawn.
import { chromium } from 'playwright-core';

const [executablePath, page] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const tab = await browser.newPage({ viewport: { width: 1400, height: 900 } });
await tab.goto(`file://${page}`);
await tab.waitForSelector('#quality');
const ready = await tab.evaluate(() => new Promise((done) => requestIdleCallback(() => done(performance.now()))));
const paint = await tab.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime);
console.log(JSON.stringify({ paint, ready }));
await browser.close();
