// The functions of the pages' scripts that need no page.
import { readFileSync } from 'node:fs';

const folder = new URL('../../tools/report/', import.meta.url);

function functionsOf(files, more = []) {
  const text = files.map(name => readFileSync(new URL(name, folder), 'utf8')).join('');
  const names = [...text.matchAll(/^(?:function|const) (\w+)/gm)].map(match => match[1]);
  return new Function(`${text}; return { ${[...names, ...more].join(', ')} };`)();
}
export const page = functionsOf(['format.js', 'scales.js', 'data.js', 'groups.js', 'gaps.js', 'layout.js', 'overview.js', 'shares.js', 'compare.js', 'metrics.js', 'ranks.js', 'tables.js', 'draw.js', 'strips.js'], ['LEFT', 'RIGHT', 'AXIS']);
export const sweepPage = functionsOf(['format.js', 'metrics.js', 'points.js', 'views.js', 'scales.js', 'csv.js', 'address.js', 'chosen.js', 'answer.js', 'grid.js', 'svg.js'], ['SvgContext']);

/** A run as html_parts.cpp would write it, of columns; each part has `lanes` lanes, the memory comes with the last. */
export function writtenRun({ lanes, spans, critical, memory, ...run }, lanesInPart = Infinity) {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const put = n => (n < 32 ? digits[n] : digits[32 + (n % 32)] + put(Math.floor(n / 32)));
  const folded = n => put(n < 0 ? -2 * n - 1 : 2 * n), before = new Map(), parts = [], data = [];
  let i = 0;
  const written = lane => {
    let text = '';
    for (let left = lane.spans; left > 0; --left, ++i) {
      const op = spans.op[i], [length, ...others] = [spans.length[i], spans.micro[i], spans.iteration[i], spans.version[i]];
      const [known, ...expected] = before.get(op) ?? [0, 0, 0, 0], differs = length !== known || others.some((n, k) => n !== expected[k]);
      text += put(4 * op + (critical.includes(i) ? 2 : 0) + (differs ? 1 : 0)) + put(spans.gap[i]);
      if (differs) text += put(length) + others.map((n, k) => folded(n - expected[k])).join('');
      before.set(op, [length, others[0] + 1, others[1], others[2]]);
    }
    return text;
  };
  for (let k = 0; k < lanes.length; k += lanesInPart) {
    const some = lanes.slice(k, k + lanesInPart);
    parts.push({ lanes: some.length, memory: 0 });
    data.push({ spans: some.map(written).join(''), memory: [] });
  }
  parts.at(-1).memory = memory.length;
  data.at(-1).memory = memory.map(m => ({ samples: m.gap.map((gap, k) => put(gap) + put(k)).join(''), states: m.gap.flatMap((_, k) => [m.stash[k], m.messages[k]]) }));
  const heads = memory.map(m => ({ device: m.device, resident: m.resident, samples: m.gap.length, peak: Math.max(...m.gap.map((_, k) => m.resident + m.stash[k] + m.messages[k])) }));
  return [{ length: 0, iteration_ends: [], ...run, lanes, memory: heads, parts }, data];
}

/** A run of the page, with all its parts. */
export function readRun(columns, lanesInPart) {
  const [raw, data] = writtenRun(columns, lanesInPart), run = page.openRun(raw);
  raw.parts.forEach((part, k) => page.readPart(run, part, data[k]));
  run.length = run.end.reduce((most, end) => Math.max(most, end), 0);
  return run;
}

/** Whole numbers from low to high, always the same (Park and Miller). */
export function draws(seed) {
  let state = seed;
  return (low, high) => low + ((state = (state * 48271) % 2147483647) % (high - low + 1));
}
