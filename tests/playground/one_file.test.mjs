// The playground in one file, opened from a folder: one_file.test.mjs STAGECRAFT WASM_BUILD, from the root of the project. 77
// where there is no Chromium or no such file. page.test.mjs tests what the page does with any engine.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import test, { after, before } from 'node:test';
import { accessibilityProblems, TEXT_PAIRS } from '../report/accessible.mjs';
import { Chromium, chromiumHere } from '../report/chromium.mjs';
import { linksOfPages } from './links.mjs';
import { Page } from './page.mjs';

const folder = resolve(process.argv[3], 'playground'), chromium = chromiumHere();
if (!existsSync(`${folder}/playground.html`)) {
  console.log(`SKIPPED: there is no ${folder}/playground.html; tools/setup wasm, then cmake --preset wasm and cmake --build --preset wasm`);
  process.exit(77);
}
let browser, page;
before(async () => {
  browser = await Chromium.start(chromium, { width: 1400, height: 1000 });
  page = new Page(browser, `file://${folder}/playground.html`);
});
after(() => browser?.stop());

const yaml = () => browser.evaluate('document.getElementById("yaml").value');
const complaints = () => browser.complaints().filter(text => !text.startsWith('asks for blob:'));
const time = async () => `ready ${Math.round(await browser.evaluate('playground.ready'))} ms after the start, picture ${Math.round(await browser.evaluate('playground.times[0].total'))} ms later`;

test('from a folder it opens with a story, simulates it and complains about nothing', async () => {
  await page.open();
  console.log(`# ${await time()}`);
  assert.match(await page.text('story'), /Zero bubble/);
  assert.equal(await browser.evaluate('playground.runs().length'), 2);
  assert.equal(await page.isDrawn(), true);
  assert.match(await page.text('answer'), /zb-h1.* needs [\d.]+ % less time per sample/);
  assert.deepEqual(complaints(), []);
});

test('every story opens, and each of its steps runs', async () => {
  for (const name of await browser.evaluate('[...document.querySelectorAll("#example optgroup:first-child option")].map(o => o.value)')) {
    await page.changed(() => browser.evaluate(`(() => { const e = document.getElementById('example'); e.value = ${JSON.stringify(name)}; e.dispatchEvent(new Event('change')); })()`));
    const first = await yaml();
    for (let k = 0; k < await browser.evaluate('document.querySelectorAll("#story .try").length'); ++k) {
      await page.changed(() => browser.evaluate(`document.querySelectorAll("#story .try")[${k}].click()`));
      assert.ok(await browser.evaluate('Object.keys(playground.shown().sets).length') === 0, `${name}: a step is written into the text`);
    }
    assert.notEqual(first, '');
  }
});

test('every example opens and is simulated', async () => {
  await page.open();
  const names = await browser.evaluate('[...document.querySelectorAll("#example optgroup:last-of-type option")].map(o => o.value)');
  assert.ok(names.length > 20);
  for (const name of names)
    await page.changed(() => browser.evaluate(`(() => { const e = document.getElementById('example'); e.value = ${JSON.stringify(name)}; e.dispatchEvent(new Event('change')); })()`)).catch(e => assert.match(e.message, /Stopped after/, name));  // On a slow machine, the largest.
});

test('each control has an effect on the example for it', async () => {
  await page.open('#example=Every%20control%3A%20a%20mixture%20of%20experts');
  const facts = () => browser.evaluate('JSON.stringify((({ period_s, throughput_samples_per_s, devices, setup }) => [period_s, throughput_samples_per_s, Math.max(...devices.map(d => d.peak_memory_bytes)), setup])(playground.runs()[0].results))');
  const first = await facts();
  for (const [name, value] of [['run-schedule', 'zb-h1'], ['model', 'qwen3-30b-a3b'], ['cluster', 'superpod-b200'], ['plan-stages', 2], ['plan-replicas', 1], ['run-micro_batches', 24], ['plan-micro_batch_size', 1],
    ['plan-group-tensor', 2], ['plan-group-context', 1], ['plan-group-expert', 1], ['plan-shard', 'none'], ['plan-recompute', 'layers'], ['software', 'megatron-no-overlap'], ['backend', 'ideal']]) {
    await page.set(name, value).catch(e => assert.fail(`${name}=${value}: ${e.message}`));
    assert.notEqual(await facts(), first, `${name}=${value}`);
    await page.changed(() => browser.evaluate('document.getElementById("undo").click()'));
    assert.equal(await facts(), first);
  }
});

test('a link reads back in another window, and a damaged one is an example with a line', async () => {
  await page.open('#example=quickstart');
  await page.set('plan-stages', 3);
  await page.set('second', 'gpipe');
  const shown = await browser.evaluate('JSON.stringify(playground.shown())');
  await page.until('location.hash.startsWith("#1")');
  const link = await browser.evaluate('location.hash');
  assert.ok(link.length < 500, `${link.length} characters`);
  await page.open(link);
  assert.equal(await browser.evaluate('JSON.stringify(playground.shown())'), shown);
  for (const [bad, line] of [[link.slice(0, -20), /damaged/], ['#1' + 'A'.repeat(100_000), /too long/], ['#example=nothing', /no example 'nothing'/]]) {
    await page.open(bad);
    assert.match(await page.text('link-problem'), line);
    assert.equal(await page.isDrawn(), true);
  }
});

test('what the pages link opens, with the numbers of the pages', async () => {
  for (const { page: linking, text, hash } of await linksOfPages()) {
    await page.open(hash);
    const [, time] = /Iteration time\n([\d.]+ \w+)/.exec(await page.text('cards')) ?? [];
    if (await browser.evaluate('playground.runs().length') === 1) assert.ok(time && text.includes(time), `${linking}: ${time}`);
    assert.equal(await page.isDrawn(), true, linking);
    if (!hash.startsWith('#example')) assert.equal(await browser.evaluate('document.getElementById("example").selectedOptions[0].textContent'), 'from a link', linking);
    assert.notEqual(await browser.evaluate('document.getElementById("set-model").selectedOptions[0].textContent'), 'model', `${linking}: a model without a name`);
    assert.equal(await browser.evaluate('document.getElementById("set-plan-stages").value'), String(await browser.evaluate('playground.runs()[0].results.setup.stages')), linking);
  }
});

const ENDLESS = `schema: scenario/2
model: gpt2-medium
cluster: two-node-mixed
software: none
plan: {planner: balanced, stages: 4}
run: {schedule: {name: synthesised, effort: 1000000, activations: 2}, micro_batches: 16}
`;
test('a schedule that is searched for without end is stopped with a line, and the engine goes on', async () => {
  await page.open('#example=quickstart');
  const text = await yaml();
  await page.type(ENDLESS, true);
  assert.match(await page.text('problems'), /Stopped after 20 s, and the engine was started again/);
  await page.type(text);
  assert.match(await page.text('cards'), /58\.\d+ ms/);
});

test('more than the page can hold is refused in words', async () => {
  const text = await yaml();
  await page.type(text.replace('micro_batches: 8', 'micro_batches: 1000000'), true);
  assert.match(await page.text('problems'), /instructions|memory|more than/);
  await page.type(text);
});

test('on a phone nothing is wider than the screen, and people with a keyboard or a screen reader can use it', async () => {
  await page.open();
  for (const [width, height, mobile] of [[1400, 1000, false], [420, 900, true]]) {
    await browser.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile });
    await browser.frame();
    assert.ok(await browser.evaluate('document.documentElement.scrollWidth') <= width, `${width} px are enough`);
    assert.deepEqual(await accessibilityProblems(browser, TEXT_PAIRS), [], `${width} px`);
  }
  await browser.send('Emulation.setDeviceMetricsOverride', { width: 1400, height: 1000, deviceScaleFactor: 1, mobile: false });
});

test('from a server it is the same page in files', async () => {
  const types = { html: 'text/html', js: 'text/javascript', css: 'text/css', json: 'application/json', wasm: 'application/wasm' };
  const server = createServer((request, response) => {
    const name = new URL(request.url, 'http://x').pathname.slice(1) || 'index.html';
    if (!existsSync(`${folder}/site/${name}`)) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': types[name.split('.').pop()] }).end(readFileSync(`${folder}/site/${name}`));
  });
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  const origin = `http://127.0.0.1:${server.address().port}`;
  await new Page(browser, `${origin}/`).open();
  console.log(`# ${await time()}`);
  assert.equal(await page.isDrawn(), true);
  assert.deepEqual(browser.complaints().filter(text => !text.startsWith(`asks for ${origin}`) || text.includes('favicon')).filter(text => !text.includes('favicon')), []);
  server.close();
});
