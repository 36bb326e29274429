// SPDX-License-Identifier: Apache-2.0
// shots.mjs OUT PAGE.html... - pictures of pages at three widths, light and dark: OUT/PAGE-WIDTH-SCHEME.png; says what is wider than the window.
import { execFileSync } from 'node:child_process';
import { basename, join } from 'node:path';
import { chromium } from 'playwright-core';

const [out, ...pages] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser'], { encoding: 'utf8' }).trim();
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const widths = (process.env.WIDTHS ?? '800,1280,1920').split(',').map(Number), schemes = (process.env.SCHEMES ?? 'light,dark').split(',');
for (const page of pages)
  for (const width of widths)
    for (const colorScheme of schemes) {
      const context = await browser.newContext({ viewport: { width, height: 1000 }, colorScheme, reducedMotion: 'reduce', bypassCSP: true });
      const p = await context.newPage();
      await p.goto(`file://${page}`);
      await p.waitForSelector('#quality');
      await p.addStyleTag({ content: 'header { position: static !important; }' });
      await p.locator('#graph').scrollIntoViewIfNeeded();
      await p.waitForTimeout(500);
      const wide = await p.evaluate(() => [...document.querySelectorAll('main *, header *')].filter((e) => { const b = e.getBoundingClientRect(); return b.width && b.right > innerWidth + 1 && !e.closest('.scroll, .graph, .flame') && !e.closest('svg'); }).map((e) => `${e.closest('section')?.id}: ${e.tagName} ${e.className}`).slice(0, 5));
      const scrolls = await p.evaluate(() => [...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => `${e.getAttribute('aria-label')} ${e.scrollWidth}>${e.clientWidth}`));
      if (wide.length || scrolls.length) console.log(`${basename(page)} ${width} ${colorScheme}: past the window: ${wide.join('; ') || 'nothing'}; tables that scroll: ${scrolls.join('; ') || 'none'}`);
      if (process.env.PANEL) await p.locator(`#${process.env.PANEL}`).screenshot({ path: join(out, `${basename(page, '.html')}-${process.env.PANEL}-${width}-${colorScheme}.png`) });
      else await p.screenshot({ path: join(out, `${basename(page, '.html')}-${width}-${colorScheme}.png`), fullPage: true });
      await context.close();
    }
await browser.close();
