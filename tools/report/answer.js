// The answer of a sweep in a few sentences: the best point, what is already enough, and which setting matters most.
// Points on other numbers of devices than most of them are not compared with these.

/** The number of devices on which most of these points ran, of equally many the largest; null where all ran on equally many, or the number is not known. */
function usualDevices(sweep, points) {
  const devices = sweep.figures.find(f => f.name === 'devices'), counts = new Map();
  for (const i of points) if (devices && sweep.ran[i] && !Number.isNaN(devices.values[i])) counts.set(devices.values[i], (counts.get(devices.values[i]) ?? 0) + 1);
  return counts.size < 2 ? null : [...counts].sort(([a, m], [b, n]) => n - m || b - a)[0][0];
}
function devicesOf(sweep, i) { return sweep.figures.find(f => f.name === 'devices')?.values[i] ?? NaN; }
/**
 * The points whose figures can be compared, and for the rest, which ran on another number of devices, the number of these: {like, instead, usual}.
 * Points with other values of the `axes` that are varied to run on other devices are told apart, so each value is compared with itself alone.
 * Everything that takes the best, the mean or the worst of several points asks this; sim/sweep/comparable_rows.hpp is the rule of tables and pictures.
 */
function likePoints(sweep, points, metric, axes = []) {
  if (metric.onAnyDevices) return { usual: null, like: points, instead: new Map() };
  const setting = axes.filter(a => a.setsDevices), instead = new Map();
  for (const list of grouped(points, i => setting.map(a => a.of[i]).join()).values()) {
    const usual = usualDevices(sweep, list);
    if (usual !== null) for (const i of list) if (sweep.ran[i] && !Number.isNaN(devicesOf(sweep, i)) && devicesOf(sweep, i) !== usual) instead.set(i, usual);
  }
  return { usual: usualDevices(sweep, points), like: points.filter(i => !instead.has(i)), instead };
}
/** "2 of 8 points are left out: they ran on 2 devices, and the others on 4."; empty where none is. */
function leftOutText(sweep, points, instead, axes) {
  if (instead.size === 0) return '';
  const listed = values => [...new Set(values)].sort((a, b) => a - b).join(', ').replace(/, (?=[^,]*$)/, ' or ');
  const other = [...instead.keys()].map(i => devicesOf(sweep, i)), usual = new Set(instead.values()), one = instead.size === 1;
  const names = axes.filter(a => a.setsDevices).map(a => a.path).join(' and '), at = usual.size > 1 ? ` at the same ${names}` : '';
  return `${instead.size} of ${points.filter(i => sweep.ran[i]).length} points ${one ? 'is' : 'are'} left out: ${one ? 'it' : 'they'} ran on ${listed(other)} device${Math.max(...other) === 1 ? '' : 's'}, and the others${at} on ${listed(usual)}.`;
}
/** The best of each other number of devices, the most devices first. */
function otherDevicesText(sweep, metric, others) {
  const groups = [...grouped(others, i => devicesOf(sweep, i))].map(([devices, list]) => ({ devices, best: reduced(metric, list, 'best') })).filter(g => g.best.count > 0).sort((a, b) => b.devices - a.devices);
  if (groups.length === 0) return '';
  const named = groups.slice(0, 3).map(g => `${metricText(metric, g.best.value)} on ${countOfDevices(g.devices)} with ${labelOf(sweep, g.best.point)}`);
  const more = groups.length > 3 ? `, and ${groups.length - 3} more numbers of devices` : '';
  return `Not compared with these, because the number of devices differs: ${named.join('; ')}${more}.`;
}
function countOfDevices(count) { return `${count} device${count === 1 ? '' : 's'}`; }

/** The best value of a figure for each value of an axis: [{value, best}]; points without the figure do not count. */
function bestByValue(axis, metric, points) {
  return [...grouped(points, i => axis.of[i])].map(([value, list]) => ({ value, best: reduced(metric, list, 'best') })).filter(e => e.best.count > 0);
}
function ratioOf(values) { return values.length > 1 && values.every(v => v > 0) ? Math.max(...values) / Math.min(...values) : 1; }
/** How many times as good the best value of an axis is as its worst one: each with the best other settings, and at the same other settings where that is most. */
function weightOf(axis, metric, points, axes) {
  const others = axes.filter(a => a !== axis), atOthers = grouped(points, i => others.map(a => a.of[i]).join());
  const most = Math.max(1, ...[...atOthers].map(([, list]) => ratioOf(bestByValue(axis, metric, list).map(e => e.best.value))));
  return { best: ratioOf(bestByValue(axis, metric, points).map(e => e.best.value)), most };
}
function weightText({ axis, best, most }) {
  const differs = most / best >= MATTERS;
  return `${axis.name} (\u00d7${most.toFixed(2)}${differs ? `; \u00d7${best.toFixed(2)} with the best of the others` : ''})`;
}
/** Says how many other points are within 1 % of the best, so that it is hardly better; empty where none is. */
function closeText(sweep, metric, points, best) {
  const off = i => Math.abs(metric.values[i] / best.value - 1), close = points.filter(i => i !== best.point && off(i) <= CLOSE).sort((a, b) => off(a) - off(b));
  if (close.length === 0 || !(best.value > 0)) return '';
  const share = 100 * off(close[0]);
  return ` ${close.length === 1 ? 'Another point is' : `${close.length} others are`} within 1 % of it; the nearest, ${labelOf(sweep, close[0])}, ${share === 0 ? 'is equal' : `differs by ${Number(share.toPrecision(2))} %`}.`;
}

const ENOUGH = 0.95, MATTERS = 1.01, CLOSE = 0.01;
/** The smallest value of an axis that reaches 95 % of the best; null where that is the best point's own value, or sizes are not known. */
function enoughOf(axis, metric, points, best) {
  if (!axis.sizes || axis.of[best.point] < 0) return null;
  const reached = v => (metric.better > 0 ? v / best.value : best.value / v);
  const enough = bestByValue(axis, metric, points).filter(e => e.value >= 0 && reached(e.best.value) >= ENOUGH).sort((a, b) => axis.sizes[a.value] - axis.sizes[b.value])[0];
  return enough && axis.sizes[enough.value] < axis.sizes[axis.of[best.point]] ? { axis, value: enough.value, share: reached(enough.best.value) } : null;
}

/** Sentences about the points that are shown; empty where none of them has the figure. */
function answerOf(sweep, points, metric) {
  const all = points.filter(i => sweep.ran[i]);
  if (!metric || metric.better === 0) return [];
  const { usual, like: known } = likePoints(sweep, all, metric), best = reduced(metric, known, 'best');
  if (best.count === 0) return [];
  const memory = sweep.metrics.find(m => m.name === 'peak_memory_bytes'), sentences = [];
  const used = memory && metric !== memory && Number.isFinite(memory.values[best.point]) ? `; peak memory ${sizeText(memory.values[best.point])}` : '';
  const on = usual === null ? '' : ` on ${countOfDevices(usual)}`;
  sentences.push(`Best ${metric.title}${on}: ${metricText(metric, best.value)} with ${labelOf(sweep, best.point)}${used}.${closeText(sweep, metric, known, best)}`);
  const others = otherDevicesText(sweep, metric, all.filter(i => !known.includes(i)));
  if (others) sentences.push(others);
  const axes = sweep.axes.filter(a => !a.follows && new Set(known.map(i => a.of[i])).size > 1);
  const enough = axes.map(axis => enoughOf(axis, metric, known, best)).filter(Boolean);
  if (enough.length > 0)
    sentences.push(`${enough.map(e => `${e.axis.name}=${axisText(e.axis, e.value)} already reaches ${(100 * e.share).toFixed(0)} % of it`).join(', ')}.`);
  const weights = axes.map(axis => ({ axis, ...weightOf(axis, metric, known, axes) })).filter(w => w.most >= MATTERS).sort((a, b) => b.most - a.most);
  if (weights.length > 0)
    sentences.push(`What matters most: ${weights.map(weightText).join(', ')}, each at the same values of the others.`);
  return sentences;
}
