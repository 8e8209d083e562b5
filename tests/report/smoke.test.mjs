// The page of a run opens in a browser: smoke.test.mjs STAGECRAFT, from the root of the project. 77 where there is no Chromium.
// The other browser tests check what pages show and do; this one is cheap enough for every check.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { Chromium, chromiumHere } from './chromium.mjs';

const stagecraft = process.argv[2], folder = mkdtempSync(join(tmpdir(), 'smoke-')), chromium = chromiumHere();
let browser;

before(async () => {
  execFileSync(stagecraft, ['run', 'examples/quickstart', '-b', 'ideal', '--out', folder], { stdio: 'ignore' });
  browser = await Chromium.start(chromium);
});
after(async () => {
  await browser?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('the page of a run has its time, draws its timeline and complains about nothing', async () => {
  await browser.open(join(folder, 'report.html'));
  const results = JSON.parse(readFileSync(join(folder, 'results.json')));
  const cards = await browser.evaluate('document.getElementById("cards").innerText');
  const time = `${Number((results.period_s * 1e3).toPrecision(4))} ms`;
  assert.ok(cards.includes(time), `${time} in ${cards}`);
  const colors = await browser.evaluate(`(() => {
    const view = document.getElementById('view');
    return new Set(new Uint32Array(view.getContext('2d').getImageData(0, 0, view.width, view.height).data.buffer)).size;
  })()`);
  assert.ok(colors > 5, `the timeline has ${colors} colors`);  // Forward, backward, idle, text and background at least.
  assert.deepEqual(browser.complaints(), []);
});
