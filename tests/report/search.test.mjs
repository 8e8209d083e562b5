// The page of a search in a browser: search.test.mjs STAGECRAFT, from the root of the project. 77 where there is no Chromium.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { accessibilityProblems, focusOrder, TEXT_PAIRS } from './accessible.mjs';
import { Chromium, chromiumHere } from './chromium.mjs';
import { HOSTILE_YAML, hostileProblems } from './hostile.mjs';

const stagecraft = process.argv[2], folder = mkdtempSync(join(tmpdir(), 'search-')), chromium = chromiumHere(), page = join(folder, 'page.html'), none = join(folder, 'none.html');
const text = id => browser.evaluate(`document.getElementById('${id}').innerText`);
let browser, search;

/** Output of a command, whether a plan fits or not. */
const run = (...words) => {
  try {
    return execFileSync(stagecraft, words, { stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' });
  } catch (e) {
    if (e.status !== 3) throw e;
    return e.stdout;
  }
};

before(async () => {
  search = JSON.parse(run('search', 'examples/quickstart', '--schedules', '1f1b,gpipe', '--most', '80', '--set', `title=${HOSTILE_YAML}`, '--format', 'json', '--html', page));
  run('search', 'examples/quickstart', '--schedules', '1f1b', '--most', '20', '--replay', '0', '--set', 'cluster=lab-4', '--set', 'model=llama-3-405b', '--set', 'plan.devices=[gpu0, gpu1, gpu2, gpu3]', '--html', none);
  browser = await Chromium.start(chromium, { width: 1400, height: 900 });
});
after(async () => {
  await browser?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('the page begins with the answer, and its rows have the reasons of the JSON output', async () => {
  await browser.open(page);
  assert.deepEqual(browser.complaints(), []);
  const [best] = search.choices, answer = await text('answer');
  assert.ok(answer.startsWith(`Fastest: ${best.schedule} on ${best.devices} devices`), answer);
  assert.match(await text('cards'), new RegExp(`Iteration time\\n${Number((best.replayed.period_s * 1e3).toPrecision(4))} ms`));
  assert.ok((await text('limit')).startsWith(search.diagnosis[0].sentence));
  await browser.evaluate(`document.getElementById('every').click()`);
  const rows = await browser.evaluate(`[...document.querySelectorAll('#rows tbody tr')].map(r => [...r.cells].map(c => c.innerText))`);
  assert.equal(rows.length, search.choices.length);
  rows.forEach((cells, k) => assert.ok(cells.includes(search.choices[k].behind || 'the first'), `${cells}`));
  const counts = await text('counts');
  for (const key of ['plans', 'simulated', 'dropped_by_bound', 'untried', 'untried_smaller']) assert.ok(counts.includes(`\t${search[key]}\t`), `${key} in ${counts}`);
  assert.ok((await text('proved')).toLowerCase().includes(search.proved.toLowerCase()));
});

test('the front has a mark for each choice, which its tooltip names, and is saved as SVG', async () => {
  await browser.open(page);
  const tips = await browser.evaluate(`[...document.querySelectorAll('#front .at-wide svg title')].map(t => t.textContent).filter(t => t.startsWith('row '))`);
  assert.deepEqual(tips.map(t => Number(/\d+/.exec(t)[0])).sort((a, b) => a - b), search.choices.map((_, k) => k + 1));
  const parsed = await browser.evaluate(`(() => { const d = new DOMParser().parseFromString(report.picture(), 'image/svg+xml'); return [d.querySelectorAll('parsererror').length, d.documentElement.nodeName]; })()`);
  assert.deepEqual(parsed, [0, 'svg']);
});

test('a press or an arrow key chooses a row and shows the command that runs it', async () => {
  await browser.open(page);
  await browser.evaluate(`document.querySelector('#rows button').focus()`);
  await browser.key('ArrowDown');
  const chosen = await browser.evaluate('report.state.chosen'), command = await browser.evaluate(`document.querySelector('#chosen pre').textContent`);
  assert.ok(chosen > 0);
  assert.match(await text('chosen-title'), new RegExp(`^Row ${chosen + 1}$`));
  assert.ok(command.startsWith('stagecraft run examples/quickstart --backend fluid --set '), command);
  const made = JSON.parse(execFileSync('bash', ['-c', command.replace('stagecraft', `'${stagecraft}'`) + ' --format json'], { stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' }));
  const period = search.choices[chosen].replayed.period_s;
  assert.ok(Math.abs(made.period_s / period - 1) < 1e-6, `${made.period_s} and ${period}`);
  assert.ok((await focusOrder(browser, 12)).includes('theme'));  // After the rows that follow.
});

test('a search without an answer says why', async () => {
  await browser.open(none);
  assert.deepEqual(browser.complaints(), []);
  assert.match(await text('answer'), /^No plan fits in memory\./);
  assert.equal(await browser.evaluate(`['front-section', 'rows-section', 'chosen-section'].every(id => document.getElementById(id).hidden)`), true);
});

test('hostile names stay text; the policy names the script and the style', async () => {
  await browser.open(page);
  assert.deepEqual(await hostileProblems(browser), []);
  const source = readFileSync(page, 'utf8');
  for (const [tag, directive] of [['script', 'script-src'], ['style', 'style-src']]) {
    const [, content] = new RegExp(`<${tag}>(.*)</${tag}>`, 's').exec(source);
    assert.ok(source.includes(`${directive} 'sha256-${createHash('sha256').update(content).digest('base64')}'`));
  }
});

test('it is accessible in light and dark, and nothing is cut off at 900 pixels', async () => {
  for (const file of [page, none]) {
    await browser.send('Emulation.setDeviceMetricsOverride', { width: 900, height: 900, deviceScaleFactor: 1, mobile: false });
    await browser.open(file);
    assert.deepEqual(await accessibilityProblems(browser, TEXT_PAIRS), []);
    assert.equal(await browser.evaluate('document.documentElement.scrollWidth <= innerWidth'), true);
  }
});
