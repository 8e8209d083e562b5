// Places and colors of values.

/** Round steps that cover low..high: about `count` of them, as numbers. */
function roundSteps(low, high, count) {
  const rough = (high - low) / Math.max(1, count) || Math.abs(high) || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find(m => m * power >= rough * (1 - 1e-9)) * power, steps = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) steps.push(k * step);
  return steps;
}
function stepText(value, step) {
  return value.toFixed(Math.min(12, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9))));
}

/** low..high with room at both ends; from 0 where `low` is less than this share of `high`. */
function roomy(low, high, zeroShare) {
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return { low: low >= 0 && low < zeroShare * high ? 0 : low - room, high: high + room };
}

/** Whether values grow by about the same factor rather than by the same amount. */
function isGeometric(sizes) {
  if (sizes.length < 3 || sizes[0] <= 0) return false;
  const uneven = steps => Math.max(...steps) / Math.min(...steps), later = sizes.slice(1);
  return sizes.at(-1) / sizes[0] >= 8 && uneven(later.map((v, k) => Math.log(v / sizes[k]))) < uneven(later.map((v, k) => v - sizes[k]));
}

/** Where the values of an axis stand between 0 and 1: by their size, else one after the other. */
function places(axis, values) {
  const even = () => values.map((_, k) => (values.length > 1 ? k / (values.length - 1) : 0.5));
  if (!axis.sizes || values.some(v => v < 0) || values.length < 2) return even();
  const sizes = values.map(v => axis.sizes[v]), at = isGeometric(sizes) ? Math.log : v => v;
  return sizes.map(v => (at(v) - at(sizes[0])) / (at(sizes.at(-1)) - at(sizes[0])));
}

/** Dark blue to light yellow, lighter all the way, so that it can be read without telling red from green, and in gray. */
const RAMP = [[16, 32, 84], [62, 74, 122], [116, 116, 124], [180, 158, 104], [250, 226, 92]];
function rampColour(part) {
  const at = Math.min(Math.max(part, 0), 1) * (RAMP.length - 1), k = Math.min(Math.floor(at), RAMP.length - 2);
  return RAMP[k].map((c, n) => Math.round(c + (RAMP[k + 1][n] - c) * (at - k)));
}
/** Relative luminance (WCAG 2.1), 0 black to 1 white. */
function luminance(rgb) {
  const [r, g, b] = rgb.map(c => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
/** The ink with the greater contrast; both contrasts are equal at sqrt(1.05 * 0.05) - 0.05. */
function inkOn(rgb) { return luminance(rgb) > 0.179 ? '#000' : '#fff'; }

/** Colors that color-blind people tell apart (Okabe and Ito, Color Universal Design, 2008); a second mark tells them too. */
const SERIES = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#8c7a00'];
const SHAPES = ['circle', 'square', 'triangle', 'diamond', 'cross'], DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];
function seriesStyle(k) {
  return { colour: SERIES[k % SERIES.length], shape: SHAPES[k % SHAPES.length], dash: DASHES[k % DASHES.length] };
}
