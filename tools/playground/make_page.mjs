// make_page.mjs MODULE OUT: the playground in OUT, from the module that emscripten made in the folder MODULE: the one file
// playground.html, which also opens from a folder, and the folder site of the same in files for a server.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const [module, out] = process.argv.slice(2), project = new URL('../..', import.meta.url).pathname;
const read = path => readFileSync(path, 'utf8'), sha = text => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** The files that embed.cmake lists: the program has the same page. */
function partsOf(kind) {
  const [, names] = new RegExp(`set\\(playground_${kind} ([^)]*)\\)`).exec(read(`${project}/tools/report/embed.cmake`));
  return names.split(/\s+/).map(name => read(`${project}/tools/report/${name}`)).join('');
}
/** Models, clusters, devices, curves, intervals and examples, by path. */
function library() {
  const files = {};
  for (const folder of ['models', 'topologies', 'topologies/devices', 'topologies/collectives', 'scenarios/predictions', 'scenarios/examples'])
    for (const name of readdirSync(`${project}/${folder}`).sort())
      if (/\.(yaml|csv)$/.test(name) && (folder !== 'scenarios/predictions' || name === 'intervals.csv')) files[`${folder}/${name}`] = read(`${project}/${folder}/${name}`);
  return files;
}
/** What the module consists of besides Stagecraft, with its licenses. */
function licenses() {
  const sources = `${project}/build/wasm-sources`, doc = name => `/usr/share/doc/${name}/copyright`;
  const files = {
    'Stagecraft (Apache 2.0, as are libc++, libc++abi and compiler-rt of LLVM, with the LLVM exception)': `${project}/LICENSE`, 'fmt': `${sources}/fmt/LICENSE.rst`, 'yaml-cpp': `${sources}/yaml-cpp/LICENSE`,
    'JSON for Modern C++': doc('nlohmann-json3-dev'), 'protozero': doc('libprotozero-dev'), 'toml++': doc('libtomlplusplus-dev'), 'musl, the C library of Emscripten (MIT)': '/usr/share/emscripten/system/lib/libc/musl/COPYRIGHT',
  };
  const text = Object.entries(files).map(([name, file]) => `${name}\n${'='.repeat(name.length)}\n\n${read(file).trim()}\n`).join('\n\n');
  return `<details class="licenses"><summary>Licenses of what is in this page</summary><pre>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</pre></details>\n`;
}
function filled(places) {
  return read(`${project}/tools/playground/index.html`).replace(/\{\{(\w+)\}\}/g, (_, name) => places[name]);
}
const json = value => JSON.stringify(value).replaceAll('<', '\\u003c');

const style = partsOf('style'), script = `(() => {\n${partsOf('script')}})();\n`, worker = read(`${project}/tools/playground/worker.js`);
const wasm = readFileSync(`${module}/stagecraft.wasm`), loader = read(`${module}/stagecraft.js`), files = library();
const closed = "default-src 'none'; base-uri 'none'; form-action 'none'", title = 'Stagecraft playground';

mkdirSync(`${out}/site`, { recursive: true });
writeFileSync(`${out}/playground.html`, filled({
  title, style, script, parts: licenses(), policy: `${closed}; style-src ${sha(style)}; script-src ${sha(script)} 'wasm-unsafe-eval' blob:; worker-src blob:`,
  data: json({ loader: `${loader}\n${worker}`, parts: { wasm: gzipSync(wasm, { level: 9 }).toString('base64'), library: files } }),
}));
const page = filled({ title, style: '', script: '', parts: licenses(), data: '{}', policy: `${closed}; style-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'` });
writeFileSync(`${out}/site/index.html`, page.replace('<style></style>', '<link rel="stylesheet" href="playground.css">').replace('<script></script>', '<script src="playground.js"></script>'));
for (const [name, content] of Object.entries({ 'playground.css': style, 'playground.js': script, 'worker.js': worker, 'stagecraft.js': loader, 'stagecraft.wasm': wasm, 'library.json': JSON.stringify(files) }))
  writeFileSync(`${out}/site/${name}`, content);
