// What a page needs so that people with a keyboard, a screen reader or weak sight can use it, as problems in words.
import { readFileSync } from 'node:fs';

/** Runs in the page: names of controls and pictures, table heads, order of headings and of the focus. */
function structure() {
  const problems = [], where = e => `${e.tagName.toLowerCase()}${e.id ? '#' + e.id : ''}`;
  const shown = e => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== 'hidden';
  const textOf = id => document.getElementById(id)?.textContent.trim() ?? '';
  const nameOf = e => (e.getAttribute('aria-labelledby') ?? '').split(/\s+/).map(textOf).join(' ').trim() || e.getAttribute('aria-label')?.trim() ||
    [...(e.labels ?? [])].map(l => l.textContent.trim()).join(' ') || (['BUTTON', 'A', 'SUMMARY'].includes(e.tagName) ? e.textContent.trim() : '') || e.getAttribute('title')?.trim() ||
    (e.tagName === 'svg' ? e.querySelector(':scope > title')?.textContent.trim() ?? '' : '');
  for (const e of document.querySelectorAll('button, input, select, textarea, summary, a[href], canvas, [role=img], [role=application], [role=group], [role=search]'))
    if (shown(e) && e.getAttribute('aria-hidden') !== 'true' && e.getAttribute('role') !== 'search' && !nameOf(e)) problems.push(`${where(e)} has no name`);
  for (const e of document.querySelectorAll('canvas, body svg')) {
    if (!shown(e) || e.getAttribute('aria-hidden') === 'true' || e.parentElement.closest('svg')) continue;
    if (!['img', 'application'].includes(e.getAttribute('role'))) problems.push(`${where(e)} has no role`);
  }
  for (const id of [...document.querySelectorAll('[aria-describedby], [aria-labelledby]')].flatMap(e => [e.getAttribute('aria-describedby'), e.getAttribute('aria-labelledby')]).filter(Boolean).flatMap(ids => ids.split(' ')))
    if (!document.getElementById(id)) problems.push(`there is no element ${id}`);
  for (const table of document.querySelectorAll('table')) {
    if (!shown(table) || table.rows.length === 0) continue;
    if (!table.querySelector('th')) problems.push(`${where(table)} has no heads`);
    for (const th of table.querySelectorAll('th')) if (!['col', 'row', 'colgroup', 'rowgroup'].includes(th.scope)) problems.push(`a head of ${where(table)} has no scope: ${th.textContent.slice(0, 20)}`);
  }
  let level = 0;
  for (const h of document.querySelectorAll('h1, h2, h3, h4')) {
    if (!shown(h)) continue;
    const next = Number(h.tagName[1]);
    if (next > level + 1) problems.push(`${h.tagName} "${h.textContent}" follows h${level}`);
    level = next;
  }
  if (document.querySelectorAll('h1').length !== 1) problems.push('not one h1');
  for (const e of document.querySelectorAll('[tabindex]')) if (e.tabIndex > 0) problems.push(`${where(e)} breaks the order of the focus`);
  if (!document.documentElement.lang) problems.push('no language');
  if (!document.title) problems.push('no title');
  return problems;
}

/** Relative luminance and contrast of WCAG 2.1. */
function luminance(hex) {
  const [r, g, b] = [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16) / 255).map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
export function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
const long = hex => (/^#[0-9a-f]{3}$/i.test(hex) ? '#' + [...hex.slice(1)].map(c => c + c).join('') : hex);

/** Pairs of a text and a surface in the palette whose contrast is below 4.5, which WCAG 2.1 AA asks for. */
async function faintPairs(browser, pairs, theme) {
  const names = [...new Set(pairs.flat())];
  const colours = await browser.evaluate(`(() => { const s = getComputedStyle(document.documentElement); return Object.fromEntries(${JSON.stringify(names)}.map(n => [n, s.getPropertyValue('--' + n).trim()])); })()`);
  return pairs.filter(([text, surface]) => !(contrast(long(colours[text]), long(colours[surface])) >= 4.5))
    .map(([text, surface]) => `${text} on ${surface} in ${theme}: ${contrast(long(colours[text]), long(colours[surface])).toFixed(2)}`);
}

/** The script of axe-core, where $AXE_CORE names its axe.min.js. */
const AXE = process.env.AXE_CORE && readFileSync(process.env.AXE_CORE, 'utf8');
async function axeViolations(browser, theme) {
  if (!AXE) return [];
  await browser.evaluate(`${AXE};true`);
  const violations = await browser.evaluate('axe.run().then(found => found.violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))');
  return violations.map(violation => `${violation}, says axe-core in ${theme}`);
}

/** Everything that is wrong with the page that is open, in light and in dark. `pairs`: [text, surface] names of its palette. */
export async function accessibilityProblems(browser, pairs) {
  const problems = [];
  for (const theme of ['light', 'dark']) {
    await browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] });
    await browser.frame();
    problems.push(...await browser.evaluate(`(${structure})()`), ...await faintPairs(browser, pairs, theme), ...await axeViolations(browser, theme));
  }
  await browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: 'light' }] });
  return [...new Set(problems)];
}

/** The ids or texts of what has the focus, press by press of Tab from the top of the page. */
export async function focusOrder(browser, presses) {
  const order = [];
  await browser.evaluate('document.activeElement.blur(); scrollTo(0, 0)');
  for (let k = 0; k < presses; ++k) {
    await browser.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 });
    await browser.send('Input.dispatchKeyEvent', { type: 'keyUp', key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 });
    order.push(await browser.evaluate('document.activeElement.id || document.activeElement.textContent.trim().slice(0, 20)'));
  }
  return order;
}
export const TEXT_PAIRS = [['ink', 'background'], ['ink', 'surface'], ['dim', 'background'], ['dim', 'surface'], ['ink', 'soft'], ['strong', 'background'], ['accent', 'background'], ['ink', 'warn-soft']];
