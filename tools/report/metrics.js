// The figures of a sweep, which says what they are called and which way is better: how they are written.

/** A figure as the sweep describes it; of what it leaves out, the unit is at the end of the name. */
function metricOf({ name, title = name, better = -1, unit = unitOf(name), is_main = false, on_any_devices = false }) {
  return { name, title, better, unit, isMain: is_main, onAnyDevices: on_any_devices };
}
/** What a page opens on: the loss where all that ran have learned, else the time, or the rate where points differ in their samples. */
function firstMetric(sweep) {
  const values = name => sweep.metrics.find(m => m.name === name)?.values.filter((_, i) => sweep.ran[i]) ?? [];
  const learns = values('final_loss').length > 0 && values('final_loss').every(v => !Number.isNaN(v));
  const speed = new Set(values('samples')).size > 1 ? 'throughput_samples_per_s' : 'period_s';
  return [learns ? 'final_loss' : speed, sweep.metrics[0]?.name].find(name => sweep.metrics.some(m => m.name === name)) ?? '';
}
function unitOf(name) {
  for (const [ending, unit] of [['_per_s', 'rate'], ['_s', 'time'], ['_bytes', 'size'], ['_J', 'joule']]) if (name.endsWith(ending)) return unit;
  return 'number';
}

const TEXTS = {
  time: secondsText, size: sizeText, share: percentText, rate: v => numberText(v) + '/s', tokens: v => shortNumber(v) + '/s', joule: joulesText,
  days: daysText, yes: v => (v ? 'yes' : 'no'), number: numberText,
};
function metricText(metric, value) { return Number.isFinite(value) ? TEXTS[metric.unit](value) : '\u2013'; }

/** What the marks of an axis that ends at `most` are counted in: {size, text}. */
function axisUnit(metric, most) {
  const largest = (units, scale) => [...units].reverse().find(u => u[1] / scale <= most * (1 + 1e-9)) ?? units[0];
  if (metric.unit === 'days' && most >= 172800) return { size: 86400, text: 'days' };
  if (metric.unit === 'time' || metric.unit === 'days') {
    const [text, size] = largest(TIMES, 1e12);
    return { size: size / 1e12, text };
  }
  if (metric.unit === 'size') {
    const [text, size] = largest(SIZES, 1);
    return { size, text };
  }
  return { share: { size: 0.01, text: '%' }, rate: { size: 1, text: '1/s' }, tokens: { size: 1, text: '1/s' }, joule: { size: 1, text: 'J' } }[metric.unit] ?? { size: 1, text: '' };
}
function metricTitle(metric, unit) { return unit.text ? `${metric.title}, ${unit.text}` : metric.title; }
