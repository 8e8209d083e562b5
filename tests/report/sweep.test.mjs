// The page of a sweep in a browser: sweep.test.mjs STAGECRAFT, from the root of the project. 77 where there is no Chromium.
import assert from 'node:assert/strict';
import { execFileSync, execSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import test, { after, before } from 'node:test';
import { accessibilityProblems, TEXT_PAIRS } from './accessible.mjs';
import { Chromium, chromiumHere } from './chromium.mjs';
import { HOSTILE_YAML, hostileProblems } from './hostile.mjs';

const stagecraft = resolve(process.argv[2]), folder = mkdtempSync(join(tmpdir(), 'sweep-')), chromium = chromiumHere();
const at = name => join(folder, name);
const figuresOf = name => JSON.parse(/id="data">(.*?)<\/script>/s.exec(readFileSync(at(name), 'utf8'))[1]).figures;
/** Output of a command in the folder, whatever its exit code. */
const run = (...words) => {
  try {
    return execFileSync(stagecraft, words, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' });
  } catch (e) {
    if (e.status !== 3) throw e;
    return e.stdout;
  }
};
const sweepText = axes => `schema: sweep/1\ntitle: Two schedules & </script><b>more\nbase: examples/quickstart\nbackend: ideal\naxes:\n${axes}`;
let browser, csv;

before(async () => {
  writeFileSync(at('few.yaml'), sweepText('  run.schedule: [gpipe, 1f1b]\n  run.micro_batches: {from: 4, to: 64, times: 4}\n  cluster.links.ndr.bandwidth: [4 GB/s, 50 GB/s]\n'));
  csv = run('sweep', 'few.yaml', '--format', 'csv').trimEnd().split('\n').map(line => line.split(','));
  run('report', 'few.db', '--out', 'few.html');
  writeFileSync(at('one.yaml'), sweepText('  run.schedule: [1f1b]\n'));
  run('report', 'one.yaml', '--out', 'one.html');
  writeFileSync(at('half.yaml'), sweepText('  plan.stages: [2, 4]\n  run.schedule: [1f1b, zb-h1, zb-v]\n  run.micro_batches: [4, 8]\n  model.tied: [false]\n'));
  run('report', 'half.yaml', '--out', 'half.html');
  browser = await Chromium.start(chromium, { width: 1400, height: 900 });
});
after(async () => {
  await browser?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const text = id => browser.evaluate(`document.getElementById('${id}').innerText`);
const cells = () => browser.evaluate(`[...document.querySelectorAll('#points tr:not([aria-hidden])')].map(r => [...r.cells].map(c => c.innerText))`);
const state = () => browser.evaluate('report.state()');
const change = by => browser.evaluate(`report.change(${JSON.stringify(by)})`).then(() => browser.frame());
const select = (id, value) => browser.evaluate(`{ const s = document.getElementById('${id}'); s.value = '${value}'; s.dispatchEvent(new Event('change', { bubbles: true })); }`).then(() => browser.frame());
const column = name => csv[0].indexOf(name);
/** Where the target of a picture is on the screen. */
const place = async (id, k) => {
  await browser.evaluate(`document.getElementById('${id}').scrollIntoView({ block: 'center' })`);
  await browser.frame();
  return browser.evaluate(`(() => { const t = report.targets['${id}'][${k}], { left, top } = document.getElementById('${id}').getBoundingClientRect(); return { x: left + t.x, y: top + t.y, point: t.point, text: t.text }; })()`);
};
const click = async ({ x, y }) => {
  await browser.mouse('mousePressed', x, y, { button: 'left', clickCount: 1 });
  await browser.mouse('mouseReleased', x, y, { button: 'left', clickCount: 1 });
};

const pause = milliseconds => new Promise(done => setTimeout(done, milliseconds));

test('the page opens without a request, an error or a message, with any title; its policy names its parts', async () => {
  for (const name of ['few.html', 'one.html']) {
    await browser.open(at(name));
    assert.deepEqual(browser.complaints(), []);
    assert.equal(browser.events.filter(e => e.method === 'Network.requestWillBeSent').length, 1);
    assert.equal(await browser.evaluate('document.title'), 'Two schedules & </script><b>more');
    assert.equal(await browser.evaluate('document.querySelectorAll("b, img").length'), 0);
    const page = readFileSync(at(name), 'utf8');
    for (const [tag, directive] of [['script', 'script-src'], ['style', 'style-src']]) {
      const [, content] = new RegExp(`<${tag}>(.*)</${tag}>`, 's').exec(page);
      assert.ok(page.includes(`${directive} 'sha256-${createHash('sha256').update(content).digest('base64')}'`));
    }
  }
});

test('the table has every point with its settings and metrics, or its outcome', async () => {
  await browser.open(at('few.html'));
  const rows = await cells();
  assert.equal(rows.length, csv.length);
  assert.deepEqual(rows[0].slice(1, 4), ['schedule', 'micro_batches', 'bandwidth']);
  const period = rows[0].indexOf('iteration time'), failed = csv.filter(r => r[column('status')] === 'infeasible');
  csv.slice(1).forEach((line, k) => {
    assert.deepEqual(rows[k + 1].slice(0, 4), line.slice(0, 4));
    const seconds = line[column('period_s')];
    assert.equal(rows[k + 1][period], seconds === '' ? '' : `${Number((seconds * 1e3).toPrecision(4))} ms`);
  });
  assert.equal(failed.length, 2);
  assert.equal(rows.filter(r => r.at(-1).startsWith('infeasible: plan: h100-0.gpu0 (stage 0, tok..l9) needs ')).length, 2);
  assert.match(await text('summary'), /^12 points of examples\/quickstart on ideal, 2 failed$/);
  assert.match(await text('origin'), /^few\.yaml, stagecraft \d+\.\d+\.\d+/);
  assert.deepEqual(csv[0].slice(column('status') + 1, column('code')), figuresOf('few.html').map(f => f.name), 'every metric is in the file, in the order of the page');
});

test('the page is accessible: names, roles, heads of tables, contrast in light and dark', async () => {
  for (const page of ['few.html', 'one.html']) {
    await browser.open(at(page));
    assert.deepEqual(await accessibilityProblems(browser, TEXT_PAIRS), [], page);
  }
});

test('the answer names the best of the points that are shown, and each picture is saved as SVG', async () => {
  await browser.open(at('few.html'));
  const answer = await text('answer'), rate = column('throughput_samples_per_s'), known = csv.slice(1).filter(r => r[column('status')] === 'ok');
  const best = known.reduce((a, b) => (Number(b[rate]) > Number(a[rate]) ? b : a));
  assert.ok(answer.startsWith(`Best throughput: ${Number(Number(best[rate]).toPrecision(4))}/s with schedule=${best[1]}, micro_batches=${best[2]}, bandwidth=${best[3]}`), answer);
  assert.match(answer, /What matters most: /);
  await change({ fixed: { 'run.schedule': '1f1b' } });
  assert.match(await text('answer'), /schedule=1f1b/);
  await change({ fixed: {} });
  for (const [id, words] of [['map', ['gpipe', 'run.schedule']], ['lines', ['1f1b', 'throughput']], ['front', ['peak memory']]]) {
    const svg = await browser.evaluate(`report.svg('${id}')`);
    for (const word of words) assert.ok(svg.includes(word), `${word} in ${id}`);
    assert.doesNotMatch(svg, /var\(|NaN|undefined/);
    const parsed = await browser.evaluate(`(() => { const d = new DOMParser().parseFromString(report.svg('${id}'), 'image/svg+xml'); return [d.querySelectorAll('parsererror').length, d.documentElement.nodeName, d.querySelectorAll('text').length > 3]; })()`);
    assert.deepEqual(parsed, [0, 'svg', true]);
  }
});

test('pictures leave out points on other numbers of devices, and say so on the page and in their files', async () => {
  await browser.open(at('half.html'));
  const note = '4 of 12 points are left out: they ran on 1 or 2 devices, and the others at the same plan.stages on 2 or 4.';
  for (const id of ['map', 'lines', 'front']) {
    assert.equal(await text(`${id}-note`), note);
    const points = await browser.evaluate(`report.targets['${id}'].map(t => t.point)`), { axes, figures } = await browser.evaluate('({ axes: report.sweep.axes.map(a => [...a.of]), figures: [...report.sweep.figures.find(f => f.name === "devices").values] })');
    assert.ok(points.length > 0 && points.every(i => axes[1][i] < 2 && figures[i] === [2, 4][axes[0][i]]), `${id}: ${points}`);
    const words = (await browser.evaluate(`report.svg('${id}')`)).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
    assert.ok(words.includes(note), `${id}: ${words.slice(-300)}`);
  }
  await select('lineX', 'run.micro_batches');
  assert.match(await text('lines-note'), /^\d+ of 12 points are left out: they ran on 1 or 4 devices, and the others on 2\.$/);
  await select('metric', 'mfu');
  assert.equal(await browser.evaluate(`document.getElementById('lines-note').hidden`), true, 'a share means the same on any number of devices');
});

test('the exported file has the values of the command line', async () => {
  await browser.open(at('few.html'));
  const shown = async () => (await browser.evaluate('report.csv()')).trimEnd().split('\n').map(line => line.split(','));
  const same = (a, b) => a === b || Number(a) === Number(b);
  const all = await shown();
  assert.equal(all.length, csv.length);
  all.forEach((line, r) => line.forEach((cell, c) => assert.ok(same(cell, csv[r][c]), `${cell} and ${csv[r][c]}`)));
  await change({ fixed: { 'run.schedule': '1f1b' }, sort: '-period_s' });
  const some = await shown(), expected = csv.filter(r => r[1] === '1f1b').sort((a, b) => b[column('period_s')] - a[column('period_s')]);
  assert.deepEqual(some.slice(1).map(r => r[0]), expected.map(r => r[0]));
  await browser.send('Page.setDownloadBehavior', { behavior: 'allow', downloadPath: folder });
  await browser.evaluate('document.getElementById("csv").click()');
  for (let k = 0; k < 100 && !existsSync(at('few.csv')); ++k) await new Promise(done => setTimeout(done, 50));
  assert.equal(readFileSync(at('few.csv'), 'utf8'), await browser.evaluate('report.csv()'));
});

test('a click on a title sorts; settings, endings and words filter', async () => {
  await browser.open(at('few.html'));
  const order = async () => (await cells()).slice(1).map(r => r[0]);
  const press = key => browser.evaluate(`document.querySelector('[data-key="${key}"]').click()`).then(() => browser.frame());
  await press('period_s');
  const up = await order(), known = csv.slice(1).filter(r => r[column('status')] === 'ok');
  assert.deepEqual(up.slice(0, known.length), [...known].sort((a, b) => a[column('period_s')] - b[column('period_s')]).map(r => r[0]));
  assert.equal(await browser.evaluate('document.querySelector("[aria-sort=ascending] button").dataset.key'), 'period_s');
  await press('period_s');
  assert.deepEqual((await order()).slice(known.length), up.slice(known.length), 'without a figure, still last');
  await select('status', 'failed');
  assert.equal((await order()).length, 2);
  await select('status', '');
  await browser.evaluate(`{ const w = document.getElementById('words'); w.value = 'gpipe bandwidth=4'; w.dispatchEvent(new Event('input')); }`);
  await browser.frame();
  assert.equal((await order()).length, 3);
  assert.match(await text('shown'), /^3 of 12 points; best throughput/);
  await browser.evaluate('document.getElementById("reset").click()');
  await browser.frame();
  assert.equal((await order()).length, 12);
});

test('the plots describe what is under the pointer, and a click or an arrow selects it', async () => {
  await browser.open(at('few.html'));
  for (const id of ['map', 'lines', 'front']) {
    const count = await browser.evaluate(`report.targets.${id}.length`), p = await place(id, count - 1);
    await browser.mouse('mouseMoved', p.x, p.y);
    assert.equal(await text('tip'), p.text.join('\n'));
    await click(p);
    assert.equal((await state()).point, String(p.point + 1));
    assert.match(await text('chosen-title'), new RegExp(`^Point ${p.point + 1}$`));
    await browser.mouse('mouseMoved', 2, 2);
    assert.equal(await browser.evaluate('document.getElementById("tip").hidden'), true);
    await browser.evaluate(`document.getElementById('${id}').focus({ preventScroll: true })`);
    const seen = new Set([p.point]);
    for (const key of ['ArrowLeft', 'ArrowUp', 'ArrowLeft', 'ArrowDown', 'ArrowRight']) {
      await browser.key(key);
      seen.add(Number((await state()).point) - 1);
    }
    assert.ok(seen.size >= 3, `${id}: arrows choose ${[...seen]}`);
    await browser.key('Escape');
    assert.equal((await state()).point, '');
  }
});

test('the map shows the best over the free settings, and marks empty cells', async () => {
  await browser.open(at('few.html'));
  const of = (schedule, micro) => csv.filter(r => r[1] === schedule && r[2] === micro && r[column('status')] === 'ok').map(r => Number(r[column('throughput_samples_per_s')]));
  const map = () => browser.evaluate('report.targets.map.map(t => t.text.join("; "))');
  const best = Math.max(...of('1f1b', '16'));
  assert.ok((await map()).includes(`schedule=1f1b, micro_batches=16; throughput ${Number(best.toPrecision(4))}/s, best of 2 points`));
  assert.ok((await map()).includes('schedule=gpipe, micro_batches=64; no throughput 0 points, and 2 without it'));
  await select('how', 'mean');
  const mean = of('1f1b', '16').reduce((s, v) => s + v) / 2;
  assert.ok((await map()).includes(`schedule=1f1b, micro_batches=16; throughput ${Number(mean.toPrecision(4))}/s, mean of 2 points`));
  await change({ fixed: { 'cluster.links.ndr.bandwidth': '4 GB/s' } });
  assert.ok((await map()).some(t => /micro_batches=16; throughput [0-9.]+\/s of 1 point$/.test(t)));
});

test('the front is drawn and named, and its names select points', async () => {
  await browser.open(at('few.html'));
  const names = await browser.evaluate('[...document.querySelectorAll("#front-list button")].map(b => b.innerText)');
  assert.ok(names.length >= 1);
  assert.match(names[0], /^schedule=.*, micro_batches=.*, bandwidth=.*: [0-9.]+\/s, [0-9.]+ GiB$/);
  assert.match(await text('front-count'), new RegExp(`^${names.length} of 10 points ${names.length === 1 ? 'is' : 'are'} on the front: .*; colors as in Lines:$`));
  await browser.evaluate('document.querySelector("#front-list button").click()');
  assert.match(await text('chosen-title'), /^Point \d+$/);
  assert.equal(await browser.evaluate('document.querySelectorAll("#front-list [aria-pressed=true]").length'), 1);
});

test('the keyboard alone operates the table', async () => {
  await browser.open(at('few.html'));
  await browser.evaluate('document.getElementById("scroller").focus()');
  for (const [key, point] of [['ArrowDown', '1'], ['ArrowDown', '2'], ['End', '12'], ['ArrowUp', '11'], ['Home', '1'], ['Escape', '']]) {
    await browser.key(key);
    assert.equal((await state()).point, point, key);
  }
  await browser.key('/');
  assert.equal(await browser.evaluate('document.activeElement.id'), 'words');
});

test('the address keeps the view', async () => {
  await browser.open(at('few.html'));
  await change({ metric: 'bubble', how: 'worst', lineBy: '', sort: '-bubble', point: '5', fixed: { 'run.schedule': 'gpipe' } });
  const leave = () => browser.send('Page.navigate', { url: 'about:blank' });  // Otherwise only the part after # would change.
  const [address, kept] = [await browser.evaluate('location.hash'), await state()];
  await leave();
  await browser.open(at('few.html') + address);
  assert.deepEqual(await state(), kept);
  assert.equal(await text('chosen-title'), 'Point 5');
  await leave();
  await browser.open(at('few.html') + '#metric=nonsense&point=99&fix.run.schedule=none');
  assert.equal((await state()).metric, 'throughput_samples_per_s');
  assert.deepEqual((await state()).fixed, {});
  assert.deepEqual(browser.complaints(), []);
});

test('the command of a point runs it, and the next page links what it wrote', async () => {
  await browser.open(at('few.html'));
  await change({ point: '5' });
  const command = await browser.evaluate('document.querySelector("#chosen pre").textContent');
  assert.match(command, /^stagecraft run examples\/quickstart --backend ideal --set run\.schedule=gpipe --set run\.micro_batches=64 --set 'cluster\.links\.ndr\.bandwidth=4 GB\/s' --out few-ideal\/[0-9a-f]{12}$/);
  assert.match(await text('chosen'), /infeasible \(memory\): plan: h100-0\.gpu0 \(stage 0, tok\.\.l9\) needs /);
  await change({ point: '7' });
  const good = await browser.evaluate('document.querySelector("#chosen pre").textContent');
  execSync(good, { cwd: folder, stdio: 'ignore', env: { ...process.env, PATH: `${dirname(stagecraft)}:${process.env.PATH}` } });
  run('report', 'few.db', '--out', 'few.html');
  await browser.open(at('few.html'));
  await change({ point: '7' });
  await browser.evaluate('document.querySelector("#chosen a").click()');
  const arrived = 'document.readyState === "complete" && location.pathname.endsWith("/report.html")';
  while (!(await browser.evaluate(arrived).catch(() => false))) await pause(20);  // Between two pages nothing answers.
  const [key] = /[0-9a-f]{12}$/.exec(good), results = JSON.parse(readFileSync(at(`few-ideal/${key}/results.json`)));
  assert.equal(Number(csv[7][column('makespan_s')]), results.makespan_s);
  assert.ok(results.provenance.scenario_sha256.startsWith(key));
});

test('one point alone has no plots and is selected at once', async () => {
  await browser.open(at('one.html'));
  assert.equal(await text('chosen-title'), 'Point 1');
  assert.equal(await browser.evaluate('document.getElementById("pictures").hidden'), true);
  assert.equal((await cells()).length, 2);
});

test('where every point failed, the table says why', async () => {
  writeFileSync(at('none.yaml'), sweepText('  plan.stages: [5, 6]\n  run.micro_batches: [4, 8]\n'));
  run('report', 'none.yaml', '--out', 'none.html');
  await browser.open(at('none.html'));
  assert.deepEqual(browser.complaints(), []);
  assert.equal((await cells()).filter(r => /^(infeasible|input): /.test(r.at(-1))).length, 4);
  assert.equal(await browser.evaluate('document.getElementById("pictures").hidden'), true);
  await browser.evaluate('document.querySelector("#points [data-point]").click()');
  assert.equal(await text('chosen-title'), 'Point 1');
  assert.deepEqual(browser.complaints(), []);
});

test('dark and light differ, and paper is light with every row on it', async () => {
  await browser.open(at('few.html'));
  const corner = () => browser.evaluate('[...document.getElementById("lines").getContext("2d", { willReadFrequently: true }).getImageData(1, 1, 1, 1).data]');
  const media = value => browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] }).then(() => browser.frame());
  const light = await corner();
  await media('dark');
  const dark = await corner();
  assert.ok(light[0] > 200 && dark[0] < 60, `${light} and ${dark}`);
  await browser.evaluate('dispatchEvent(new Event("beforeprint"))');
  assert.deepEqual(await corner(), light);
  assert.equal((await cells()).length, 13);
  await browser.evaluate('dispatchEvent(new Event("afterprint"))');
  assert.deepEqual(await corner(), dark);
  await media('light');
  const pdf = Buffer.from((await browser.send('Page.printToPDF', {})).data, 'base64');
  assert.equal(pdf.subarray(0, 5).toString(), '%PDF-');
});

test('hostile names of the sweep and of its values stay text', async () => {
  writeFileSync(at('hostile.yaml'), sweepText(`  title: [${HOSTILE_YAML}, plain]\n  run.schedule: [gpipe, 1f1b]\n`).replace(/^title: .*$/m, () => `title: ${HOSTILE_YAML}`));
  run('sweep', 'hostile.yaml');
  run('report', 'hostile.db', '--out', 'hostile.html');
  for (const width of [1400, 900]) {
    await browser.send('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false });
    await browser.open(at('hostile.html'));
    await change({ point: '1' });
    assert.deepEqual(browser.complaints(), []);
    assert.deepEqual(await hostileProblems(browser), []);
  }
  const svg = await browser.evaluate(`report.svg('front')`);
  assert.equal(await browser.evaluate(`new DOMParser().parseFromString(${JSON.stringify(svg)}, 'image/svg+xml').querySelectorAll('parsererror, img, script').length`), 0);
  await browser.send('Emulation.setDeviceMetricsOverride', { width: 1400, height: 900, deviceScaleFactor: 1, mobile: false });
});

test('with ten thousand points few rows exist, and every view is drawn', async () => {
  const page = readFileSync(at('few.html'), 'utf8'), [whole, data] = /id="data">(.*?)<\/script>/s.exec(page), many = JSON.parse(data), count = 10000;
  const repeated = list => Array.from({ length: count }, (_, i) => list[i % list.length]);
  many.number = Array.from({ length: count }, (_, i) => i + 1);
  many.key = repeated(many.key);
  many.ends.of = repeated(many.ends.of);
  for (const axis of many.axes) axis.of = repeated(axis.of);
  for (const f of many.figures) f.values = repeated(f.values);
  many.axes.push({ path: 'run.seed', values: Array.from({ length: 1000 }, (_, i) => i), of: many.number.map(n => n % 1000) });
  writeFileSync(at('many.html'), page.replace(whole, () => `id="data">${JSON.stringify(many).replaceAll('<', '\\u003c')}</script>`));
  await browser.open(at('many.html') + '#mapX=run.micro_batches&mapY=run.schedule');
  assert.deepEqual(browser.complaints(), []);
  assert.ok((await cells()).length < 120);
  assert.deepEqual(await browser.evaluate('[report.targets.map.length, report.targets.front.length]'), [6, csv.slice(1).reduce((sum, r, k) => sum + (r[column('status')] === 'ok' ? Math.ceil((count - k) / 12) : 0), 0)]);
  await browser.evaluate('document.getElementById("scroller").scrollTop = 1e9');
  await browser.frame();
  assert.equal((await cells()).at(-1)[0], String(count));
  await change({ point: '5000', sort: '-number' });
  assert.equal((await browser.evaluate('report.csv()')).split('\n')[1].split(',')[0], String(count));
});
