// Layout, numbers and search of the page, against the plainest way to say the same.
import assert from 'node:assert/strict';
import test from 'node:test';
import { draws, page, readRun, writtenRun } from './scripts.mjs';

const { LEFT, RIGHT } = page;

/** A run of one device with one compute lane. */
function randomRun(pick, count, longest) {
  const column = make => Array.from({ length: count }, make);
  return readRun({
    name: 'r', results: {}, scenario: '', devices: ['d'], ops: [{ text: '0F', after: '', kind: 'forward', stage: 0, bytes: 0 }, { text: '0B', after: '', kind: 'backward', stage: 0, bytes: 0 }],
    lanes: [{ device: 0, kind: 'compute', spans: count }],
    spans: { gap: column(() => pick(0, 2) * pick(0, longest)), length: column(() => pick(0, 3) === 0 ? pick(0, 3) : pick(0, longest)),
      op: column(() => pick(0, 1)), micro: column((_, i) => i), iteration: column(() => 0), version: column(() => 0) },
    critical: column((_, i) => i).filter(() => pick(0, 3) === 0), memory: [],
  });
}

const TWO = {
  name: 'r', results: {}, scenario: '', devices: ['a', 'b'], ops: [{ text: '0F', after: '', kind: 'forward' }, { text: '0>1:0F', after: '', kind: 'send' }],
  lanes: [{ device: 0, kind: 'compute', spans: 2 }, { device: 0, kind: 'send', spans: 1 }, { device: 1, kind: 'compute', spans: 1 }],
  spans: { gap: [5, 0, 15, 30], length: [10, 7, 1, 2], op: [0, 0, 1, 0], micro: [0, 1, 0, 12], iteration: [0, 1, 0, 1], version: [0, 0, 0, 3] },
  critical: [1], memory: [{ device: 1, resident: 100, gap: [0, 8], stash: [0, 50], messages: [7, 0] }],
};

test('gaps and lengths become times again', () => {
  for (const lanes of [1, 2, 3]) {
    const run = readRun(TWO, lanes);
    assert.deepEqual([...run.start], [5, 15, 15, 30]);
    assert.deepEqual([...run.end], [15, 22, 16, 32]);
    assert.deepEqual(run.lanes.map(l => [l.from, l.to]), [[0, 2], [2, 3], [3, 4]]);
    assert.deepEqual([...run.critical], [0, 1, 0, 0]);
    assert.deepEqual([0, 1, 2, 3].map(i => page.nameOf(run, i)), ['0F0', '0F1', '0>1:0F0', '0F12']);
    const counted = { ...run, results: { setup: { micro_batches: 12 } } };
    assert.deepEqual([0, 1, 2, 3].map(i => page.nameOf(counted, i)), ['0F0', '0F1', '0>1:0F0', '0F0']);  // 12 is the first of iteration 1; 1 is not in it.
    assert.deepEqual([[...run.iteration], [...run.version]], [[0, 1, 0, 1], [0, 0, 0, 3]]);
    assert.deepEqual([0, 1, 2, 3].map(i => page.laneOf(run, i).device), [0, 0, 0, 1]);
    assert.deepEqual([...run.memory[0].time], [0, 8]);
    assert.equal(run.memory[0].peak, 150);
  }
});

test('a run arrives part by part', () => {
  const [raw, data] = writtenRun(TWO, 2), run = page.openRun(raw), there = () => [...run.lanes, ...run.memory].map(x => x.there);
  assert.deepEqual(there(), [false, false, false, false]);
  page.readPart(run, raw.parts[0], data[0]);
  assert.deepEqual(there(), [true, true, false, false]);
  assert.deepEqual([...run.end], [15, 22, 16, 0]);
  page.readPart(run, raw.parts[1], data[1]);
  assert.deepEqual(there(), [true, true, true, true]);
});

test('numbers of any size come back from their digits', () => {
  const pick = draws(6);
  for (let trial = 0; trial < 2000; ++trial) {
    const gap = Math.floor(2 ** pick(0, 52) * (1 + pick(0, 1000) / 1000)), micro = pick(-70, 70) * 2 ** pick(0, 20), length = 2 ** pick(0, 51) - 1;
    const run = readRun({ ...TWO, lanes: [{ device: 0, kind: 'compute', spans: 1 }], memory: [], critical: [],
      spans: { gap: [gap], length: [length], op: [1], micro: [micro], iteration: [-micro], version: [trial] } });
    assert.deepEqual([run.start[0], run.end[0], run.op[0], run.micro[0], run.iteration[0], run.version[0]], [gap, gap + length, 1, micro, -micro || 0, trial]);
  }
});

test('at every zoom each span in view is drawn once, and no time is lost', () => {
  const pick = draws(1);
  for (let trial = 0; trial < 400; ++trial) {
    const run = randomRun(pick, pick(1, 300), 10 ** pick(1, 6)), lane = run.lanes[0];
    const from = (run.length * pick(0, 900)) / 1000, view = { from, to: from + (run.length * pick(1, 1000)) / 1000 + 1, width: LEFT + RIGHT + pick(1, 500) };
    const scale = page.scaleOf(view), parts = new Float64Array(2), drawn = [0, 0];
    let boxes = 0, alone = 0, last = -Infinity, critical = 0;
    page.slices(run, lane, view, i => run.op[i], parts, i => {
      assert.ok((run.end[i] - run.start[i]) * scale >= 1);
      drawn[run.op[i]] += run.end[i] - run.start[i];
      critical |= run.critical[i];
      ++boxes;
      ++alone;
    }, (pixel, times, isCritical) => {
      assert.ok(pixel >= last, 'cells go to the right');
      last = pixel;
      times.forEach((time, key) => (drawn[key] += time));
      critical |= isCritical;
      ++boxes;
    });
    const expected = [0, 0];
    let expectedCritical = 0, expectedAlone = 0;
    for (let i = 0; i < lane.to; ++i)
      if (run.end[i] > view.from && run.start[i] < view.to) {
        expected[run.op[i]] += run.end[i] - run.start[i];
        expectedCritical |= run.critical[i];
        expectedAlone += (run.end[i] - run.start[i]) * scale >= 1;
      }
    assert.deepEqual(drawn, expected);
    assert.deepEqual([critical, alone], [expectedCritical, expectedAlone]);
    assert.ok(boxes <= 2 * (view.width - LEFT - RIGHT) + 3, `${boxes} boxes`);
  }
});

test('the span at a time is the one that runs, else the nearest', () => {
  const pick = draws(2);
  for (let trial = 0; trial < 2000; ++trial) {
    const run = randomRun(pick, pick(1, 40), 50), time = pick(0, run.length + 20), slack = pick(0, 8);
    const far = i => Math.max(run.start[i] - time, time - run.end[i], 0);
    const nearest = Math.min(...Array.from(run.start, (_, i) => far(i)));
    const found = page.spanAt(run, run.lanes[0], time, slack);
    if (nearest > slack) assert.equal(found, -1);
    else assert.equal(far(found), nearest);
  }
});

test('memory in a pixel is its maximum', () => {
  const pick = draws(3);
  for (let trial = 0; trial < 300; ++trial) {
    const count = pick(1, 60), list = () => Array.from({ length: count }, () => pick(0, 100));
    const curve = readRun({ ...TWO, memory: [{ device: 0, resident: 5, gap: [0, ...list().slice(1)], stash: list(), messages: list() }] }).memory[0];
    const total = n => curve.stash[n] + curve.messages[n], end = curve.time[count - 1] + 50;
    const from = pick(0, end - 1), view = { from, to: from + pick(1, end), width: LEFT + RIGHT + pick(1, 80) };
    const { stash, messages } = page.memoryPixels(curve, view), scale = page.scaleOf(view);
    stash.forEach((_, pixel) => {
      const begin = view.from + pixel / scale, edge = view.from + (pixel + 1) / scale;
      let most = 0;
      for (let n = 0; n < count; ++n)  // What holds at a moment of the pixel.
        if (curve.time[n] < edge && (n + 1 === count || curve.time[n + 1] > begin - 1e-9 * end)) most = Math.max(most, total(n));
      const shown = stash[pixel] + messages[pixel];
      assert.ok(shown <= most);
      for (let n = 0; n < count; ++n)
        if (curve.time[n] < edge - 1e-9 * end && (n + 1 === count || curve.time[n + 1] > begin + 1e-9 * end)) assert.ok(shown >= total(n));
    });
    assert.equal(curve.peak, 5 + Math.max(...curve.stash.map((_, n) => total(n))));
  }
});

test('zooming keeps the time under the pointer in place, and the view inside the run', () => {
  const pick = draws(4), length = 1e9;
  for (let trial = 0; trial < 1000; ++trial) {
    const view = { ...page.clamped(pick(0, 9e8), pick(0, 1e9), length), width: 1000 };
    assert.ok(view.from >= 0 && view.to <= length && view.to - view.from >= 1000);
    const at = page.timeAt(view, pick(LEFT, 1000 - RIGHT)), closer = { ...page.zoomed(view, 0.8, at, length), width: 1000 };
    if (view.to - view.from > 2000) assert.ok(Math.abs(page.xOf(closer, at) - page.xOf(view, at)) < 1e-3);
    const farther = page.zoomed(view, 3, at, length);
    assert.ok(farther.from >= 0 && farther.to <= length && farther.to - farther.from >= view.to - view.from);
  }
  assert.deepEqual(page.clamped(-5e9, 9e9, length), { from: 0, to: length });
  assert.deepEqual(page.clamped(9e8, 1.5e9, length), { from: 4e8, to: 1e9 });
  assert.deepEqual(page.clamped(0, 10, 4), { from: 0, to: 4 });
});

test('marks on the axis are in view, round and distinct', () => {
  const pick = draws(5);
  for (let trial = 0; trial < 500; ++trial) {
    const from = pick(0, 1e9) * 10 ** pick(0, 4), to = from + pick(1, 999) * 10 ** pick(1, 10), list = page.ticks(from, to, 8);
    assert.ok(list.length >= 3 && list.length <= 21, `${list.length} marks`);
    assert.ok(list.every(t => t.time >= from - 1e-6 && t.time <= to));
    assert.equal(new Set(list.map(t => t.text)).size, list.length);
    for (const t of list) {
      const [, number, unit] = /^(\S+) (\S+)$/.exec(t.text), size = { ns: 1e3, us: 1e6, ms: 1e9, s: 1e12 }[unit];
      assert.ok(Math.abs(Number(number) * size - t.time) <= 1e-9 * to);
    }
  }
});

test('numbers read as on the command line', () => {
  assert.deepEqual([0, 1, 1234, 999.96e9, 54.0004e9, 1.5e12, 3600e12].map(t => page.timeText(t)), ['0 s', '0.001 ns', '1.234 ns', '1 s', '54 ms', '1.5 s', '3600 s']);
  assert.deepEqual([0, 1, 1024, 8400000000, 2 ** 40].map(page.sizeText), ['0 B', '1 B', '1 KiB', '7.823 GiB', '1 TiB']);
  assert.deepEqual([0.29692, 1, -1e-9].map(page.percentText), ['29.7 %', '100.0 %', '0.0 %']);
  assert.deepEqual([page.changeText(110, 100), page.changeText(50, 100), page.changeText(0.25, 0.2, true), page.changeText(0.1, 0.2, true), page.changeText(1, 0), page.changeText(0, 0)],
    ['+10.0 %', '\u221250.0 %', '+5.0 points', '\u221210.0 points', '', '+0.0 %']);
});

test('an op is found in every run, followed by its messages', () => {
  const ops = ['1F', '11F', '1>2:1F', '2<1:1F', '1AR'].map(text => ({ text, after: '' }));
  const inside = [...ops, { text: '1F', after: '.AR' }];
  const run = { ops, op: [2, 0, 3, 1, 0, 0, 4], micro: [7, 7, 7, 7, 17, 70, 7], start: [20, 10, 20, 5, 30, 40, 50] };
  const found = query => page.findSpans([run, { ...run, start: run.start.map(t => -t) }], query).map(f => `${f.run}:${f.span}`);
  assert.deepEqual(found('1F7'), ['0:1', '1:1', '0:0', '0:2', '1:0', '1:2']);
  assert.deepEqual(found(' 1f7 '), found('1F7'));
  assert.deepEqual(page.findSpans([{ ...run, ops: inside, op: [...run.op, 5], micro: [...run.micro, 7], start: [...run.start, 60] }], '1F7.AR'), [{ run: 0, span: 7 }]);
  assert.deepEqual(found('1>2:1F7'), ['0:0', '1:0']);
  assert.deepEqual(found('1ar7'), ['0:6', '1:6']);
  for (const query of ['', 'F', '7', '1F', '9F9', '1F7x', '<b>']) assert.deepEqual(found(query), [], query);
});

test('an op is found by its number in its iteration and in the run', () => {
  const run = { results: { setup: { micro_batches: 4 } }, ops: [{ text: '0F', after: '', kind: 'forward' }, { text: '0U', after: '', kind: 'update' }], op: [0, 0, 1], micro: [1, 5, 5], iteration: [0, 1, 1], start: [0, 1, 2] };
  assert.deepEqual(page.findSpans([run], '0F1').map(f => f.span), [0, 1]);
  assert.deepEqual(page.findSpans([run], '0F5').map(f => f.span), [1]);
  assert.deepEqual(page.findSpans([run], '0U5').map(f => f.span), [2]);  // Updates are counted through.
});

test('rows are stacked, with each lane of the selected kinds once', () => {
  const lane = (device, kind) => ({ device, kind, from: 0, to: 1 });
  const lanesOf = new Map([[0, [lane(0, 'compute'), lane(0, 'send'), lane(0, 'send')]], [2, [lane(2, 'compute'), lane(2, 'receive')]]]);
  const groups = [{ devices: [0], stages: [0] }, { devices: [2], stages: [1] }];
  const run = { name: 'r', devices: ['a', 'idle', 'b'], groups, lanesOf, memoryOf: new Map([[0, { device: 0 }], [2, { device: 2 }]]) };
  const other = { ...run, devices: ['b', 'c', 'a'] };
  const kinds = options => page.rowsOf([run, other], options).rows.map(r => (r.kind === 'heading' ? r.text : `${r.run}${r.device}${r.kind[0]}`));
  assert.deepEqual(kinds({ messages: true, memory: true, paired: false }),
    ['r', '00c', '00s', '00s', '00m', '02c', '02r', '02m', 'r', '10c', '10s', '10s', '10m', '12c', '12r', '12m']);
  assert.deepEqual(kinds({ messages: false, memory: false, paired: false }), ['r', '00c', '02c', 'r', '10c', '12c']);
  assert.deepEqual(kinds({ messages: false, memory: false, paired: true }), ['a', '00c', '12c', 'b', '02c', '10c']);
  const { rows, height } = page.rowsOf([run, other], { messages: true, memory: true, paired: false });
  rows.forEach((r, k) => assert.ok(r.y >= (k ? rows[k - 1].y + rows[k - 1].height : page.AXIS)));
  assert.ok(height >= rows.at(-1).y + rows.at(-1).height);
  for (const r of rows) assert.equal(page.rowAt(rows, r.y + 1), r);
  assert.equal(page.rowAt(rows, height + 1), null);
  assert.equal(page.rowAt(rows, 0), null);
});

test('strips on paper cover all rows once, and each has whole devices after their headings', () => {
  const row = (y, device, kind = 'compute', run = 0) => ({ kind, y, height: 20, run, device });
  const rows = [row(24, null, 'heading'), row(50, 0), row(70, 0, 'memory'), row(96, 1), row(122, null, 'heading', 1), row(148, 1, 'compute', 1)];
  const strips = page.stripsOf({ rows });
  assert.deepEqual(strips.map(strip => strip.rows.map(r => rows.indexOf(r))), [[0, 1, 2], [3], [4, 5]]);
  assert.deepEqual(strips.map(strip => [strip.from, strip.to]), [[0, 93], [93, 119], [119, 174]]);
  const tall = page.stripsOf({ rows: Array.from({ length: 500 }, (_, d) => row(24 + 26 * d, d)) });
  assert.ok(tall.length < 500 && tall.at(-1).to <= 10010);
  assert.deepEqual(page.stripsOf({ rows: [] }), []);
});

/** Devices 0..n-1 with one compute lane each, of these busy times; `more` changes the run. */
function devicesOf(busy, more = {}) {
  const devices = busy.map((_, d) => `d${d}`), idle = { start_up_s: 0, drain_s: 0 };
  return { devices, stages: busy.map(() => [0]), changes: [], lanes: busy.map((_, d) => ({ device: d, kind: 'compute', spans: 3 })),
    results: { length_s: 10, devices: busy.map(busy_s => ({ type: 't', busy_s, peak_memory_bytes: 100, idle })) }, ...more };
}

test('devices with the same work in nearly the same time are a group, and others are not', () => {
  const members = (...of) => page.groupsOf(devicesOf(...of)).map(g => g.devices);
  assert.deepEqual(members([5, 5, 5]), [[0, 1, 2]]);
  assert.deepEqual(members([5, 5.04, 6, 6.01]), [[0, 1], [2, 3]]);
  assert.deepEqual(members([5, 5, 5], { stages: [[0], [1], [0]] }), [[0, 2], [1]]);
  assert.deepEqual(members([5, 5, 5], { changes: [{ devices: new Set([1]) }] }), [[0, 2], [1]]);
  assert.deepEqual(members([5, 5], { lanes: [{ device: 0, kind: 'compute', spans: 3 }, { device: 1, kind: 'compute', spans: 4 }] }), [[0], [1]]);
  assert.deepEqual(members([5, 5, 5], { lanes: [{ device: 0, kind: 'compute', spans: 3 }, { device: 2, kind: 'compute', spans: 3 }] }), [[0, 2]]);
  const [group] = page.groupsOf(devicesOf([5, 5.04]));
  assert.ok(Math.abs(group.spread - 0.04 / 5.04) < 1e-12);
  assert.equal(page.spreadText(group), '2 devices, identical within 0.8 %');
  assert.equal(page.spreadText(page.groupsOf(devicesOf([5, 5]))[0]), '2 devices, identical');
});

test('a row stands for its replicas until they are opened, and rows are found by device and by stage', () => {
  const lanesOf = new Map([0, 1, 2, 3].map(d => [d, [{ device: d, kind: 'compute', from: 0, to: 1 }]]));
  const run = { name: 'r', devices: ['a0', 'a1', 'b0', 'b1'], groups: [{ devices: [0, 1], stages: [0] }, { devices: [2, 3], stages: [12] }], lanesOf, memoryOf: new Map() };
  const rows = options => page.rowsOf([run], options).rows.map(r => `${r.device}x${r.weight}`);
  assert.deepEqual(rows({}), ['0x2', '2x2']);
  assert.deepEqual(rows({ open: new Set(['0:0']) }), ['0x1', '1x1', '2x2']);
  assert.deepEqual(rows({ every: true }), ['0x1', '1x1', '2x1', '3x1']);
  assert.deepEqual(rows({ filter: 'B1' }), ['3x1']);
  assert.deepEqual(rows({ filter: 'stage 12' }), ['2x2']);
  assert.deepEqual(rows({ filter: 's0' }), ['0x2']);
  assert.deepEqual(rows({ filter: 'stage 1' }), []);
  assert.deepEqual([[], [3], [0, 4], [2, 3, 4]].map(page.stagesText), ['', 'Stage 3', 'Stages 0, 4', 'Stages 2\u20134']);
});

test('the fields of a scenario that differ are found by their paths', () => {
  const fields = yaml => Object.fromEntries(page.fieldsOf(yaml));
  assert.deepEqual(fields('schema: scenario/2\nrun:\n  schedule: 1f1b\n  micro_batches: 8\nplan:\n  devices:\n    - a\n    - b\n  stages:\n    - layers: [0, 1]\n      on: x\n    - layers: [2]\n      on: y\n# note\ntitle: "a: b"\n'),
    { schema: 'scenario/2', 'run.schedule': '1f1b', 'run.micro_batches': '8', 'plan.devices[0]': 'a', 'plan.devices[1]': 'b', 'plan.stages[0].layers': '[0, 1]',
      'plan.stages[0].on': 'x', 'plan.stages[1].layers': '[2]', 'plan.stages[1].on': 'y', title: '"a: b"' });
});
