// The points of a sweep: their settings and figures as columns, which of them are shown and in which order.

/** The data of the page, as sim/output/html.cpp writes it. Points are numbered from 0 here. */
function decodeSweep(raw) {
  const shorts = raw.axes.map(axis => axis.path.slice(axis.path.lastIndexOf('.') + 1));
  const axes = raw.axes.map((axis, a) => decodeAxis(axis, shorts.filter(s => s === shorts[a]).length === 1 ? shorts[a] : axis.path));
  axes.forEach((axis, a) => (axis.follows = axis.of.some(v => v < 0) && axes.slice(0, a).some(other => determines(other, axis))));
  const figures = raw.figures.map(f => ({ ...metricOf(f), values: Float64Array.from(f.values, v => v ?? NaN) }));
  return {
    ...raw, axes, figures, count: raw.number.length, kept: new Set(raw.kept),
    metrics: figures.filter(f => f.values.some(v => !Number.isNaN(v))), ran: Uint8Array.from(raw.ends.of, e => e >= 0 && raw.ends.values[e].status === 'ok'),
  };
}

/** Whether points with equal values of one axis have equal values of the other, as a schedule takes the number of stages along. */
function determines(axis, other) {
  const values = new Map();
  return variesIn(axis) && other.of.every((value, i) => values.get(axis.of[i]) === undefined ? (values.set(axis.of[i], value), true) : values.get(axis.of[i]) === value);
}

/** Values in the order of their size where they have one, else as they came; -1 stands for what the base says. */
function decodeAxis(raw, name) {
  const sizes = sizesOf(raw.values), names = namesOf(raw.values, raw.labels), order = raw.values.map((_, v) => v);
  if (sizes) order.sort((a, b) => sizes[a] - sizes[b]);
  const place = [];
  order.forEach((v, k) => (place[v] = k));
  return {
    path: raw.path, name, values: order.map(v => raw.values[v]), texts: order.map(v => valueText(raw.values[v])), shown: order.map(v => raw.labels?.[v] ?? valueText(raw.values[v])), names: order.map(v => names[v]),
    setsDevices: raw.sets_devices === true, sizes: sizes && order.map(v => sizes[v]), of: Int32Array.from(raw.of, v => (v < 0 ? -1 : place[v])),
  };
}

/** A value as it stands in a file or behind --set: words bare, what could be misread in quotes, maps and lists in brackets. */
function valueText(value, inside = false) {
  if (Array.isArray(value)) return `[${value.map(v => valueText(v, true)).join(', ')}]`;
  if (value !== null && typeof value === 'object')
    return `{${Object.entries(value).map(([key, v]) => `${key}: ${valueText(v, true)}`).join(', ')}}`;
  if (typeof value !== 'string') return String(value);
  return inside && !/^[\w./+-][\w ./+-]*$/.test(value) ? JSON.stringify(value) : value;
}

/** How to call values where room is short: by the labels of the sweep file, or maps by what not all of them say alike, without its keys. */
function namesOf(values, labels = []) {
  const texts = values.map((v, k) => labels[k] ?? valueText(v)), isMap = v => v !== null && typeof v === 'object' && !Array.isArray(v);
  if (labels.some(label => label) || !values.every(isMap)) return texts;
  const alike = ([key, v]) => values.every(other => key in other && valueText(other[key]) === valueText(v));
  const names = values.map(v => Object.entries(v).filter(entry => !alike(entry)).map(([, part]) => valueText(part, true)).join(' '));
  return new Set(names).size === names.length && !names.includes('') ? names : texts;
}

const PREFIXES = { n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 };

/** What values are worth that are all numbers, or all quantities of one kind such as 10 Gbit/s and 2 GB/s; else null. */
function sizesOf(values) {
  const parts = values.map(v => (typeof v === 'number' ? [v, '', ''] : typeof v === 'string' ? quantity(v) : null));
  if (parts.some(p => p === null) || new Set(parts.map(p => p[2])).size > 1) return null;
  return parts.map(p => p[0]);
}
function quantity(text) {
  const match = /^(-?[\d.]+(?:e[+-]?\d+)?) ?(Ki|Mi|Gi|Ti|[numkKMGTP]?)(s|B|bit|FLOP|W|J)(\/s)?$/.exec(text);
  if (!match || Number.isNaN(Number(match[1]))) return null;
  const [, number, prefix, unit, rate = ''] = match;
  return [(Number(number) * PREFIXES[prefix]) / (unit === 'bit' ? 8 : 1), prefix, (unit === 'bit' ? 'B' : unit) + rate];
}

function endOf(sweep, i) { return sweep.ends.values[sweep.ends.of[i]] ?? { status: 'not run', code: '', message: '' }; }
function settingText(axis, i) { return axis.of[i] < 0 ? '\u2013' : axis.shown[axis.of[i]]; }

/** Whether points differ in a setting; one that --set gives all of them says nothing about a point. */
function variesIn(axis) { return axis.values.length > 1 || axis.of.some(v => v < 0); }

/** "schedule=1f1b, micro_batches=8": what is set and varies; everything that is set where nothing varies. */
function labelOf(sweep, i) {
  const varying = sweep.axes.filter(variesIn);
  const parts = (varying.length > 0 ? varying : sweep.axes).filter(a => a.of[i] >= 0).map(a => `${a.name}=${a.names[a.of[i]]}`);
  return parts.length > 0 ? parts.join(', ') : 'the base';
}

/** How to call points beside each other: by the values in which they differ. */
function shortNames(sweep, points) {
  const differing = sweep.axes.filter(a => points.some(i => a.of[i] !== a.of[points[0]]));
  return i => (differing.length > 0 ? differing.map(a => settingText(a, i)).join(' \u00b7 ') : labelOf(sweep, i));
}

/** The points that have the settings that are fixed ({path: value as text}), the status and every word that is looked for. */
function shownPoints(sweep, { fixed, status, words }) {
  const wanted = sweep.axes.filter(a => fixed[a.path] !== undefined).map(a => [a.of, a.texts.indexOf(fixed[a.path])]);
  const parts = words.toLowerCase().split(/\s+/).filter(w => w !== '');
  const shown = [];
  for (let i = 0; i < sweep.count; ++i) {
    if (wanted.some(([of, value]) => of[i] !== value)) continue;
    if (status === 'ok' ? !sweep.ran[i] : status === 'failed' ? sweep.ran[i] : false) continue;
    if (parts.length > 0) {
      const { status: end, code, message } = endOf(sweep, i), text = `${sweep.number[i]} ${labelOf(sweep, i)} ${end} ${code} ${message}`.toLowerCase();
      if (!parts.every(p => text.includes(p))) continue;
    }
    shown.push(i);
  }
  return shown;
}

/** Points by a column: 'number', 'end', the path of an axis or the name of a figure. What is not known comes last. */
function sortedPoints(sweep, points, column, descending) {
  const axis = sweep.axes.find(a => a.path === column), figure = sweep.figures.find(f => f.name === column);
  const key = axis ? i => (axis.of[i] < 0 ? NaN : axis.of[i]) : figure ? i => figure.values[i] : column === 'end' ? i => sweep.ends.of[i] : i => i;
  const sign = descending ? -1 : 1;
  return [...points].sort((a, b) => {
    const x = key(a), y = key(b), lost = Number.isNaN(x) - Number.isNaN(y);
    return lost || (Number.isNaN(x) ? 0 : sign * (x - y)) || a - b;
  });
}
