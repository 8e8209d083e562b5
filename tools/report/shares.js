// What devices do in a range of time.

/**
 * Device time of some rows within [from, to] by kind of work and by cause of idleness, in picoseconds: {work, idle};
 * `rows` are [{run, device, weight}]. null while some of them has not arrived.
 */
function timeIn(runs, rows, from, to) {
  const work = new Map(), idle = CAUSES.map(() => 0);
  for (const { run: r, device, weight } of rows) {
    const run = runs[r], gaps = knownGaps(run, device);
    if (!gaps) return null;
    const add = (spans, low, high, put) => {
      for (let i = firstWhere(low, high, n => spans.end[n] > from); i < high && spans.start[i] < to; ++i)
        put(i, weight * (Math.min(spans.end[i], to) - Math.max(spans.start[i], from)));
    };
    for (const lane of run.lanesOf.get(device))
      if (lane.kind === 'compute') add(run, lane.from, lane.to, (i, time) => {
        const kind = run.ops[run.op[i]].kind;
        work.set(kind, (work.get(kind) ?? 0) + time);
      });
    add(gaps, 0, gaps.end.length, (i, time) => (idle[gaps.key[i]] += time));
  }
  return { work, idle };
}

const CAUSE_NAMES = { start_up: 'start-up', input: 'input', drain: 'drain', transfer: 'messages', collective: 'collectives', receiver: 'no receiver', other: 'other idle time' };

/** [{key, name, time, share}] of what timeIn() returns, work first. */
function partsOf({ work, idle }) {
  const list = [...KINDS.filter(k => work.has(k)).map(k => ({ key: k, name: KIND_NAMES[k], time: work.get(k) })),
    ...CAUSES.map((c, k) => ({ key: c, name: CAUSE_NAMES[c], time: idle[k] }))].filter(p => p.time > 0);
  const total = list.reduce((sum, p) => sum + p.time, 0);
  return list.map(p => ({ ...p, share: share(p.time, total) }));
}
/** The share of work, a bar, and all parts in words. */
function partLines(title, parts) {
  const busy = parts.filter(p => !CAUSES.includes(p.key)).reduce((sum, p) => sum + p.share, 0), line = element('p'), text = element('p');
  line.append(element('strong', `${title}: ${percentText(busy)}`), ' of device time is work');
  text.append(...parts.map(p => {
    const item = element('span');
    item.append(element('i', undefined, { class: 'swatch ' + p.key }), `${p.name} ${percentText(p.share)} (${timeText(p.time)})`);
    return item;
  }));
  const bar = stack(parts.map(p => [p.key, p.share]));
  bar.classList.add('broad');
  return [line, bar, text];
}
