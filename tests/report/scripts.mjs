// The functions of the pages' scripts that need no page.
import { readFileSync } from 'node:fs';

const folder = new URL('../../tools/report/', import.meta.url);

function functionsOf(files, more = []) {
  const text = files.map(name => readFileSync(new URL(name, folder), 'utf8')).join('');
  const names = [...text.matchAll(/^(?:function|const) (\w+)/gm)].map(match => match[1]);
  return new Function(`${text}; return { ${[...names, ...more].join(', ')} };`)();
}
export const page = functionsOf(['data.js', 'format.js', 'layout.js'], ['LEFT', 'RIGHT', 'AXIS']);
export const sweepPage = functionsOf(['format.js', 'metrics.js', 'points.js', 'views.js', 'scales.js', 'csv.js', 'address.js', 'chosen.js']);

/** Whole numbers from low to high, always the same (Park and Miller). */
export function draws(seed) {
  let state = seed;
  return (low, high) => low + ((state = (state * 48271) % 2147483647) % (high - low + 1));
}
