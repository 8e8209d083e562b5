// The page of reproduced results in a browser: reproduce.test.mjs STAGECRAFT, from the root of the project. 77 where there is no Chromium.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import test, { after, before } from 'node:test';
import { accessibilityProblems, contrast, TEXT_PAIRS } from './accessible.mjs';
import { Chromium, chromiumHere } from './chromium.mjs';
import { HOSTILE_YAML, hostileProblems } from './hostile.mjs';

const stagecraft = process.argv[2], folder = mkdtempSync(join(tmpdir(), 'reproduce-')), chromium = chromiumHere(), page = join(folder, 'page.html');
let browser, figures;

before(async () => {
  const json = execFileSync(stagecraft, ['reproduce', 'edgepipe', 'torchtitan', '--format', 'json', '--html', page], { stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' });
  figures = JSON.parse(json);
  browser = await Chromium.start(chromium);
});
after(async () => {
  await browser?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('the page begins with the distribution of the errors', async () => {
  await browser.open(page);
  assert.deepEqual(browser.complaints(), []);
  const cards = await browser.evaluate('document.querySelector(".cards")?.innerText ?? ""');
  assert.match(cards, /Median error\n[\d.]+ %\nof \d+ predictions?/);
  const count = Number(/of (\d+) prediction/.exec(cards)[1]);
  const counted = await browser.evaluate('[...document.querySelectorAll("svg[role=img]")][0].querySelectorAll("title").length ? [...document.querySelectorAll("svg[role=img]")[0].querySelectorAll("rect title")].reduce((sum, t) => sum + Number(/: (\\d+) /.exec(t.textContent)[1]), 0) : 0');
  assert.equal(counted, count, 'each prediction is in the histogram once');
  assert.ok(figures.publications?.length === 2 || figures.length === 2 || JSON.stringify(figures).includes('edgepipe'));
});

test('it is accessible, at 900 pixels too', async () => {
  await browser.send('Emulation.setDeviceMetricsOverride', { width: 900, height: 900, deviceScaleFactor: 1, mobile: false });
  await browser.open(page);
  assert.deepEqual(await accessibilityProblems(browser, TEXT_PAIRS), []);
  assert.equal(await browser.evaluate('document.documentElement.scrollWidth <= innerWidth'), true);
  assert.ok(contrast('#000000', '#ffffff') === 21);
});

test('its button switches between light and dark', async () => {
  await browser.open(page);
  const seen = () => browser.evaluate('[document.documentElement.classList.contains("dark"), getComputedStyle(document.body).backgroundColor, document.getElementById("theme").textContent]');
  assert.deepEqual(await seen(), [false, 'rgb(255, 255, 255)', 'Dark']);
  await browser.evaluate('document.getElementById("theme").click()');
  assert.deepEqual(await seen(), [true, 'rgb(18, 22, 27)', 'Light']);
});

test('hostile names of a publication, its tables, rows and columns stay text', async () => {
  const file = join(folder, 'hostile.yaml'), hostile = join(folder, 'hostile.html'), scenario = JSON.stringify(resolve('scenarios/examples/quickstart.yaml'));
  const row = (name, value) => `      - {name: ${name}, scenario: ${scenario}, values: [${value}]}\n`;
  writeFileSync(file, `schema: published/1\ntitle: ${HOSTILE_YAML}\nsource: ${HOSTILE_YAML}\nassumed: [${HOSTILE_YAML}]\ntables:\n  - name: ${HOSTILE_YAML}\n    figure: throughput_samples_per_s\n    backend: ideal\n    tolerance: 0.1\n    why: ${HOSTILE_YAML}\n    columns: [{name: ${HOSTILE_YAML}}]\n    rows:\n` +
    row(HOSTILE_YAML, 250).replace(/\}\n$/, () => `, missed: {${HOSTILE_YAML}: 50}}\n`) + row('b', 260) + row('c', 270) + row('d', 300));
  try {
    execFileSync(stagecraft, ['reproduce', file, '--html', hostile], { stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (e) {
    if (e.status !== 3) throw new Error(String(e.stderr));  // 3: a figure is missed.
  }
  for (const width of [1400, 900]) {
    await browser.send('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false });
    await browser.open(hostile);
    assert.deepEqual(browser.complaints(), []);
    assert.deepEqual(await hostileProblems(browser), []);
  }
});

test('the page of predictions has a mark for each run, and is accessible', async () => {
  const predictions = join(folder, 'predictions.html');
  execFileSync(stagecraft, ['reproduce', 'predictions', 'sc21', 'simumax-dense', '--html', predictions],
    { stdio: 'ignore', env: { ...process.env, XDG_CACHE_HOME: folder } });
  await browser.open(predictions);
  assert.deepEqual(browser.complaints(), []);
  const count = await browser.evaluate('Number(/of (\\d+) runs/.exec(document.querySelector(".cards").innerText)[1])');
  const marks = await browser.evaluate('document.querySelectorAll(".picture svg :is(circle, polygon, rect)").length');
  assert.ok(marks >= count, `${marks} marks`);
  assert.deepEqual(await accessibilityProblems(browser, TEXT_PAIRS), []);
});
