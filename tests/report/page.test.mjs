// The page in a browser: page.test.mjs STAGECRAFT, from the root of the project. 77 where there is no Chromium.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { accessibilityProblems, contrast, focusOrder, TEXT_PAIRS } from './accessible.mjs';
import { Chromium, chromiumHere } from './chromium.mjs';

const stagecraft = process.argv[2], folder = mkdtempSync(join(tmpdir(), 'report-')), chromium = chromiumHere();
const run = (...words) => execFileSync(stagecraft, words, { stdio: ['ignore', 'ignore', 'pipe'] });
const results = name => JSON.parse(readFileSync(join(folder, name, 'results.json')));
const at = name => join(folder, name);
let browser;

before(async () => {
  run('run', 'examples/quickstart', '-b', 'ideal', '--out', at('a'));
  run('run', 'examples/quickstart', '-b', 'ideal', '--set', 'run.schedule=gpipe', '--out', at('b'));
  run('report', at('a'), at('b'), '--out', at('two.html'));
  run('report', at('a'), '--out', at('one.html'));
  browser = await Chromium.start(chromium);
});
after(async () => {
  await browser?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const text = id => browser.evaluate(`document.getElementById('${id}').innerText`);
const cells = id => browser.evaluate(`[...document.querySelectorAll('#${id} tr')].map(r => [...r.cells].map(c => c.innerText))`);
const view = () => browser.evaluate('[report.state.view.from, report.state.view.to]');
const canvas = () => browser.evaluate('(({left, top}) => ({left, top}))(document.getElementById("view").getBoundingClientRect())');
const picture = () => browser.evaluate('document.getElementById("view").toDataURL()');
const click = id => browser.evaluate(`document.getElementById('${id}').click()`).then(() => browser.frame());
/** The middle of a span on the screen, and in the canvas. */
const place = async (r, name) => {
  await browser.evaluate('document.getElementById("scroller").scrollIntoView()');
  const { left, top } = await canvas();
  const inside = await browser.evaluate(`(() => {
    const run = report.runs[${r}], i = run.op.findIndex((op, k) => run.ops[op].text + run.micro[k] === '${name}');
    const row = report.rows().find(a => a.run === ${r} && a.lane && i >= a.lane.from && i < a.lane.to);
    return { x: report.x((run.start[i] + run.end[i]) / 2), y: row.y + row.height / 2 - document.getElementById('scroller').scrollTop };
  })()`);
  return { x: left + inside.x, y: top + inside.y, inside };
};
const colourAt = ({ x, y }, canvas = '#view') => browser.evaluate(`[...document.querySelector('${canvas}').getContext('2d', {willReadFrequently: true}).getImageData(${x} * devicePixelRatio, ${y} * devicePixelRatio, 1, 1).data]`);
const query = async q => {
  await browser.evaluate(`document.getElementById('query').value = '${q}'; document.getElementById('search').requestSubmit()`);
  await browser.frame();
};

test('the cards and the diagnosis have the numbers and sentences of the results, and the timeline is in the first screen', async () => {
  await browser.open(at('one.html'));
  const r = results('a'), [, bubble] = [r.period_s, `${(100 * r.bubble).toFixed(1)} %`], cards = await text('cards');
  for (const number of [`${Number((r.period_s * 1e3).toPrecision(4))} ms`, String(Number(r.throughput_samples_per_s.toPrecision(4))), bubble, '7.824 GiB', '16 in an iteration'])
    assert.ok(cards.includes(number), `${number} in ${cards}`);
  const answer = await text('answer'), best = r.diagnosis[0].suggestions.find(s => s.samples === r.samples), larger = r.diagnosis[0].suggestions.find(s => s.samples !== r.samples);
  assert.ok(answer.startsWith(`${r.diagnosis[0].sentence}\n`), answer);
  assert.ok(answer.includes(`Try ${best.change}: --set ${best.sets[0]} saves ${(100 * best.saved).toFixed(1)} % of the period`), answer);
  assert.ok(larger.saved > best.saved && answer.includes(`Or with another batch: ${larger.change}: `), answer);
  await browser.evaluate('scrollTo(0, 0)');
  const rows = await browser.evaluate('document.getElementById("view").getBoundingClientRect().top + report.rows().at(-1).y + report.rows().at(-1).height');
  assert.ok(rows < 900, `the last row ends at ${rows}`);
  const limits = await cells('limits');
  assert.equal(limits.length, r.diagnosis.length + 1);
});

test('the idle time of each device has the causes that the results have', async () => {
  for (const [name, ...words] of [['g1', 'examples/quickstart'], ['g2', 'examples/quickstart', '--set', 'run.schedule=zb-h1', '-b', 'simgrid'], ['g3', 'examples/llama-3-8b-4x8', '-b', 'simgrid'],
    ['g4', 'examples/straggler'], ['g5', 'examples/quickstart', '--set', 'run.schedule=interleaved', '--set', 'plan.stages=8'],
    ['g6', 'examples/quickstart', '--set', 'run.schedule={name: 2bw, drain_every: 2}', '--set', 'run.iterations=5'], ['g7', 'examples/quickstart', '--set', 'run.overlap=false', '-b', 'simgrid'],
    ['g9', 'examples/llama-3-8b-4x8', '--set', 'run.collectives=flows', '-b', 'fluid'],
    ['g8', 'examples/quickstart', '--set', 'run.overlap=false', '-b', 'fluid', '--set', 'run.schedule={name: 2bw, drain_every: 2}', '--set', 'run.iterations=5']]) {
    run('run', ...words, ...(words.includes('-b') ? [] : ['-b', 'ideal']), '--out', at(name));
    run('report', at(name), '--out', at(name + '.html'));
    await browser.open(at(name + '.html'));
    const sums = await browser.evaluate(`report.runs[0].devices.map((_, d) => {
      const sums = report.causes.map(() => 0), gaps = report.runs[0].lanesOf.has(d) ? report.gaps(0, d) : { end: [] };
      for (let i = 0; i < gaps.end.length; ++i) sums[gaps.key[i]] += (gaps.end[i] - gaps.start[i]) / 1e12;
      return Object.fromEntries(report.causes.map((cause, k) => [cause, sums[k]]));
    })`), { devices, length_s: length } = results(name);
    devices.forEach((d, k) => {
      if (!d.used) return;
      const idle = { start_up: d.idle.start_up_s, input: d.idle.input_s, drain: d.idle.drain_s, transfer: d.idle.transfer_s, collective: d.idle.collective_s, receiver: d.idle.receiver_s, other: d.idle.other_s };
      const shown = sums[k];
      for (const cause of Object.keys(idle)) assert.ok(Math.abs(shown[cause] - idle[cause]) < 1e-6 * length, `${name}, ${d.name}, ${cause}: ${shown[cause]} and ${idle[cause]}`);
    });
  }
});

test('the idle time that shrinks most is true with drains every n iterations and without overlap', async () => {
  for (const [page, first, second] of [['d1.html', 'g6', 'a'], ['d2.html', 'g6', 'g7'], ['d3.html', 'g8', 'g7']]) {
    run('report', at(first), at(second), '--out', at(page));
    await browser.open(at(page));
    const answer = await text('answer'), [, name, from, to] = /shrinks most: ([\w -]+), from ([\d.]+ \w+) to ([\d.]+ \w+) per sample/.exec(answer) ?? assert.fail(answer);
    const perSample = r => {
      const used = r.devices.filter(d => d.used), samples = Math.round(r.throughput_samples_per_s * r.period_s) * r.iterations;
      return Object.fromEntries(['start_up', 'input', 'drain', 'transfer', 'collective', 'receiver', 'other'].map(key => [key, used.reduce((sum, d) => sum + d.idle[key + '_s'], 0) / used.length / samples]));
    };
    const key = { 'start-up': 'start_up', messages: 'transfer', collectives: 'collective', 'no receiver': 'receiver' }[name] ?? name;
    const [fast, slow] = [first, second].map(results).sort((a, b) => b.throughput_samples_per_s - a.throughput_samples_per_s).map(perSample);
    for (const other of Object.keys(fast)) assert.ok(slow[key] - fast[key] >= slow[other] - fast[other] - 1e-12, `${page}: ${key} and ${other}`);
    const seconds = told => Number(told.split(' ')[0]) * { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1 }[told.split(' ')[1]];
    assert.ok(Math.abs(seconds(from) - slow[key]) < 1e-3 * slow[key] && Math.abs(seconds(to) - fast[key]) < 1e-3 * slow[key], answer);
  }
});

test('replicas share a row that a click or a key opens; rows are found by stage, and a press in the legend hides a kind', async () => {
  await browser.open(at('g3.html'));
  const devices = () => browser.evaluate('report.rows().filter(r => r.kind === "compute").map(r => r.weight)');
  assert.deepEqual(await devices(), [4, 4]);
  await browser.evaluate('document.getElementById("scroller").scrollIntoView()');
  const { left, top } = await canvas(), row = await browser.evaluate('report.rows().find(r => r.kind === "compute")');
  await browser.mouse('mouseMoved', left + 20, top + row.y + 8);
  assert.match(await text('tip'), /^4 devices, identical/);
  await browser.mouse('mousePressed', left + 20, top + row.y + 8, { button: 'left', clickCount: 1 });
  await browser.mouse('mouseReleased', left + 20, top + row.y + 8, { button: 'left', clickCount: 1 });
  assert.deepEqual(await devices(), [1, 1, 1, 1, 4]);
  await browser.evaluate('document.getElementById("view").focus()');
  await browser.key('x');
  assert.deepEqual(await devices(), [1, 1, 1, 1, 1, 1, 1, 1]);
  const filter = words => browser.evaluate(`{ const f = document.getElementById('filter'); f.value = '${words}'; f.dispatchEvent(new Event('input')); }`);
  await filter('stage 1');
  assert.deepEqual(await devices(), [1, 1, 1, 1]);
  await filter('');
  await browser.frame();
  const before = await picture();
  await browser.evaluate('document.querySelector("#legend button").click()');
  await browser.frame();
  assert.notEqual(await picture(), before);
  assert.equal(await browser.evaluate('document.querySelector("#legend button").getAttribute("aria-pressed")'), 'false');
  await browser.evaluate('document.querySelector("#legend button").click()');
  await browser.frame();
  assert.equal(await picture(), before);
  assert.deepEqual((await cells('ranks')).slice(1).map(row => row[0]), ['PP 0 x 4 replicas x TP 4', 'PP 1 x 4 replicas x TP 4']);
});

test('where hosts keep activations, the ranks say how much, in the table and on their bars; elsewhere they do not', async () => {
  await browser.open(at('one.html'));
  assert.equal((await cells('ranks'))[0].includes('host memory'), false);
  run('run', 'examples/almost-fits', '-b', 'ideal', '--set', 'run.micro_batches=16', '--set', 'run.iterations=1', '--out', at('hosts'));
  await browser.open(at('hosts/report.html'));
  const rows = await cells('ranks'), column = rows[0].indexOf('host memory');
  assert.deepEqual(rows.slice(1, 3).map(row => row[column]), ['6.641 GiB', '0 B']);
  assert.equal(results('hosts').ranks[0].host_memory_bytes, results('hosts').peak_host_memory_bytes);
  const notes = await browser.evaluate("[...document.querySelectorAll('#memory-bars .rank')].map(r => r.title)");
  assert.deepEqual([notes[0].endsWith(', 6.641 GiB in host memory'), notes[1].includes('host memory')], [true, false]);
});

test('a comparison says which run is faster and what differs, and warns where batches differ', async () => {
  await browser.open(at('two.html'));
  const [a, b] = [results('a'), results('b')], time = r => 1 / r.throughput_samples_per_s, better = time(b) < time(a) ? [b, a, 'B (gpipe)', 'A (1f1b)'] : [a, b, 'A (1f1b)', 'B (gpipe)'];
  const answer = await text('answer'), saved = 100 * (1 - time(better[0]) / time(better[1]));
  assert.ok(answer.startsWith(`${better[2]} needs ${saved.toFixed(1)} % less time per sample than ${better[3]}, with `), answer);
  assert.equal(await browser.evaluate('document.getElementById("notice").hidden'), true);
  const changes = await cells('changes');
  assert.deepEqual(changes.filter(row => row[0] === 'run.schedule.name'), [['run.schedule.name', '1f1b', 'gpipe']]);
  run('run', 'examples/quickstart', '-b', 'ideal', '--set', 'run.micro_batches=16', '--out', at('d'));
  run('report', at('a'), at('d'), '--out', at('batches.html'));
  await browser.open(at('batches.html'));
  assert.match(await text('notice'), /^Batches differ: A has 16, B has 32 samples/);
});

test('a large run opens at its warm-up, with a part drawn and a strip of the whole; its bars and numbers are of the whole run', async () => {
  run('run', 'examples/quickstart', '-b', 'ideal', '--set', 'run.micro_batches=8000', '--set', 'report.svg=false', '--set', 'report.trace=false', '--out', at('large'));
  await browser.open(at('large/report.html'));
  assert.deepEqual(browser.complaints(), []);
  const r = results('large'), [from, to] = await view();
  assert.match(await text('drawn'), /^A large run: the timeline has the first [\d.]+ m?s of [\d.]+ s\. The strip above it and all numbers are of the whole run\.$/);
  assert.ok(from === 0 && to < 1e12 * r.period_s / 100, `${from} to ${to}`);
  assert.equal(await browser.evaluate('report.runs[0].wholeLength / 1e12 > report.length / 1e12'), true);
  assert.equal(await browser.evaluate('document.getElementById("overview").hidden'), false);
  const bars = id => browser.evaluate(`[...document.querySelectorAll('#${id} .rank')].map(r => [r.querySelector('.name').innerText, r.querySelector('.number').innerText])`);
  const percent = share => `${(100 * share).toFixed(1)} % busy`;
  assert.deepEqual(await bars('time-bars'), r.ranks.map(k => [k.rank, percent((k.compute_s + k.optimizer_s) / r.period_s)]));
  assert.deepEqual((await bars('memory-bars')).map(b => b[0]), r.ranks.map(k => k.rank));
  const { left, top } = await browser.evaluate('(({left, top}) => ({left, top}))(document.getElementById("overview").getBoundingClientRect())');
  await browser.mouse('mousePressed', left + 40, top + 8, { button: 'left', clickCount: 1 });
  await browser.mouse('mouseReleased', left + 40, top + 8, { button: 'left', clickCount: 1 });
  assert.ok((await view())[0] > 0, 'a press on the strip moves the view');
});

test('no entry of the legend stands twice, and at 420 px nothing is wider than the page', async () => {
  await browser.open(at('one.html'));
  const entries = (await browser.evaluate(`[...document.querySelectorAll('#legend button')].map(b => b.innerText)`));
  assert.equal(new Set(entries).size, entries.length, entries.join());
  await browser.send('Emulation.setDeviceMetricsOverride', { width: 420, height: 900, deviceScaleFactor: 1, mobile: false });
  await browser.frame();
  assert.equal(await browser.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth'), true);
  assert.ok(await browser.evaluate('Math.min(...[...document.querySelectorAll("#limits td.text:not(:nth-child(2))")].map(c => c.clientWidth)) > 300'));
  await browser.send('Emulation.clearDeviceMetricsOverride');
});

test('idle devices are not drawn, and a note says so', async () => {
  await browser.open(at('one.html'));
  const idle = results('a').devices.filter(d => !d.used).map(d => d.name);
  assert.ok(idle.length > 4);
  assert.equal(await browser.evaluate("document.getElementById('ranks').nextElementSibling.innerText"),
    `${idle.slice(0, 3).join(', ')} and ${idle.length - 3} more do nothing, and are not shown.`);
  const drawn = await browser.evaluate('[...new Set(report.rows().filter(r => r.lane || r.memory).map(r => report.runs[r.run].devices[r.device]))]');
  assert.deepEqual(drawn, results('a').devices.filter(d => d.used).map(d => d.name));
});

test('the head says what each run is of', async () => {
  await browser.open(at('one.html'));
  const of = schedule => `model gpt2-medium; cluster two-node-mixed; schedule ${schedule}; plan PP 4 \u00b7 MBS 2 x 8 = 16 samples of 1,024 tokens, by balanced on 4 devices; weights flush; backend ideal; from scenarios/examples/quickstart.yaml`;
  assert.equal(await text('setups'), of('1f1b'));
  await browser.open(at('two.html'));
  assert.deepEqual((await text('setups')).split('\n').filter(line => line), [`A, ${at('a')}: ${of('1f1b')}`, `B, ${at('b')}: ${of('gpipe')}`]);
});

test('the page opens without a request, an error or a message; its policy names its parts', async () => {
  await browser.open(at('two.html'));
  assert.deepEqual(browser.complaints(), []);
  const page = readFileSync(at('two.html'), 'utf8');
  for (const [tag, directive] of [['script', 'script-src'], ['style', 'style-src']]) {
    const [, content] = new RegExp(`<${tag}>(.*?)</${tag}>`, 's').exec(page);
    assert.ok(page.includes(`${directive} 'sha256-${createHash('sha256').update(content).digest('base64')}'`));
  }
  assert.deepEqual(browser.events.filter(e => e.method === 'Network.requestWillBeSent').length, 1);
});

test('foreign scripts and styles do not run, and nothing can be fetched', async () => {
  await browser.open(at('one.html'));
  await browser.evaluate(`{
    const s = document.createElement('script'); s.textContent = 'window.intruder = 1'; document.body.append(s);
    const i = new Image(); i.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw='; i.onload = () => (window.intruder = 2); document.body.append(i);
    fetch('https://example.org/').then(() => (window.intruder = 3), () => {});
  }`);
  await new Promise(done => setTimeout(done, 200));
  assert.equal(await browser.evaluate('window.intruder ?? 0'), 0);
});

test('the tables have the values of the results, each run in its own column or row', async () => {
  await browser.open(at('two.html'));
  const [a, b] = [results('a'), results('b')], table = await cells('figures'), row = name => table.find(r => r[0] === name);
  assert.deepEqual(table[0].slice(1).map(c => c.split('\n')[0].slice(0, 2)), ['A:', 'B:', 'B ']);
  assert.equal(table[0][3], 'B against A');
  const ms = seconds => `${Number((seconds * 1e3).toPrecision(4))} ms`, percent = share => `${(100 * share).toFixed(1)} %`;
  assert.deepEqual(row('first iteration').slice(1, 3), [ms(a.makespan_s), ms(b.makespan_s)]);
  assert.equal(row('first iteration')[3], `\u2212${(100 * (1 - b.makespan_s / a.makespan_s)).toFixed(1)} %`);
  assert.deepEqual(row('bubble').slice(1, 3), [percent(a.bubble), percent(b.bubble)]);
  assert.equal(row('peak memory')[2], '12.98 GiB');
  const ranks = await cells('ranks'), used = a.devices.filter(d => d.used), heads = ranks[0].slice(2);
  assert.deepEqual(heads, ['first device', 'busy', 'bubble', 'exposed collectives', 'exposed messages', 'weights', 'gradients', 'optimizer', 'activations', 'messages', 'sum', 'free', 'in flight']);
  assert.deepEqual(ranks.slice(1).map(r => (r.length === heads.length + 2 ? r.slice(0, 2).join(' ') : r[0])), a.ranks.flatMap(r => [`${r.rank} A`, 'B']));
  assert.equal(a.ranks.length, 4);
  a.ranks.forEach((r, k) => {
    const row = ranks[2 * k + 1].slice(2), share = key => percent(r[key] / a.period_s);
    assert.deepEqual(row.slice(0, 5), [r.first_device, percent(r.utilisation), share('bubble_s'), share('exposed_collectives_s'), share('exposed_messages_s')]);
    assert.equal(row.at(-1), String(r.peak_activations));
    assert.ok(Math.abs(['weights', 'gradients', 'optimizer', 'activations', 'messages'].reduce((sum, c) => sum + r[c + '_bytes'], 0) - r.peak_memory_bytes) < 1);
  });
  const idle = await cells('idle'), causes = ['start_up', 'input', 'drain', 'transfer', 'collective'];
  assert.deepEqual(idle[0].slice(3, 9), ['computes', 'start-up', 'input', 'drain', 'messages', 'collectives']);
  used.forEach((d, k) => {
    assert.deepEqual(idle[2 * k + 1].slice(3, 9), [percent(1 - causes.reduce((sum, c) => sum + d.idle[c + '_s'], 0) / a.length_s), ...causes.map(c => percent(d.idle[c + '_s'] / a.length_s))]);
    assert.ok(Math.abs(causes.reduce((sum, c) => sum + d.idle[c + '_s'], d.utilisation * a.length_s) / a.length_s - 1) < 1e-9);
  });
  assert.equal((await cells('links')).length, 2 * new Set([...a.links, ...b.links].map(l => l.name + l.forward)).size + 1);
  assert.ok((await cells('origin')).some(r => r[0] === 'scenario, SHA-256' && r[1] === a.provenance.scenario_sha256 && r[2] === b.provenance.scenario_sha256));
  assert.equal(await browser.evaluate('document.querySelector("#scenarios pre").textContent'), readFileSync(join(at('a'), 'scenario.yaml'), 'utf8'));
  assert.equal(await browser.evaluate('document.querySelector("#scenarios details").open'), false);
});

test('the tooltip describes what is under the pointer, and follows it', async () => {
  const spans = readFileSync(join(at('a'), 'spans.csv'), 'utf8').split('\n').map(line => line.split(','));
  const row = spans.find(r => r[1] === '3B5'), p = await place(0, '3B5');
  await browser.mouse('mouseMoved', p.x, p.y);
  const tip = await text('tip');
  assert.match(tip, /^3B5 {2}backward\nstage 3, micro-batch 5, iteration 1\non a100-0\.gpu1, weights version 0\n/);
  const [, start, length] = /\n([0-9.]+) ms to [0-9.]+ ms, takes ([0-9.]+) ms/.exec(tip);
  assert.ok(Math.abs(start * 1e6 - row[10]) <= 1 && Math.abs(length * 1e6 - (row[11] - row[10])) <= 10);
  assert.equal(await browser.evaluate('document.getElementById("tip").hidden'), false);
  const { left, top } = await canvas();
  await browser.mouse('mouseMoved', left + 5, top + 5);
  assert.equal(await browser.evaluate('document.getElementById("tip").hidden'), true);
});

test('boxes have the colors of the legend, and change with the choice of colors', async () => {
  const hex = name => browser.evaluate(`getComputedStyle(document.documentElement).getPropertyValue('--${name}')`);
  for (const [name, kind] of [['0F1', 'forward'], ['2B3', 'backward'], ['0U0', 'update']]) {
    const p = await place(0, name), colour = (await hex(kind)).trim();
    const shown = await colourAt({ x: p.inside.x, y: p.inside.y - 9 });  // above the label
    assert.equal('#' + shown.slice(0, 3).map(v => v.toString(16).padStart(2, '0')).join(''), colour, name);
  }
  const byKind = await picture();
  await browser.evaluate(`document.getElementById('colour').value = 'micro'; document.getElementById('colour').dispatchEvent(new Event('change'))`);
  await browser.frame();
  assert.notEqual(await picture(), byKind);
  const same = await Promise.all(['0F1', '3B1'].map(async n => { const p = await place(0, n); return colourAt({ x: p.inside.x, y: p.inside.y - 9 }); }));
  assert.deepEqual(same[0], same[1]);
  await browser.evaluate(`document.getElementById('colour').value = 'kind'; document.getElementById('colour').dispatchEvent(new Event('change'))`);
  await browser.frame();
  assert.equal(await picture(), byKind);
});

test('the keyboard alone can zoom, move, step, search, and show all, critical path and messages', async () => {
  await browser.open(at('two.html'));
  await browser.evaluate('document.getElementById("view").focus()');
  assert.ok((await view())[1] < (await browser.evaluate('report.length')) / 2, 'the first view is one iteration');
  await browser.key('0');
  const all = await view(), whole = await picture();
  assert.deepEqual(all, [0, await browser.evaluate('report.length')]);
  for (const [closer, farther] of [['+', '-'], ['w', 's']]) {
    await browser.key(closer);
    const near = await view();
    assert.ok(Math.abs((near[1] - near[0]) / (all[1] - all[0]) - 0.8) < 1e-9);
    await browser.key('ArrowRight');
    assert.ok((await view())[0] > near[0]);
    await browser.key('ArrowLeft');
    await browser.key(farther);
    await browser.key('0');
    assert.deepEqual(await view(), all);
  }
  await browser.key('c');
  assert.notEqual(await picture(), whole);
  await browser.key('c');
  assert.equal(await picture(), whole);
  const rows = () => browser.evaluate('report.rows().length'), few = await rows();
  for (const [key, differ] of [['m', n => n > few], ['n', n => n < few]]) {
    await browser.key(key);
    assert.ok(differ(await rows()), key);
    await browser.key(key);
    assert.equal(await rows(), few);
  }
  await browser.key('2');
  const second = await view();
  await browser.key('[');
  assert.equal((await view())[1], second[0]);
  await browser.key(']');
  assert.deepEqual(await view(), second);
  await browser.key('0');
  await browser.key('.');
  assert.match(await text('status'), /^0F0 +forward/);
  await browser.key('.');
  assert.match(await text('status'), /^0F1 +forward/);
  await browser.key('Enter');
  assert.ok((await view())[1] - (await view())[0] < (all[1] - all[0]) / 2);
  await browser.key(',');
  assert.match(await text('status'), /^0F0 /);
  await browser.key('Escape');
  assert.equal(await text('status'), '');
  await browser.key('/');
  assert.equal(await browser.evaluate('document.activeElement.id'), 'query');
});

test('a search shows the op, also out of sight, and each further search the next one', async () => {
  await browser.open(at('two.html'));
  const shown = () => browser.evaluate(`(() => {
    const { run, span } = report.state.chosen, { from, to } = report.state.view, r = report.runs[run], s = document.getElementById('scroller');
    const row = report.rows().find(a => a.run === run && a.lane && span >= a.lane.from && span < a.lane.to);
    return { run, seen: r.start[span] >= from && r.end[span] <= to && row.y >= s.scrollTop && row.y + row.height <= s.scrollTop + s.clientHeight,
             wide: report.x(r.end[span]) - report.x(r.start[span]) };
  })()`);
  await query('3f7');
  assert.match(await text('status'), /^1 of \d+: 3F7 +forward; stage 3, micro-batch 7/);
  assert.deepEqual((({ run, seen }) => [run, seen])(await shown()), [0, true]);
  await query('3f7');
  assert.match(await text('status'), /^2 of /);
  const second = await shown();
  assert.deepEqual([second.run, second.seen, second.wide >= 11], [1, true, true]);
  await query('0>1:0F2');
  assert.match(await text('status'), /0>1:0F2 +send, 4 MiB; .*on h100-0.gpu0/);
  assert.ok((await shown()).seen);
  await query('99F99');
  assert.match(await text('status'), /^There is no op 99F99/);
});

test('the wheel zooms at the pointer once the timeline has the focus, a drag selects, and with Shift it moves', async () => {
  await browser.open(at('two.html'));
  const p = await place(0, '1B4'), all = await view();
  await browser.mouse('mouseWheel', p.x, p.y, { deltaX: 0, deltaY: -40 });
  assert.deepEqual(await view(), all, 'the page scrolls');
  await browser.evaluate('document.getElementById("view").focus(); document.getElementById("scroller").scrollIntoView()');
  const under = () => browser.evaluate(`report.hit(${p.inside.x}, ${p.inside.y}).text[0]`);
  const before = await under();
  await browser.mouse('mouseWheel', p.x, p.y, { deltaX: 0, deltaY: -400 });
  await browser.frame();
  const near = await view();
  assert.ok(near[1] - near[0] < 0.9 * (all[1] - all[0]));
  assert.equal(await under(), before);
  const drag = async (by, modifiers) => {
    await browser.mouse('mousePressed', p.x, p.y, { button: 'left', clickCount: 1, modifiers });
    await browser.mouse('mouseMoved', p.x + by / 2, p.y, { button: 'left', buttons: 1, modifiers });
    await browser.mouse('mouseMoved', p.x + by, p.y, { button: 'left', buttons: 1, modifiers });
    await browser.mouse('mouseReleased', p.x + by, p.y, { button: 'left', clickCount: 1, modifiers });
  };
  await drag(100, 8);
  const moved = await view();
  assert.ok(moved[0] < near[0] && Math.abs(moved[1] - moved[0] - (near[1] - near[0])) < 1);
  await drag(80, 0);
  assert.deepEqual(await view(), moved);
  const marked = await browser.evaluate('report.state.marked');
  assert.ok(Math.abs((marked[1] - marked[0]) / (moved[1] - moved[0]) - 80 / (await browser.evaluate('report.x(report.state.view.to) - report.x(report.state.view.from)'))) < 1e-9);
  await new Promise(done => setTimeout(done, 150));
  assert.match(await text('parts'), /selected .* of device time is work/);
  await click('to-selection');
  assert.deepEqual(await view(), marked);
  assert.equal(await browser.evaluate('report.state.marked'), null);
  await click('all');
  assert.deepEqual(await view(), [0, await browser.evaluate('report.length')]);
  const q = await place(0, '1B4');
  await browser.mouse('mousePressed', q.x, q.y, { button: 'left', clickCount: 1 });
  await browser.mouse('mouseReleased', q.x, q.y, { button: 'left', clickCount: 1 });
  assert.match(await text('status'), /^1B4 /);
});

test('dark and light differ, paper is light, and all rows are on it', async () => {
  await browser.open(at('two.html'));
  const corner = () => colourAt({ x: 2, y: 2 });
  const media = value => browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
  const light = await corner();
  await media('dark');
  await browser.frame();
  const dark = await corner();
  assert.ok(light[0] > 200 && dark[0] < 60, `${light} and ${dark}`);
  await browser.evaluate('dispatchEvent(new Event("beforeprint"))');
  assert.deepEqual(await colourAt({ x: 2, y: 2 }, '#strips canvas'), light);
  assert.equal(await browser.evaluate('[...document.querySelectorAll("#strips canvas")].reduce((sum, strip) => sum + parseFloat(strip.style.height), 0) === parseFloat(document.getElementById("spacer").style.height)'), true);
  await browser.evaluate('dispatchEvent(new Event("afterprint"))');
  assert.equal(await browser.evaluate('document.getElementById("strips").childElementCount'), 0);
  assert.deepEqual(await corner(), dark);
  await media('light');
  const pdf = Buffer.from((await browser.send('Page.printToPDF', { printBackground: false })).data, 'base64');
  assert.ok(pdf.subarray(0, 5).toString() === '%PDF-' && pdf.length > 20000);
});

test('every control and table has a name for screen readers', async () => {
  await browser.open(at('two.html'));
  await browser.send('Accessibility.enable');
  const { nodes } = await browser.send('Accessibility.getFullAXTree');
  const roles = ['button', 'checkbox', 'combobox', 'searchbox', 'application', 'heading', 'search', 'columnheader', 'rowheader'];
  const nameless = nodes.filter(n => !n.ignored && roles.includes(n.role?.value) && !['search', 'columnheader'].includes(n.role.value) && !n.name?.value);
  assert.deepEqual(nameless.map(n => n.role.value), []);
  assert.ok(nodes.filter(n => n.role?.value === 'button').length >= 3);
  assert.equal(nodes.filter(n => n.role?.value === 'application').length, 1);
  assert.equal(await browser.evaluate('document.documentElement.lang'), 'en');
});

test('the pages are accessible: names, roles, heads of tables, contrast in light and dark, order of the focus', async () => {
  for (const page of ['one.html', 'two.html', 'g3.html']) {
    await browser.open(at(page));
    await new Promise(done => setTimeout(done, 150));
    assert.deepEqual(await accessibilityProblems(browser, TEXT_PAIRS), [], page);
  }
  await browser.open(at('one.html'));
  const order = await focusOrder(browser, 14), ids = ['theme', 'closer', 'farther', 'critical', 'messages', 'memory', 'colour', 'query', 'filter'];
  assert.deepEqual(order.filter(id => ids.includes(id)), ids);
});

test('labels on boxes have contrast in light and dark', async () => {
  await browser.open(at('two.html'));
  for (const theme of ['light', 'dark']) {
    await browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] });
    await browser.frame();
    for (const [fill, ink] of await browser.evaluate('report.inks()')) {
      const long = hex => (hex.length === 4 ? '#' + [...hex.slice(1)].map(c => c + c).join('') : hex);
      assert.ok(contrast(fill, long(ink)) >= 4.5, `${ink} on ${fill} in ${theme}: ${contrast(fill, long(ink))}`);
    }
  }
  await browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: 'light' }] });
});

test('names of any length and direction stay in their places', async () => {
  const name = 'x'.repeat(300) + ' \u202e\u05e9\u05dc\u05d5\u05dd \u0627\u0644 {{data}} ' + '</script>';
  const text = JSON.stringify(name).slice(1, -1), quoted = '"' + name.replaceAll('\u202e', '\\u202e') + '"';  // As CSV files have it.
  run('run', 'examples/quickstart', '-b', 'ideal', '--out', at('h'));
  writeFileSync(join(at('h'), 'results.json'), readFileSync(join(at('h'), 'results.json'), 'utf8').replaceAll('h100-0.gpu0', text).replaceAll('gpt2-medium', text));
  for (const file of ['spans.csv', 'memory.csv'])
    writeFileSync(join(at('h'), file), readFileSync(join(at('h'), file), 'utf8').replaceAll('h100-0.gpu0', quoted));
  for (const [page, ...runs] of [['h1.html', 'h'], ['h2.html', 'h', 'b']]) {
    run('report', ...runs.map(at), '--title', name, '--out', at(page));
    for (const width of [1400, 900, 640]) {
      await browser.send('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false });
      await browser.open(at(page));
      assert.deepEqual(browser.complaints(), []);
      assert.equal(await browser.evaluate('document.documentElement.scrollWidth <= innerWidth'), true, `${page} at ${width}`);
      assert.equal(await browser.evaluate("document.body.innerText.includes('\\u202e')"), false, 'marks that turn the direction are replaced');
    }
  }
  await browser.send('Emulation.clearDeviceMetricsOverride');
});

test('names with tags and quotes are only text', async () => {
  const bad = '</script><img src=x onerror=hacked=1><b>"\'&amp;';
  const hostile = readFileSync(join(at('a'), 'results.json'), 'utf8').replaceAll('h100-0.gpu0', JSON.stringify(bad).slice(1, -1));
  run('run', 'examples/quickstart', '-b', 'ideal', '--out', at('c'));
  writeFileSync(join(at('c'), 'results.json'), hostile);
  for (const file of ['spans.csv', 'memory.csv'])
    writeFileSync(join(at('c'), file), readFileSync(join(at('c'), file), 'utf8').replaceAll('h100-0.gpu0', '"' + bad.replaceAll('"', '""') + '"'));
  run('report', at('c'), '--title', bad, '--out', at('bad.html'));
  await browser.open(at('bad.html'));
  assert.deepEqual(browser.complaints(), []);
  assert.equal(await browser.evaluate('document.title'), bad);
  assert.equal(await text('ranks').then(t => t.includes(bad)), true);
  assert.equal(await browser.evaluate('document.querySelectorAll("b, img").length + (window.hacked ?? 0)'), 0);
});

test('simulated and real runs have a column each, and planned values stay apart from measured ones', async () => {
  run('report', 'examples/teacher', '-b', 'ideal', '-b', 'cpu', '--out', at('real.html'));
  await browser.open(at('real.html'));
  assert.deepEqual(browser.complaints(), []);
  const table = await cells('figures');
  assert.match(table[0][1], /simulated by ideal/);
  assert.match(table[0][2], /measured by cpu/);
  const measured = table.find(r => r[0] === 'peak memory, measured');
  assert.equal(measured[1], '\u2013');
  assert.match(measured[2], /KiB$/);
  assert.equal(await browser.evaluate('report.runs.length'), 2);
});

test('changes of a machine are bands with a legend, and the period is labeled as a mean', async () => {
  run('run', 'examples/straggler', '-b', 'ideal', '--out', at('s'));
  run('report', at('s'), '--out', at('s.html'));
  await browser.open(at('s.html'));
  assert.deepEqual(browser.complaints(), []);
  assert.match((await cells('figures')).find(r => r[0] === 'iteration time').at(-1), /^the mean of those after the first/);
  const origin = await cells('origin');
  assert.equal(origin.find(r => r[0] === 'changes')[1], results('s').changes.join('; '));
  assert.equal(origin.find(r => r[0] === 'jitter')[1], '2 % at most, of every op');
  assert.match(await text('legend'), /the machine changes/);
  const hover = (device, milliseconds) => browser.evaluate(`(() => {
    const run = report.runs[0], row = report.rows().find(r => r.kind === 'compute' && run.devices[r.device] === '${device}');
    return report.hit(report.x(${milliseconds} * 1e9), row.y + 5 - document.getElementById('scroller').scrollTop)?.text ?? [];
  })()`);
  assert.ok((await hover('a100-0.gpu0', 115)).includes('a100-0.gpu0 down from 100 ms to 130 ms'));
  assert.ok(!(await hover('a100-0.gpu0', 135)).some(line => line.includes('down')));
  assert.ok((await hover('h100-0.gpu1', 30)).includes('h100-0.gpu1 at 70 %'));
  await browser.open(at('one.html'));
  assert.equal((await cells('figures')).find(r => r[0] === 'iteration time').at(-1), 'one more iteration, back to back');
  assert.ok(!(await cells('origin')).some(r => ['changes', 'jitter'].includes(r[0])));
});

test('each link has a strip over the run; of many links the busiest, and others by name', async () => {
  run('run', 'examples/pipeline-16384', '-b', 'ideal', '--set', 'cluster.devices=40', '--set', 'plan.stages=40', '--set', 'model.layers=40', '--out', at('l'));
  run('report', at('l'), '--out', at('l.html'));
  await browser.open(at('l.html'));
  const names = async () => (await cells('links')).slice(1).map(r => r[0]);
  const busiest = [...results('l').links].sort((a, b) => b.utilisation - a.utilisation).slice(0, 24).map(l => `${l.name} ${l.forward ? '\u2192' : '\u2190'}`);
  assert.deepEqual(await names(), busiest);
  assert.equal(await text('links-note'), `The busiest 24 of ${results('l').links.length}.`);
  const strip = await browser.evaluate(`[...document.querySelector('#links canvas').getContext('2d').getImageData(0, 0, 100, 1).data].filter((_, k) => k % 4 === 3)`);
  const percents = results('l').links[0].percent_over_time.split(' ').map(Number);
  assert.deepEqual(strip.map(alpha => alpha > 0), percents.map(p => p > 0));
  const find = async words => {
    await browser.evaluate(`document.getElementById('link-query').value = '${words}'; document.getElementById('link-query').dispatchEvent(new Event('input'))`);
    return names();
  };
  assert.deepEqual((await find('GPU39.')).sort(), ['gpu39.link \u2190', 'gpu39.link \u2192']);
  assert.deepEqual(await find('<b>'), []);
  assert.equal(await text('links-note'), 'No link has <b> in its name.');
  assert.deepEqual(await find(''), busiest);
  await browser.open(at('one.html'));
  assert.equal(await browser.evaluate('document.getElementById("link-find").hidden'), true);
});

test('links whose directions share the bandwidth have no arrow', async () => {
  run('run', 'examples/carved-gpu', '-b', 'fluid', '--out', at('memory'));
  run('report', at('memory'), '--out', at('memory.html'));
  await browser.open(at('memory.html'));
  const names = (await cells('links')).slice(1).map(r => r[0]);
  assert.equal(names[0], 'memory');
  assert.deepEqual(names.slice(1).sort(), ['messages \u2190', 'messages \u2192']);
});

test('visible parts are drawn before the rest of a large page has arrived', async () => {
  run('run', 'examples/pipeline-16384', '-b', 'ideal', '--set', 'cluster.devices=64', '--set', 'plan.stages=64', '--set', 'model.layers=64', '--set', 'run.micro_batches=400', '--out', at('m'));
  run('report', at('m'), '--out', at('m.html'));
  await browser.open(at('m.html'));
  assert.deepEqual(browser.complaints(), []);
  assert.ok(await browser.evaluate('report.runs[0].lanes.every(l => l.there) && report.runs[0].memory.every(m => m.there)'));
  const whole = await picture();
  const marks = await browser.evaluate('performance.getEntriesByType("mark").map(m => m.name)');
  assert.ok(marks.includes('drawn') && marks.includes('whole'));
  const expected = readFileSync(join(at('m'), 'spans.csv'), 'utf8').trim().split('\n').length - 1;
  assert.equal(await browser.evaluate('report.runs[0].op.length'), expected);
  await browser.evaluate('document.getElementById("scroller").scrollTop = 1e6');
  await browser.frame();
  assert.notEqual(await picture(), whole);
});
