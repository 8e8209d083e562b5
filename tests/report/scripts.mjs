// The functions of the page's scripts that need no page.
import { readFileSync } from 'node:fs';

const folder = new URL('../../tools/report/', import.meta.url);
const text = ['data.js', 'format.js', 'layout.js'].map(name => readFileSync(new URL(name, folder), 'utf8')).join('');
const names = [...text.matchAll(/^(?:function|const) (\w+)/gm)].map(match => match[1]);
export const page = new Function(`${text}; return { ${[...names, 'LEFT', 'RIGHT', 'AXIS'].join(', ')} };`)();

/** Whole numbers from low to high, always the same (Park and Miller). */
export function draws(seed) {
  let state = seed;
  return (low, high) => low + ((state = (state * 48271) % 2147483647) % (high - low + 1));
}
