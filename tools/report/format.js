// Numbers with units, in the words of the command line.

const TIMES = [['ns', 1e3], ['us', 1e6], ['ms', 1e9], ['s', 1e12]];
const SIZES = [['B', 1], ['KiB', 2 ** 10], ['MiB', 2 ** 20], ['GiB', 2 ** 30], ['TiB', 2 ** 40]];

const JOULES = [['mJ', 1e-3], ['J', 1], ['kJ', 1e3], ['MJ', 1e6], ['GJ', 1e9]];

function inUnits(value, units, digits) {
  const rounded = x => Number(x.toPrecision(digits));
  if (value === 0) return `0 ${units === TIMES ? 's' : units === JOULES ? 'J' : units[0][0]}`;
  let unit = units[0];
  for (const u of units) if (rounded(Math.abs(value) / u[1]) >= 1) unit = u;
  return `${rounded(value / unit[1])} ${unit[0]}`;
}
function timeText(picoseconds, digits = 4) { return inUnits(picoseconds, TIMES, digits); }
function sizeText(bytes) { return inUnits(bytes, SIZES, 4); }
function secondsText(seconds) { return timeText(seconds * 1e12); }
function percentText(share) { return `${(Math.abs(share) < 5e-4 ? 0 : 100 * share).toFixed(1)} %`; }
/** Half of an interval: "\u00b1 4.2 %", "\u00b1 30 %", "(up to 3.6 times as long)". */
function halfWidthText({ half_width: half }) {
  return half >= 1 ? `(up to ${(1 + half).toFixed(1)} times as long)` : `\u00b1 ${(100 * half).toFixed(half < 0.0995 ? 1 : 0)} %`;
}
function numberText(value) { return String(Number(value.toPrecision(4))); }

function daysText(seconds) { return seconds >= 172800 ? `${numberText(seconds / 86400)} days` : secondsText(seconds); }
function joulesText(joules) { return inUnits(joules, JOULES, 4); }
/** Three digits and a power of thousand: "223.8 k". */
function shortNumber(value) {
  const [size, letter] = [[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e3, ' k']].find(([least]) => value >= 10 * least) ?? [1, ''];
  return numberText(value / size) + letter;
}

/** What a value is against a first one: shares differ by points, the rest by a share of the first. */
function changeText(value, base, isShare) {
  const sign = x => (x < 0 ? '\u2212' : '+');
  if (isShare) return `${sign(value - base)}${Math.abs(100 * (value - base)).toFixed(1)} points`;
  if (base === 0) return value === 0 ? '+0.0 %' : '';
  return `${sign(value / base - 1)}${Math.abs(100 * (value / base - 1)).toFixed(1)} %`;
}

/** About `count` round times between two, each with digits enough to tell it from its neighbors. */
function ticks(from, to, count) {
  const rough = (to - from) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find(m => m * power >= rough * (1 - 1e-9)) * power;
  const [unit, size] = [...TIMES].reverse().find(u => u[1] <= to) ?? TIMES[0];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  const list = [];
  for (let k = Math.ceil(from / step); k * step <= to; ++k)
    list.push({ time: k * step, text: `${((k * step) / size).toFixed(decimals)} ${unit}` });
  return list;
}

/** A word for a shell, in quotes where it needs them. */
function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
