// Why a device waits: the definitions of sim/result/idle.cpp, from what the page knows of a run.

const CAUSES = ['start_up', 'input', 'drain', 'transfer', 'collective', 'receiver', 'other'];
const CAUSE = Object.fromEntries(CAUSES.map((name, k) => [name, k]));

/** The spans of a device in some lanes, in order of time: their numbers. */
function spansOf(run, device, kind) {
  const lanes = run.lanesOf.get(device).filter(l => l.kind === kind), list = [];
  for (const { from, to } of lanes) for (let i = from; i < to; ++i) list.push(i);
  return lanes.length > 1 ? list.sort((a, b) => run.start[a] - run.start[b] || run.end[a] - run.end[b]) : list;
}
function goesForward(op) { return op.kind === 'forward' || op.kind === 'predict'; }

/** Whether a received message is input of an op: of the same micro-batch, from a stage before it, or after it in backward. */
function isInput(run, received, span) {
  const from = run.ops[run.op[received]], to = run.ops[run.op[span]], forward = goesForward(to);
  return from.text.endsWith('F') === forward && run.micro[received] === run.micro[span] && (forward ? from.stage < to.stage : from.stage > to.stage);
}

/** In each group of iterations a device fills up to its first op that is no forward, and drains after its last forward. */
function phasesOf(run, work, groupOf) {
  const cut = run.length < run.wholeLength, turns = work.some(i => !goesForward(run.ops[run.op[i]]) && run.ops[run.op[i]].kind !== 'update'), phases = new Map();
  work.forEach((i, n) => {
    const group = groupOf(i), forward = goesForward(run.ops[run.op[i]]);
    if (!phases.has(group)) phases.set(group, { filled: Infinity, drains: -1 });
    const phase = phases.get(group);
    if (phase.filled === Infinity && (!turns || !forward)) phase.filled = n;
    if (forward) phase.drains = n;
  });
  if (cut && phases.size > 0) [...phases.values()].at(-1).drains = Infinity;  // Its last forward is not drawn.
  return phases;
}

/** The number of the group of an iteration: iterations between two drains belong together. */
function groupOfIteration(run, iteration) {
  const every = run.results.drain_every ?? (run.results.drains === false ? 0 : 1);
  return every > 0 ? Math.floor(iteration / every) : 0;
}
/** Whether devices communicate while they compute, by the resolved scenario. */
function overlaps(run) { return !/^run:\n(?: .*\n)*? +overlap: false/m.test(run.scenario ?? ''); }
/** The last end of each group of iterations, on any device; spans that have not arrived do not count. */
function groupEnds(run) {
  const ends = [];
  run.iterationEnds.forEach((end, k) => {
    const group = groupOfIteration(run, k);
    ends[group] = Math.max(ends[group] ?? 0, end);
  });
  return ends.length > 0 ? ends : [run.length];
}

/**
 * The idle time of a device as boxes: {start, end, key, critical}, key a number in CAUSES. With its work they tile the
 * run. A message counts as on the wire from its start on the receiving device.
 */
function gapsOf(run, device) {
  const work = spansOf(run, device, 'compute'), groupOf = i => groupOfIteration(run, run.iteration[i]), ends = groupEnds(run);
  const blocks = !overlaps(run), out = { start: [], end: [], key: [] }, phases = phasesOf(run, work, groupOf);
  const messages = [spansOf(run, device, 'receive'), spansOf(run, device, 'send'), spansOf(run, device, 'all_reduce')], first = [0, 0, 0];
  const put = (from, to, cause) => {
    if (to <= from) return;
    const last = out.end.length - 1;
    if (out.key[last] === cause && out.end[last] === from) out.end[last] = to;
    else out.start.push(from), out.end.push(to), out.key.push(cause);
  };
  /** What op `span` waits for while its device is idle from `from`: [{begin, end, kind}]. */
  const awaited = (span, from) => {
    const list = [];
    messages.forEach((numbers, kind) => {
      while (first[kind] < numbers.length && run.end[numbers[first[kind]]] <= from) ++first[kind];
      for (let k = first[kind]; k < numbers.length && run.start[numbers[k]] < run.start[span]; ++k) {
        const m = numbers[k];
        if (run.end[m] <= from || run.end[m] > run.start[span]) continue;
        if (kind === 0 && !isInput(run, m, span)) continue;
        if (kind === 1 && !blocks && !(run.results.devices[device].idle?.receiver_s > 0)) continue;
        list.push({ begin: run.start[m], end: run.end[m], kind });
      }
    });
    return list;
  };
  let free = 0, before = -1;
  work.forEach((i, n) => {
    const until = run.start[i], group = groupOf(i);
    if (until > free) {
      const emptied = before >= 0 && group !== before ? Math.min(Math.max(ends[before] ?? free, free), until) : free, list = awaited(i, free), phase = phases.get(group);
      const cuts = [free, emptied, until, ...list.flatMap(m => [m.begin, m.end]).filter(t => t > free && t < until)].sort((a, b) => a - b);
      for (let k = 1; k < cuts.length; ++k) {
        const at = cuts[k - 1], under = list.find(m => m.kind === 2 && m.begin <= at && at < m.end) ?? list.find(m => m.begin <= at && at < m.end);
        const next = list.filter(m => m.begin > at).sort((a, b) => a.begin - b.begin)[0];
        let cause = n <= phase.filled ? CAUSE.start_up : n > phase.drains ? CAUSE.drain : CAUSE.input;
        if (under) cause = under.kind === 2 ? CAUSE.collective : CAUSE.transfer;
        else if (next?.kind === 1) cause = CAUSE.receiver;
        else if (cuts[k] <= emptied) cause = CAUSE.drain;
        else if (!next) cause = CAUSE.other;
        put(at, cuts[k], cause);
      }
    }
    free = Math.max(free, run.end[i]);
    before = group;
  });
  if (work.length > 0 && run.length >= (run.wholeLength ?? run.length)) {  // After its last op it waits for its own collectives, and for the others.
    const list = messages[2].filter(m => run.end[m] > free);
    const cuts = [free, run.length, ...list.flatMap(m => [run.start[m], run.end[m]]).filter(t => t > free && t < run.length)].sort((a, b) => a - b);
    for (let k = 1; k < cuts.length; ++k)
      put(cuts[k - 1], cuts[k], list.some(m => run.start[m] <= cuts[k - 1] && cuts[k - 1] < run.end[m]) ? CAUSE.collective : CAUSE.drain);
  }
  return { start: Float64Array.from(out.start), end: Float64Array.from(out.end), key: Uint8Array.from(out.key), critical: new Uint8Array(out.key.length) };
}

/** The gaps of a device, computed once all of it has arrived; null before. */
function knownGaps(run, device) {
  const known = run.gaps.get(device);
  if (known) return known;
  if (run.lanesOf.get(device).some(l => !l.there)) return null;
  const gaps = gapsOf(run, device);
  run.gaps.set(device, gaps);
  return gaps;
}
