'use strict';
// The data of the page, as sim/report/html_data.cpp writes it, as typed arrays. Times are picoseconds, exact up to 2^53.

/** Sums of gaps and lengths: the spans of a lane follow each other. */
function decodeRun(raw) {
  const count = raw.spans.gap.length;
  const run = {
    name: raw.name, results: raw.results, scenario: raw.scenario, ops: raw.ops, devices: raw.devices, lanes: [],
    start: new Float64Array(count), end: new Float64Array(count), op: Uint32Array.from(raw.spans.op),
    micro: Int32Array.from(raw.spans.micro), iteration: Int32Array.from(raw.spans.iteration),
    version: Int32Array.from(raw.spans.version), critical: new Uint8Array(count), iterationEnds: [], length: 0,
  };
  let i = 0;
  for (const lane of raw.lanes) {
    const from = i;
    for (let time = 0; i < from + lane.spans; ++i) {
      run.start[i] = time + raw.spans.gap[i];
      time = run.end[i] = run.start[i] + raw.spans.length[i];
      const k = run.iteration[i];
      run.iterationEnds[k] = Math.max(run.iterationEnds[k] ?? 0, time);
      run.length = Math.max(run.length, time);
    }
    run.lanes.push({ device: lane.device, kind: lane.kind, from, to: i });
  }
  for (const at of raw.critical) run.critical[at] = 1;
  run.memory = raw.memory.map(decodeMemory);
  return run;
}

function decodeMemory(raw) {
  let time = 0;
  return {
    device: raw.device, resident: raw.resident, time: Float64Array.from(raw.gap, gap => (time += gap)),
    stash: Float64Array.from(raw.stash), messages: Float64Array.from(raw.messages),
    peak: raw.stash.reduce((most, stash, i) => Math.max(most, raw.resident + stash + raw.messages[i]), raw.resident),
  };
}

function nameOf(run, i) { return run.ops[run.op[i]].text + run.micro[i]; }

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

/** The spans of an op such as "3F7", those that carry its data last; [{run, span}] in order of time within each run. */
function findSpans(runs, query) {
  const parts = /^(.*?)(\d+)$/.exec(query.trim().toUpperCase());
  if (!parts) return [];
  const [, text, micro] = parts;
  const found = [[], []];
  runs.forEach((run, r) => {
    const rank = run.ops.map(op => (op.text === text ? 0 : op.text.endsWith(':' + text) ? 1 : 2));
    for (let i = 0; i < run.op.length; ++i)
      if (run.micro[i] === Number(micro) && rank[run.op[i]] < 2) found[rank[run.op[i]]].push({ run: r, span: i });
  });
  for (const list of found) list.sort((a, b) => a.run - b.run || runs[a.run].start[a.span] - runs[b.run].start[b.span]);
  return found.flat();
}
