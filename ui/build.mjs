// SPDX-License-Identifier: Apache-2.0
// build.mjs [OUT] - one file of everything: styles and code inside, their hashes in the content security policy. Same
// sources, same bytes.
//
// The code is packed (deflate, base64: half the size) and a loader of a few lines unpacks it; the policy allows exactly these two
// scripts. fflate packs, because node's own zlib gives other bytes with another node.
import { build } from 'esbuild';
import { zlibSync } from 'fflate';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, 'dist/report.html');
const limit = 150000;

const bundle = async (entry, more) => {
  const r = await build({
    entryPoints: [join(here, entry)], absWorkingDir: here, bundle: true, minify: true, write: false, target: 'es2022',
    format: 'esm', legalComments: 'none', charset: 'ascii', ...more,
  });
  return r.outputFiles[0].text.trim();
};
const js = (await bundle('src/main.tsx', { jsx: 'automatic', jsxImportSource: 'preact' })).replaceAll('</script', '<\\/script')
  .replaceAll('<!--', '<\\!--');
const css = await bundle('src/page.css');
const packed = Buffer.from(zlibSync(Buffer.from(js), { level: 9 })).toString('base64');
const loader = `const p=Uint8Array.from(atob(document.getElementById('code').textContent),c=>c.charCodeAt(0)),s=document.createElement('script');s.type='module';s.textContent=await new Response(new Blob([p]).stream().pipeThrough(new DecompressionStream('deflate'))).text();document.body.append(s)`;
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const version = (name) => JSON.parse(readFileSync(join(here, 'node_modules', name, 'package.json'))).version;
const parts = ['preact', '@preact/signals', '@preact/signals-core', 'uplot', '@dagrejs/dagre', '@dagrejs/graphlib'];
// graphlib is inside dagre's own bundle, its version in dagre's package.
const dagre = JSON.parse(readFileSync(join(here, 'node_modules/@dagrejs/dagre/package.json')));
const notices = parts.map((p) => `${p} ${p.endsWith('graphlib') ? dagre.dependencies[p] : version(p)}`).join(', ');

// Scripts and styles that are not these two are refused, and so is every request.
const policy = `default-src 'none'; script-src ${hash(loader)} ${hash(js)}; style-src ${hash(css)}; img-src data:; base-uri 'none'; form-action 'none'`;
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<title><!--longpole:title--></title>
<!-- Contains ${notices}: MIT licence. Copyright (c) 2015-present Jason Miller; 2022-present Preact Team; 2022 Leon
Sorokin; 2012-2014 Chris Pettitt. Permission is hereby granted, free of charge, to any person obtaining a copy of this
software and associated documentation files (the "Software"), to deal in the Software without restriction, including without
limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and
to permit persons to whom the Software is furnished to do so, subject to the following conditions: The above copyright notice
and this permission notice shall be included in all copies or substantial portions of the Software. THE SOFTWARE IS PROVIDED
"AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION
WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE. -->
<style>${css}</style>
</head>
<body>
<div id="app"></div>
<main id="static">
<!--longpole:static-->
</main>
<script type="application/json" id="data"><!--longpole:data--></script>
<script type="application/octet-stream" id="code">${packed}</script>
<script type="module">${loader}</script>
</body>
</html>
`;
for (const mark of ['title', 'static', 'data'])
  if (page.split(`<!--longpole:${mark}-->`).length !== 2) throw new Error(`the mark ${mark} is there more than once`);
if (Buffer.byteLength(page) > limit) throw new Error(`the page has ${Buffer.byteLength(page)} bytes, more than ${limit}`);
mkdirSync(dirname(out), { recursive: true });
writeFileSync(out, page);
console.log(`${out}: ${Buffer.byteLength(page)} bytes (code ${js.length}, styles ${css.length})`);
