// The page of reproduced results in a browser: reproduce.test.mjs STAGECRAFT, from the root of the project. 77 where there is no Chromium.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { accessibilityProblems, contrast } from './accessible.mjs';
import { Chromium, chromiumHere } from './chromium.mjs';

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
  assert.deepEqual(await accessibilityProblems(browser, [['ink', 'paper'], ['soft', 'paper'], ['ours', 'paper'], ['bad', 'paper']]), []);
  assert.equal(await browser.evaluate('document.documentElement.scrollWidth <= innerWidth'), true);
  assert.ok(contrast('#000000', '#ffffff') === 21);
});
