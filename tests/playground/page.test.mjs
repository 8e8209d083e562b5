// The playground in a browser, served by `stagecraft play`: page.test.mjs STAGECRAFT, from the root of the project. 77 where
// there is no Chromium. one_file.test.mjs tests the page with the engine inside of it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { accessibilityProblems, TEXT_PAIRS } from '../report/accessible.mjs';
import { Chromium, chromiumHere } from '../report/chromium.mjs';
import { Page } from './page.mjs';

const stagecraft = process.argv[2], chromium = chromiumHere(), folder = mkdtempSync(join(tmpdir(), 'play-')), file = join(folder, 'mine.yaml');
const TEXT = readFileSync('scenarios/examples/quickstart.yaml', 'utf8');
let browser, page, server;

before(async () => {
  writeFileSync(file, TEXT);
  server = spawn(stagecraft, ['play', file], { stdio: ['ignore', 'pipe', 'ignore'] });
  const address = await new Promise(done => server.stdout.once('data', data => done(String(data).trim())));
  browser = await Chromium.start(chromium, { width: 1400, height: 1000 });
  page = new Page(browser, address);
  await page.open();
});
after(async () => {
  await browser?.stop();
  server?.kill();
  rmSync(folder, { recursive: true, force: true });
});

const period = () => browser.evaluate('playground.runs()[0].results.period_s');
const yaml = () => browser.evaluate('document.getElementById("yaml").value');

test('it shows the file with its numbers, its timeline and what limits it', async () => {
  assert.equal(await yaml(), TEXT);
  assert.match(await page.text('cards'), /Iteration time\n58\.\d+ ms/);
  assert.match(await page.text('answer'), /fills and drains the pipeline/);
  assert.equal(await page.isDrawn(), true);
});

test('a control writes its value into the text, undo and redo take it back, also after typing', async () => {
  const first = await period();
  await page.set('plan-stages', 3);
  assert.equal(await yaml(), TEXT.replace('stages: 4', 'stages: 3'));
  await page.set('plan-recompute', 'layers');
  assert.match(await yaml(), /^plan:\n {2}recompute: layers\n/m);
  assert.equal(await browser.evaluate('playground.runs()[0].results.setup.stages'), 3);
  await page.type(`${TEXT.replace('micro_batches: 8', 'micro_batches: 16')}`);
  assert.ok(await period() > first);
  for (let k = 0; k < 3; ++k) await page.changed(() => browser.evaluate('document.getElementById("undo").click()'));
  assert.equal(await yaml(), TEXT);
  assert.equal(await period(), first);
  assert.equal(await browser.evaluate('document.getElementById("set-plan-stages").value'), '4');
  await page.changed(() => browser.evaluate('document.getElementById("redo").click()'));
  assert.match(await yaml(), /stages: 3/);
  await page.changed(() => browser.evaluate('document.dispatchEvent(new KeyboardEvent("keydown", { key: "z", ctrlKey: true }))'));
  assert.equal(await yaml(), TEXT);
});

test('a value for which the text has no place is an option next to it, which a press takes away', async () => {
  const first = await period();
  await page.diagnosed();
  await page.changed(() => page.press('#limits .try', /^cluster\./));
  assert.equal(await yaml(), TEXT);
  assert.match(await page.text('options'), /^--set cluster\./);
  assert.ok(await period() < first);
  await page.changed(() => page.press('#options button', /./));
  assert.equal(await page.text('options'), '');
  assert.equal(await period(), first);
});

test('mistakes are marked at their place, and a press writes what the help says', async () => {
  await page.type(TEXT.replace('planner: balanced', 'planer: balanced').replace('gpt2-medium', 'gpt2-medum'), true);
  const problems = await page.text('problems');
  assert.match(problems, /4:8\s*model: there is no model 'gpt2-medum'/);
  assert.match(problems, /7:3/);
  assert.equal(await browser.evaluate('document.querySelectorAll("#paper .bad").length'), 2);
  await page.changed(() => page.press('#problems .try', /gpt2-medium/), true);
  await page.changed(() => page.press('#problems .try', /planner/));
  assert.equal(await yaml(), TEXT);
  assert.equal(await browser.evaluate('document.querySelectorAll("#problems li").length'), 0);
});

test('a suggestion of the diagnosis is pressed and does what it says', async () => {
  const first = await period();
  await page.diagnosed();
  const promised = /zb-h1\s*saves ([\d.]+) %/.exec(await page.text('answer'));
  await page.changed(() => page.press('#answer .try', /zb-h1/));
  assert.match(await yaml(), /schedule: zb-h1/);
  const saved = 100 * (1 - (await period()) / first);
  assert.ok(Math.abs(saved - Number(promised[1])) < 0.06, `${saved} instead of ${promised[1]}`);
  await page.type(TEXT);
});

test('two schedules are shown side by side, with who is faster and by how much', async () => {
  await page.set('second', 'gpipe');
  assert.equal(await browser.evaluate('playground.runs().length'), 2);
  assert.match(await page.text('answer'), /1f1b.*(faster|%)/s);
  assert.match(await page.text('figures'), /gpipe/);
  await page.set('second', '');
  assert.equal(await browser.evaluate('playground.runs().length'), 1);
});

test('a search finds a plan that is faster, and a press takes it', async () => {
  await page.type(TEXT);
  const before = await browser.evaluate('playground.runs()[0].results.throughput_samples_per_s');
  await browser.evaluate('document.getElementById("find-plans").click()');
  await page.until('document.getElementById("found-note").textContent.includes("plans tried")', 60_000);
  assert.ok(await browser.evaluate('document.querySelectorAll("#found-rows li").length') > 1);
  await page.changed(() => page.press('#found-rows .try', /./));
  assert.ok(await browser.evaluate('playground.runs()[0].results.throughput_samples_per_s') > before);
  await page.type(TEXT);
});

test('a planner that does not end is given up for the next change', async () => {
  await browser.evaluate(`(() => { const y = document.getElementById('yaml'); y.value = ${JSON.stringify(TEXT.replace('schedule: 1f1b', 'schedule: {name: synthesised, effort: 1000000, activations: 2}').replace('micro_batches: 8', 'micro_batches: 16'))}; y.dispatchEvent(new Event('input')); })()`);
  await new Promise(done => setTimeout(done, 2500));
  await page.type(TEXT);
  assert.match(await page.text('cards'), /58\.\d+ ms/);
});

test('it is saved when asked, and a file that others change is not overwritten', async () => {
  await page.set('plan-stages', 2);
  assert.equal(readFileSync(file, 'utf8'), TEXT);
  await browser.evaluate('document.getElementById("save").click()');
  await page.until('document.getElementById("link-problem").textContent === "Saved."');
  assert.equal(readFileSync(file, 'utf8'), TEXT.replace('stages: 4', 'stages: 2'));
  writeFileSync(file, TEXT);
  await page.until(`document.getElementById('yaml').value === ${JSON.stringify(TEXT)}`);  // Nothing was unsaved, so it is read again.
  await page.set('plan-stages', 3);
  writeFileSync(file, TEXT.replace('stages: 4', 'stages: 1'));
  await page.until('document.getElementById("link-problem").textContent.includes("changed by another program")');
  assert.match(await yaml(), /stages: 3/);
  await browser.evaluate('document.getElementById("save").click()');
  await new Promise(done => setTimeout(done, 300));
  assert.match(readFileSync(file, 'utf8'), /stages: 1/);
  await page.changed(() => page.press('#link-problem .try', /Read it again/));
  assert.match(await yaml(), /stages: 1/);
});

test('people with a keyboard, a screen reader or weak sight can use it, wide and narrow', async () => {
  for (const [width, height, mobile] of [[1400, 1000, false], [420, 900, true]]) {
    await browser.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile });
    await browser.frame();
    assert.deepEqual(await accessibilityProblems(browser, TEXT_PAIRS), [], `${width} px`);
    assert.ok(await browser.evaluate('document.documentElement.scrollWidth') <= width, `${width} px are enough`);
  }
  await browser.send('Emulation.setDeviceMetricsOverride', { width: 1400, height: 1000, deviceScaleFactor: 1, mobile: false });
});

test('it asks nothing of others and complains about nothing', () => {
  const own = new URL(page.address).origin;
  assert.deepEqual(browser.complaints().filter(text => !text.startsWith(`asks for ${own}`)), []);
});

test('when the program ends, the page says so', async () => {
  server.kill();
  await page.type(TEXT.replace('stages: 4', 'stages: 2'), true);
  assert.match(await page.text('problems'), /program that serves this page does not answer/);
});
