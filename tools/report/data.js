'use strict';
// The data of the page, as sim/output/html_data.cpp writes it, as typed arrays. Times are picoseconds, exact up to 2^53.

/** A run whose spans and memory are still to come: lanes that are not `there` have none yet. */
function openRun(raw) {
  const count = raw.lanes.reduce((sum, lane) => sum + lane.spans, 0);
  const run = {
    name: raw.name, results: raw.results, scenario: raw.scenario, ops: raw.ops, devices: raw.devices, lanes: [],
    start: new Float64Array(count), end: new Float64Array(count), op: new Uint32Array(count), micro: new Int32Array(count),
    iteration: new Int32Array(count), version: new Int32Array(count), critical: new Uint8Array(count),
    parts: raw.parts, read: { lanes: 0, memory: 0 },
    expected: { length: new Float64Array(raw.ops.length), micro: new Float64Array(raw.ops.length), iteration: new Float64Array(raw.ops.length), version: new Float64Array(raw.ops.length) },
  };
  run.changes = (raw.results.change_times ?? []).map((c, k) => ({
    devices: new Set(c.devices.map(name => raw.devices.indexOf(name))), from: c.from_s * 1e12, until: (c.until_s ?? Infinity) * 1e12,
    every: (c.every_s ?? 0) * 1e12, lasts: (c.lasts_s ?? 0) * 1e12, text: raw.results.changes[k],
  }));
  run.wholeLength = raw.length;
  run.length = raw.drawn?.until ?? raw.length;
  run.iterationEnds = raw.iteration_ends.filter((_, k) => k === 0 || raw.iteration_ends[k - 1] < run.length).map(end => Math.min(end, run.length));
  run.standsFor = raw.drawn?.stands_for;
  run.overview = readOverview(raw.overview);
  let to = 0;
  for (const { device, kind, spans } of raw.lanes) run.lanes.push({ device, kind, from: to, to: (to += spans), there: false });
  run.lanesOf = new Map();
  for (const lane of run.lanes) run.lanesOf.set(lane.device, [...(run.lanesOf.get(lane.device) ?? []), lane]);
  run.stages = raw.stages;
  run.groups = groupsOf({ ...run, lanes: raw.lanes });
  run.gaps = new Map();
  run.memory = raw.memory.map(m => ({ ...m, time: new Float64Array(m.samples), stash: new Float64Array(m.samples), messages: new Float64Array(m.samples), there: false }));
  run.memoryOf = new Map(run.memory.map(m => [m.device, m]));
  return run;
}

const DIGITS = new Uint8Array(128);
[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].forEach((c, k) => (DIGITS[c.charCodeAt(0)] = k));

/** The numbers of a text, as sim/output/html_data.hpp says they are written. */
function numbersOf(text) {
  let at = 0;
  return () => {
    let value = 0, scale = 1, digit;
    do {
      digit = DIGITS[text.charCodeAt(at++)];
      value += (digit & 31) * scale;
      scale *= 32;
    } while (digit > 31);
    return value;
  };
}
function unfolded(n) { return n % 2 ? -(n + 1) / 2 : n / 2; }

/** Fills in the lanes and curves of the next part. */
function readPart(run, { lanes, memory }, part) {
  const next = numbersOf(part.spans);
  for (let k = 0; k < lanes; ++k) readLane(run, run.lanes[run.read.lanes++], next);
  for (let k = 0; k < memory; ++k) readMemory(run.memory[run.read.memory++], part.memory[k]);
}
function readLane(run, lane, next) {
  const { length, micro, iteration, version } = run.expected;
  let time = 0;
  for (let i = lane.from; i < lane.to; ++i) {
    const code = next(), op = Math.floor(code / 4);
    run.start[i] = time += next();
    if (code & 1) {
      length[op] = next();
      for (const column of [micro, iteration, version]) column[op] += unfolded(next());
    }
    run.end[i] = time += length[op];
    run.op[i] = op;
    run.critical[i] = (code >> 1) & 1;
    run.micro[i] = micro[op]++;
    run.iteration[i] = iteration[op];
    run.version[i] = version[op];
  }
  lane.there = true;
}
function readMemory(curve, { samples, states }) {
  const next = numbersOf(samples);
  let time = 0;
  for (let i = 0; i < curve.time.length; ++i) {
    curve.time[i] = time += next();
    const state = 2 * next();
    curve.stash[i] = states[state];
    curve.messages[i] = states[state + 1];
  }
  curve.there = true;
}

/** Whether the number of an op counts updates, not micro-batches. */
function isUpdate(op) { return op.kind === 'update' || op.kind === 'all_reduce'; }
/** The micro-batch counted from 0 in each iteration; where a stage has others than the schedule, its number in the run. */
function numberOf(run, i) {
  const each = run.results?.setup?.micro_batches, micro = run.micro[i];
  return each > 0 && !isUpdate(run.ops[run.op[i]]) && Math.floor(micro / each) === run.iteration[i] ? micro - each * run.iteration[i] : micro;
}
function nameOf(run, i) {
  const op = run.ops[run.op[i]];
  return op.text + numberOf(run, i) + op.after;
}

function laneOf(run, i) { return run.lanes[firstWhere(0, run.lanes.length, n => run.lanes[n].to > i)]; }

/** The first of low..high-1 for which `holds`, which holds for all behind it too; else high. */
function firstWhere(low, high, holds) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The spans of an op such as "3F7", by its number in its iteration or in the run, those that carry its data last; [{run, span}] by iteration, then by run. */
function findSpans(runs, query) {
  const parts = /^(.*?)(\d+)([./][A-Z0-9]+)?$/.exec(query.trim().toUpperCase());
  if (!parts) return [];
  const [, text, micro, after = ''] = parts;
  const found = [[], []], iterationOf = ({ run, span }) => runs[run].iteration?.[span] ?? 0;
  runs.forEach((run, r) => {
    const rank = run.ops.map(op => (op.after !== after ? 2 : op.text === text ? 0 : op.text.endsWith(':' + text) ? 1 : 2));
    for (let i = 0; i < run.op.length; ++i)
      if ((run.micro[i] === Number(micro) || numberOf(run, i) === Number(micro)) && rank[run.op[i]] < 2) found[rank[run.op[i]]].push({ run: r, span: i });
  });
  for (const list of found) list.sort((a, b) => iterationOf(a) - iterationOf(b) || a.run - b.run || runs[a.run].start[a.span] - runs[b.run].start[b.span]);
  return found.flat();
}
