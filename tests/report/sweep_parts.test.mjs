// Which points of a sweep are shown, in which order, and what the pictures show of them, against the plainest way to say it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import test from 'node:test';
import { draws, sweepPage as page } from './scripts.mjs';

const column = (count, make) => Array.from({ length: count }, (_, i) => make(i));

/** A sweep over two axes of sizes and one of names, some points of which set nothing, failed or have not run. */
function randomSweep(pick, count) {
  const of = values => column(count, () => pick(-1, values - 1)), ends = column(count, () => pick(-1, 2));
  const figure = (name, more) => ({ name, ...more, values: ends.map(e => (e === 0 && pick(0, 9) > 0 ? pick(1, 12) : null)) });
  return page.decodeSweep({
    name: 's', title: 't', backend: 'ideal', version: 'v', base: 'b', found: true, folder: 's-ideal', out: 's-ideal',
    number: column(count, i => i + 1), key: column(count, i => `k${i}`), kept: [],
    axes: [{ path: 'run.n', values: [8, 4, 16], of: of(3) }, { path: 'run.schedule', values: ['1f1b', 'gpipe'], of: of(2) },
      { path: 'links.a.bandwidth', values: ['2 GB/s', '10 Gbit/s', '500 MB/s'], of: of(3) }],
    ends: { values: [{ status: 'ok', code: '', message: '' }, { status: 'infeasible', code: 'memory', message: 'too much' }, { status: 'crash', code: '', message: 'signal 9' }], of: ends },
    figures: [figure('period_s'), figure('throughput_samples_per_s', { better: 1 }), figure('bubble', { unit: 'share' })],
  });
}

test('values are ordered by size, and points keep their order', () => {
  const sweep = randomSweep(draws(1), 200);
  assert.deepEqual(sweep.axes.map(a => a.texts), [['4', '8', '16'], ['1f1b', 'gpipe'], ['500 MB/s', '10 Gbit/s', '2 GB/s']]);
  const raw = { path: 'run.n', values: [8, 4, 16], of: [0, 1, 2, -1, 1] }, axis = page.decodeAxis(raw, 'n');
  assert.deepEqual([...axis.of].map(v => (v < 0 ? null : axis.values[v])), [8, 4, 16, null, 4]);
});

test('quantities are compared by what they are worth, and names are no quantities', () => {
  assert.deepEqual(page.sizesOf(['1 GB/s', '8 Gbit/s', '1 MiB/s']), [1e9, 1e9, 2 ** 20]);
  assert.deepEqual(page.sizesOf(['40 us', '1 ms', '2s']).map(v => Number(v.toPrecision(12))), [4e-5, 1e-3, 2]);
  assert.deepEqual(page.sizesOf([1, 2.5]), [1, 2.5]);
  for (const values of [['1f1b', 'gpipe'], [1, '2 GB/s'], ['1 GB', '1 GB/s'], [true], ['. s'], [[1, 2]]]) assert.equal(page.sizesOf(values), null);
});

test('values are written as --set reads them', () => {
  assert.deepEqual(['1f1b', '25 GB/s', 8, true, [1, 'a b'], { name: 'interleaved', chunks: 2 }, { a: 'x: y' }].map(v => page.valueText(v)),
    ['1f1b', '25 GB/s', '8', 'true', '[1, a b]', '{name: interleaved, chunks: 2}', '{a: "x: y"}']);
});

test('short names of maps have the fields that differ', () => {
  const link = { bandwidth: '400 Gbit/s' };
  const trees = [1, 2].map(thin => ({ generator: 'fat_tree', down: [8, 2], oversubscription: [thin], type: 'h100-sxm', link }));
  assert.deepEqual(page.namesOf(trees), ['[1]', '[2]']);
  const axis = page.decodeAxis({ path: 'cluster', values: [...trees, { generator: 'torus', sizes: [4, 4], type: 'h100-sxm', link }], of: [0, 1, 2, -1] }, 'cluster');
  assert.deepEqual([2, 0, -1].map(v => page.axisName(axis, v)), ['torus [4, 4]', 'fat_tree [8, 2] [1]', 'base']);
  assert.equal(page.axisText(axis, 0), page.valueText(trees[0]), 'and in full where there is room');
  for (const values of [['a b', 'a c'], [{ a: 1, b: 2 }, { b: 1, a: 2 }, { a: 1, c: 2 }], [{ a: 1 }, {}], [{ a: 1 }, 'a']])
    assert.deepEqual(page.namesOf(values), values.map(v => page.valueText(v)));
});

test('a page opens on the loss after training, else on the period, or the rate if samples differ', () => {
  const opens = figures => page.firstMetric({ ran: [1, 1, 0], metrics: Object.entries(figures).map(([name, values]) => ({ name, values })) });
  const period_s = [1, 2, NaN], samples = [8, 8, NaN];
  assert.equal(opens({ period_s, samples, final_loss: [3, 2, NaN] }), 'final_loss');
  assert.equal(opens({ period_s, samples, final_loss: [3, NaN, NaN] }), 'period_s');
  assert.equal(opens({ period_s, samples }), 'period_s');
  assert.equal(opens({ period_s, throughput_samples_per_s: [1, 1, NaN], samples: [8, 16, NaN] }), 'throughput_samples_per_s');
  assert.equal(opens({ bubble: [0, 0, NaN] }), 'bubble');
  assert.equal(opens({}), '');
});

test('shown points match every selected setting, ending and word', () => {
  const pick = draws(2);
  for (let trial = 0; trial < 200; ++trial) {
    const sweep = randomSweep(pick, pick(1, 80)), fixed = {}, status = ['', 'ok', 'failed'][pick(0, 2)], words = ['', 'gpipe', 'MEMORY too', 'signal', '1f1b 16'][pick(0, 4)];
    for (const axis of sweep.axes) if (pick(0, 2) === 0) fixed[axis.path] = axis.texts[pick(0, axis.texts.length - 1)];
    const all = column(sweep.count, i => i), expected = all.filter(i => {
      const text = `${i + 1} ${page.labelOf(sweep, i)} ${Object.values(page.endOf(sweep, i)).join(' ')}`.toLowerCase();
      return sweep.axes.every(a => fixed[a.path] === undefined || (a.of[i] >= 0 && a.texts[a.of[i]] === fixed[a.path])) &&
        (status === '' || (page.endOf(sweep, i).status === 'ok') === (status === 'ok')) && words.toLowerCase().split(' ').every(w => text.includes(w));
    });
    assert.deepEqual(page.shownPoints(sweep, { fixed, status, words }), expected);
  }
});

test('sorting keeps all points, puts unknown values last in both directions, and is stable', () => {
  const pick = draws(3);
  for (let trial = 0; trial < 100; ++trial) {
    const sweep = randomSweep(pick, pick(1, 60)), points = column(sweep.count, i => i).filter(() => pick(0, 3) > 0);
    for (const key of ['number', 'run.n', 'run.schedule', 'period_s'])
      for (const down of [false, true]) {
        const sorted = page.sortedPoints(sweep, points, key, down), axis = sweep.axes.find(a => a.path === key);
        assert.deepEqual([...sorted].sort((a, b) => a - b), points);
        const value = i => (key === 'number' ? i : axis ? (axis.of[i] < 0 ? NaN : axis.sizes ? axis.sizes[axis.of[i]] : axis.of[i]) : sweep.figures[0].values[i]);
        for (let k = 1; k < sorted.length; ++k) {
          const [x, y] = [value(sorted[k - 1]), value(sorted[k])];
          if (Number.isNaN(x)) assert.ok(Number.isNaN(y));
          if (x === y || Number.isNaN(x)) assert.ok(sorted[k - 1] < sorted[k]);
          else if (!Number.isNaN(y)) assert.ok(down ? x > y : x < y);
        }
      }
  }
});

test('each cell of the map, and each mark of a line, is the best, the mean or the worst of its points', () => {
  const pick = draws(4);
  for (let trial = 0; trial < 150; ++trial) {
    const sweep = randomSweep(pick, pick(1, 120)), points = column(sweep.count, i => i), [x, y] = sweep.axes;
    for (const metric of sweep.figures)
      for (const how of ['best', 'mean', 'worst']) {
        const map = page.heatMap(points, x, y, metric, how);
        assert.equal(map.cells.reduce((sum, c) => sum + c.count + c.failed, 0), points.length);
        for (const cell of map.cells) {
          const own = points.filter(i => x.of[i] === map.xs[cell.x] && y.of[i] === map.ys[cell.y]), known = own.map(i => metric.values[i]).filter(v => !Number.isNaN(v));
          const most = (how === 'best') === (metric.better > 0), expected = how === 'mean' ? known.reduce((s, v) => s + v, 0) / known.length : most ? Math.max(...known) : Math.min(...known);
          assert.deepEqual([cell.count, cell.failed], [known.length, own.length - known.length]);
          assert.ok(own.includes(cell.point));
          if (known.length === 0) assert.ok(Number.isNaN(cell.value));
          else assert.ok(Math.abs(cell.value - expected) < 1e-12 && (how === 'mean' || metric.values[cell.point] === expected));
        }
        const marks = page.lineSeries(points, x, y, metric, how).flatMap(s => s.marks.map(m => [x.of[m.point], y.of[m.point], m.value, m.count]));
        const cells = map.cells.map(c => [map.xs[c.x], map.ys[c.y], c.value, c.count]), order = ([a, b], [c, d]) => b - d || a - c;
        assert.deepEqual(marks.sort(order), cells.sort(order));
        const best = map.cells.map(c => c.value).filter(v => !Number.isNaN(v));
        if (best.length > 0) assert.equal(map.bests[0].value, metric.better > 0 ? Math.max(...best) : Math.min(...best));
      }
  }
});

test('the front has exactly the points that no other point beats', () => {
  const pick = draws(5);
  for (let trial = 0; trial < 300; ++trial) {
    const sweep = randomSweep(pick, pick(1, 60)), points = column(sweep.count, i => i), [a, b] = [sweep.figures[pick(0, 2)], sweep.figures[pick(0, 2)]];
    const { front, rest } = page.paretoFront(points, a, b), cost = (m, i) => -m.better * m.values[i];
    const known = points.filter(i => !Number.isNaN(a.values[i] + b.values[i]));
    const beats = (j, i) => cost(a, j) <= cost(a, i) && cost(b, j) <= cost(b, i) && (cost(a, j) < cost(a, i) || cost(b, j) < cost(b, i));
    assert.deepEqual([...front].sort((i, j) => i - j), known.filter(i => !known.some(j => beats(j, i))));
    assert.deepEqual([...front, ...rest].sort((i, j) => i - j), known);
  }
});

test('axes have round marks in range, and are logarithmic for factors', () => {
  const pick = draws(6);
  for (let trial = 0; trial < 500; ++trial) {
    const low = pick(0, 1e6) * 10 ** pick(-3, 3), high = low + pick(1, 999) * 10 ** pick(-2, 6), steps = page.roundSteps(low, high, 6);
    assert.ok(steps.length >= 2 && steps.length <= 17, `${steps.length} marks`);
    assert.ok(steps.every(s => s >= low - 1e-6 * high && s <= high + 1e-6 * high));
    assert.equal(new Set(steps.map(s => page.stepText(s, steps[1] - steps[0]))).size, steps.length);
  }
  assert.deepEqual([[4, 8, 16, 32], [1, 2, 3, 4], [1, 10, 100], [8, 40, 72], [0, 1, 2], [1, 64]].map(page.isGeometric), [true, false, true, false, false, false]);
  const axis = { sizes: [1, 10, 100] };
  assert.deepEqual(page.places(axis, [0, 1, 2]).map(v => Number(v.toFixed(9))), [0, 0.5, 1]);
  assert.deepEqual(page.places({ sizes: [0, 1, 4] }, [0, 1, 2]), [0, 0.25, 1]);
  assert.deepEqual(page.places({ sizes: null }, [0, 1, 2]), [0, 0.5, 1]);
});

test('colors grow lighter monotonically, and text on them is readable', () => {
  let before = -1;
  for (let k = 0; k <= 200; ++k) {
    const rgb = page.rampColour(k / 200), light = page.luminance(rgb), ink = page.inkOn(rgb) === '#000' ? 0 : 1;
    assert.ok(light > before);
    before = light;
    assert.ok((Math.max(light, ink) + 0.05) / (Math.min(light, ink) + 0.05) >= 4.5, 'WCAG 2.1, 1.4.3');
  }
});

test('a line of the CSV file reads back as its point', () => {
  const sweep = randomSweep(draws(7), 30);
  sweep.axes[1].texts[0] = 'a "quoted", name';
  const points = [3, 1, 29], lines = page.csvOf(sweep, points).trimEnd().split('\n');
  assert.equal(lines[0], 'number,run.n,run.schedule,links.a.bandwidth,status,period_s,throughput_samples_per_s,bubble,code,message');
  points.forEach((i, k) => {
    const cells = [...lines[k + 1].matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map(m => (m[1][0] === '"' ? m[1].slice(1, -1).replaceAll('""', '"') : m[1]));
    assert.equal(cells[0], String(i + 1));
    assert.equal(cells[2], sweep.axes[1].of[i] < 0 ? '' : sweep.axes[1].texts[sweep.axes[1].of[i]]);
    assert.equal(cells[5], Number.isNaN(sweep.figures[0].values[i]) ? '' : String(sweep.figures[0].values[i]));
  });
});

test('a view goes into the address and comes back, without unknown parts', () => {
  const first = { metric: 'a', sort: 'number', words: '', point: '', fixed: {} };
  const choices = { metric: ['a', 'b'], sort: ['number', '-a'], words: null, point: ['1', '2'], 'fix.run.schedule': ['1f1b', 'x & y=z'] };
  const state = { metric: 'b', sort: '-a', words: '50 % & more', point: '2', fixed: { 'run.schedule': 'x & y=z' } };
  assert.deepEqual(page.stateOf(page.addressOf(state, first), first, choices), state);
  assert.equal(page.addressOf(first, first), '');
  assert.deepEqual(page.stateOf('#metric=c&point=9&fixed=1&fix.run.x=1&fix.run.schedule=no&__proto__=1&words=w', first, choices), { ...first, words: 'w' });
});

test('a shell splits the command as intended', () => {
  const words = ['plain', 'a=b c', "it's", '{name: interleaved, chunks: 2}', '$HOME `x` "y" \\ *', 'cluster.links.ndr.bandwidth=1 GB/s'];
  const said = execFileSync('sh', ['-c', `printf '%s\\n' ${words.map(page.shellWord).join(' ')}`], { encoding: 'utf8' });
  assert.deepEqual(said.trimEnd().split('\n'), words);
  const sweep = { base: 'b.yaml', backend: 'ideal', out: 'out/s-ideal', key: ['k0'], axes: [
    { path: 'run.n', of: [0], texts: ['4'] }, { path: 'x', of: [-1], texts: ['1'] }, { path: 'l.b', of: [0], texts: ['1 GB/s'] }] };
  assert.equal(page.commandOf(sweep, 0), "stagecraft run b.yaml --backend ideal --set run.n=4 --set 'l.b=1 GB/s' --out out/s-ideal/k0");
});

test('figures are written with their units, also metrics that the page does not know', () => {
  const metric = (name, unit) => page.metricOf(unit ? { name, unit } : { name }), text = (name, value, unit) => page.metricText(metric(name, unit), value);
  assert.deepEqual([text('period_s', 0.0345), text('peak_memory_bytes', 2 ** 31), text('bubble', 0.25, 'share'), text('throughput_samples_per_s', 12.5), text('energy_J', 3), text('fits', 1, 'yes'), text('stages', 4),
    text('brand_new_s', 2), text('other', 7), text('final_loss', NaN)], ['34.5 ms', '2 GiB', '25.0 %', '12.5/s', '3 J', 'yes', '4', '2 s', '7', '\u2013']);
  assert.deepEqual([page.axisUnit(metric('period_s'), 0.2), page.axisUnit(metric('x_bytes'), 3 * 2 ** 30), page.axisUnit(metric('bubble', 'share'), 1)],
    [{ size: 1e-3, text: 'ms' }, { size: 2 ** 30, text: 'GiB' }, { size: 0.01, text: '%' }]);
});

test('an arrow goes to the next target ahead', () => {
  const grid = column(9, k => ({ x: (k % 3) * 10, y: Math.floor(k / 3) * 10 }));
  assert.deepEqual([[1, 0], [-1, 0], [0, 1], [0, -1]].map(([x, y]) => page.nextTarget(grid, grid[4], x, y)), [5, 3, 7, 1]);
  assert.equal(page.nextTarget(grid, grid[2], 1, 0), -1);
});

/** 2 x 3 points: throughputs by schedule (a, b) and bandwidth (1, 2 and 4 GB/s); `null` did not run. */
function smallSweep(rates) {
  return page.decodeSweep({
    name: 's', title: 't', backend: 'ideal', version: 'v', base: 'b', found: true, folder: 's', out: 's', number: [1, 2, 3, 4, 5, 6], key: column(6, String), kept: [],
    axes: [{ path: 'run.schedule', values: ['a', 'b'], of: [0, 0, 0, 1, 1, 1] }, { path: 'links.x.bandwidth', values: ['1 GB/s', '2 GB/s', '4 GB/s'], of: [0, 1, 2, 0, 1, 2] }],
    ends: { values: [{ status: 'ok', code: '', message: '' }, { status: 'infeasible', code: 'memory', message: '' }], of: rates.map(r => (r === null ? 1 : 0)) },
    figures: [{ name: 'throughput_samples_per_s', better: 1, title: 'throughput', values: rates }, { name: 'period_s', title: 'period', values: rates.map(r => (r === null ? null : 1 / r)) }],
  });
}

test('the answer has the best point, the smallest setting that reaches 95 % of it, and the settings by their weight', () => {
  const sweep = smallSweep([50, 96, 98, 60, 97, 100]), [rate, period] = sweep.metrics, points = [0, 1, 2, 3, 4, 5];
  const expected = (title, best) => [`Best ${title}: ${best} with schedule=b, bandwidth=4 GB/s.`, 'bandwidth=2 GB/s already reaches 97 % of it.',
    'What matters most: bandwidth (\u00d71.96; \u00d71.67 with the best of the others), schedule (\u00d71.20; \u00d71.02 with the best of the others), each at the same values of the others.'];
  assert.deepEqual(page.answerOf(sweep, points, rate), expected('throughput', '100/s'));
  assert.deepEqual(page.answerOf(sweep, points, period), expected('period', '10 ms'));
  assert.deepEqual(page.answerOf(sweep, [0, 3], rate), ['Best throughput: 60/s with schedule=b, bandwidth=1 GB/s.', 'What matters most: schedule (\u00d71.20), each at the same values of the others.']);
  assert.deepEqual(page.answerOf(smallSweep([null, null, null, null, null, null]), points, rate), []);
  assert.equal(page.answerOf(smallSweep([50, 96, 98, 60, 97, null]), points, smallSweep([50, 96, 98, 60, 97, null]).metrics[0])[0], 'Best throughput: 98/s with schedule=a, bandwidth=4 GB/s.');
  assert.equal(page.answerOf(smallSweep([50, 96, 98, 60, 97.5, null]), points, rate)[0].includes('within 1 %'), false);
  const close = smallSweep([50, 96, 99.5, 60, 97, 100]);
  assert.equal(page.answerOf(close, points, close.metrics[0])[0], 'Best throughput: 100/s with schedule=b, bandwidth=4 GB/s. Another point is within 1 % of it; the nearest, schedule=a, bandwidth=4 GB/s, differs by 0.5 %.');
});

/** Four schedules on two numbers of micro-batches; the last two take `stages` along, or ran on other devices. */
function devicesSweep(rates, devices, stages) {
  const axes = [{ path: 'run.schedule', values: ['1f1b', 'zb-h1', 'zb-v', 'v-half'], of: [0, 0, 1, 1, 2, 2, 3, 3] }, { path: 'run.micro_batches', values: [8, 16], of: [0, 1, 0, 1, 0, 1, 0, 1] }];
  if (stages) axes.push({ path: 'plan.stages', values: [stages], of: [-1, -1, -1, -1, 0, 0, 0, 0] });
  return page.decodeSweep({
    name: 's', title: 't', backend: 'ideal', version: 'v', base: 'b', found: true, folder: 's', out: 's', number: column(8, i => i + 1), key: column(8, String), kept: [], axes,
    ends: { values: [{ status: 'ok', code: '', message: '' }], of: column(8, () => 0) },
    figures: [{ name: 'throughput_samples_per_s', better: 1, title: 'throughput', values: rates }, { name: 'mfu', title: 'MFU', unit: 'share', better: 1, on_any_devices: true, values: rates.map(r => r / 1000) }, { name: 'devices', title: 'devices', on_any_devices: true, values: devices }],
  });
}

test('points on other numbers of devices are neither the best nor what matters most, and are named and marked', () => {
  const rates = [90, 100, 95, 110, 50, 60, 55, 62], points = column(8, i => i), half = devicesSweep(rates, [4, 4, 4, 4, 2, 2, 4, 4], 0), rate = half.metrics[0];
  assert.equal(page.usualDevices(half, points), 4);
  assert.deepEqual(page.answerOf(half, points, rate), [
    'Best throughput on 4 devices: 110/s with schedule=zb-h1, micro_batches=16.',
    'Not compared with these, because the number of devices differs: 60/s on 2 devices with schedule=zb-v, micro_batches=16.',
    'What matters most: schedule (\u00d71.77), micro_batches (\u00d71.16), each at the same values of the others.']);
  const equal = devicesSweep(rates, column(8, () => 4), 0);
  assert.ok(page.answerOf(equal, points, equal.metrics[0]).at(-1).includes('schedule (\u00d71.90'), 'on equal devices the slowest schedule counts');
  assert.ok(page.answerOf(half, points, half.metrics[1])[0].startsWith('Best MFU: '), 'a share means the same on any number of devices');
  const all = devicesSweep(rates, [4, 4, 2, 2, 1, 1, 8, 8], 0);
  assert.equal(page.usualDevices(all, points), 8, 'of equally many the largest');
  assert.equal(page.answerOf(all, points, all.metrics[0])[1], 'Not compared with these, because the number of devices differs: 100/s on 4 devices with schedule=1f1b, micro_batches=16; 110/s on 2 devices with schedule=zb-h1, micro_batches=16; 60/s on 1 device with schedule=zb-v, micro_batches=16.');
  const mark = i => page.otherDevicesMark(half, half.figures[2], i);
  assert.deepEqual([0, 4].map(mark), ['', ', not 4']);
});

test('pictures leave out points on other numbers of devices than the rest, and say so', () => {
  const rates = [90, 100, 95, 110, 150, 160, 55, 62], points = column(8, i => i), half = devicesSweep(rates, [4, 4, 4, 4, 2, 2, 4, 4], 0);
  const [rate, share] = half.metrics, [schedule, micro] = half.axes, like = (metric, axes) => page.likePoints(half, points, metric, axes);
  const { like: kept, instead } = like(rate, [micro, schedule]);
  assert.deepEqual(kept, [0, 1, 2, 3, 6, 7]);
  assert.equal(page.leftOutText(half, points, instead, [micro, schedule]), '2 of 8 points are left out: they ran on 2 devices, and the others on 4.');
  const map = page.heatMap(kept, micro, schedule, rate, 'best', { shown: points, classOf: i => page.devicesOf(half, i) });
  assert.deepEqual([map.ys.length, map.cells.length, map.bests.map(c => c.value)], [4, 6, [110]], 'the row of zb-v is empty, and its 160/s is not the best');
  const lines = page.lineSeries(kept, micro, schedule, rate, 'best', points);
  assert.deepEqual(lines.map(l => l.marks.length), [2, 2, 0, 2]);
  assert.deepEqual(page.lineSeries(kept, micro, null, rate, 'best').map(l => l.marks.map(m => m.value)), [[95, 110]]);
  assert.deepEqual(page.lineSeries(kept, micro, null, rate, 'mean').map(l => l.marks.map(m => m.value)), [[80, (100 + 110 + 62) / 3]]);
  assert.deepEqual([like(share, []).like, page.leftOutText(half, points, like(share, []).instead, [])], [points, ''], 'a share means the same on any number of devices');
  const one = devicesSweep(rates, [4, 4, 4, 4, 1, 4, 4, 4], 0);
  assert.equal(page.leftOutText(one, points, page.likePoints(one, points, rate).instead, []), '1 of 8 points is left out: it ran on 1 device, and the others on 4.');
});

/** Two schedules on clusters of two and four nodes with two GPUs each; the V schedule takes half of the devices. */
function nodesSweep() {
  return page.decodeSweep({
    name: 's', title: 't', backend: 'ideal', version: 'v', base: 'b', found: true, folder: 's', out: 's', number: column(6, i => i + 1), key: column(6, String), kept: [],
    axes: [{ path: 'cluster.nodes', values: [2, 4], of: [0, 0, 0, 1, 1, 1], sets_devices: true }, { path: 'run.schedule', values: ['1f1b', 'zb-h1', 'zb-v'], of: [0, 1, 2, 0, 1, 2] }],
    ends: { values: [{ status: 'ok', code: '', message: '' }], of: column(6, () => 0) },
    figures: [{ name: 'period_s', values: [8, 7, 13, 4, 3.5, 6] }, { name: 'peak_memory_bytes', values: [9, 9, 9, 5, 5, 2] }, { name: 'devices', title: 'devices', on_any_devices: true, values: [4, 4, 2, 8, 8, 4] }],
  });
}

test('a sweep over the number of devices is drawn, each number compared with itself', () => {
  const sweep = nodesSweep(), points = column(6, i => i), [period, memory] = sweep.metrics, [nodes, schedule] = sweep.axes, classOf = i => page.devicesOf(sweep, i);
  const { like, instead } = page.likePoints(sweep, points, period, [nodes, schedule]);
  assert.deepEqual(like, [0, 1, 3, 4], 'zb-v has four devices on four nodes, as the rest on two, and is left out all the same');
  assert.equal(page.leftOutText(sweep, points, instead, [nodes, schedule]), '2 of 6 points are left out: they ran on 2 or 4 devices, and the others at the same cluster.nodes on 4 or 8.');
  assert.deepEqual(page.lineSeries(like, nodes, null, period, 'best').map(l => l.marks.map(m => m.value)), [[7, 3.5]]);
  assert.deepEqual(page.heatMap(like, nodes, schedule, period, 'best', { classOf }).bests.map(c => c.value), [7, 3.5]);
  assert.deepEqual(page.likePoints(sweep, points, period, [schedule]).like, [0, 1, 5], 'where the nodes are not shown, one number of devices is');
  const { front, fronts } = page.frontsByClass(like, period, memory, classOf);
  assert.deepEqual([front, fronts], [[1, 4], [[1], [4]]]);
  assert.deepEqual([0, 2, 4, 5].map(i => page.otherDevicesMark(sweep, sweep.figures[2], i)), ['', ', not 4', '', ', not 8']);
});

test('stages that follow a schedule are no setting of their own, and a command has them', () => {
  const sweep = devicesSweep([90, 100, 95, 110, 80, 120, 70, 75], column(8, () => 4), 8), points = column(8, i => i);
  assert.deepEqual(sweep.axes.map(a => a.follows), [false, false, true]);
  const answer = page.answerOf(sweep, points, sweep.metrics[0]);
  assert.match(answer[0], /^Best throughput: 120\/s with schedule=zb-v, micro_batches=16, stages=8\./);
  assert.ok(answer.at(-1).startsWith('What matters most: schedule (\u00d71.60), micro_batches (\u00d71.50'), answer.at(-1));
  assert.ok(!answer.at(-1).includes('stages'));
  assert.ok(page.commandOf(sweep, 5).includes("--set run.schedule=zb-v --set run.micro_batches=16 --set plan.stages=8"), page.commandOf(sweep, 5));
});

test('a picture is written as SVG: boxes, lines, turned text, clips and names that are no markup', () => {
  const c = new page.SvgContext({ measureText: text => ({ width: 6 * text.length }) }, 100, 50);
  c.fillStyle = '#123456';
  c.fillRect(10, 20, -5, 4);
  c.save();
  c.beginPath();
  c.rect(0, 0, 10, 10);
  c.clip();
  c.translate(3, 4);
  c.rotate(-Math.PI / 2);
  c.fillText('</text><script>"&', 0, 0);
  c.restore();
  c.setLineDash([6, 3]);
  c.beginPath();
  c.moveTo(1, 2);
  c.lineTo(3, 4.005);
  c.stroke();
  const svg = c.document();
  assert.match(svg, /<rect x="5" y="20" width="5" height="4" fill="#123456"\/>/);
  assert.match(svg, /<g clip-path="url\(#clip1\)">\n<text [^>]*transform="translate\(3 4\) rotate\(-90\) ">&lt;\/text&gt;&lt;script&gt;&quot;&amp;<\/text>\n<\/g>/);
  assert.match(svg, /<path d="M1 2L3 4.0[01]" fill="none" stroke="#000" stroke-width="1" stroke-dasharray="6 3"\/>/);
  assert.equal(svg.match(/<g/g).length, svg.match(/<\/g>/g).length);
});
