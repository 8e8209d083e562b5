// What the pictures show, without drawing it.

/** Of several points the best, the mean or the worst: {value, point (the one that is it, or the nearest), count, failed}. */
function reduced(metric, points, how) {
  const known = points.filter(i => !Number.isNaN(metric.values[i])), failed = points.length - known.length;
  if (known.length === 0) return { value: NaN, point: points[0], count: 0, failed };
  const up = (metric.better > 0) === (how !== 'worst'), ahead = (a, b) => (up ? a > b : a < b);
  const mean = known.reduce((sum, i) => sum + metric.values[i], 0) / known.length;
  const far = i => Math.abs(metric.values[i] - mean);
  const point = known.reduce((best, i) => ((how === 'mean' ? far(i) < far(best) : ahead(metric.values[i], metric.values[best])) ? i : best));
  return { value: how === 'mean' ? mean : metric.values[point], point, count: known.length, failed };
}

/** The values of an axis that points have, in its order; -1, the base, first. */
function valuesIn(axis, points) {
  return [...new Set(points.map(i => axis.of[i]))].sort((a, b) => a - b);
}
function axisText(axis, value) { return value < 0 ? 'base' : axis.shown[value]; }
function axisName(axis, value) { return value < 0 ? 'base' : axis.names[value]; }

function grouped(points, keyOf) {
  const groups = new Map();
  for (const i of points) {
    const key = keyOf(i);
    if (groups.has(key)) groups.get(key).push(i);
    else groups.set(key, [i]);
  }
  return groups;
}

/**
 * One cell for each pair of values: {xs, ys, cells: [{x, y, value, point, count, failed}], bests}. The axes have the values of `shown`. `classOf` says
 * which points are compared; each class has its best.
 */
function heatMap(points, x, y, metric, how, { shown = points, classOf = () => 0 } = {}) {
  const xs = valuesIn(x, shown), ys = valuesIn(y, shown), cells = [];
  const groups = grouped(points, i => `${x.of[i]} ${y.of[i]}`);
  ys.forEach((b, row) => xs.forEach((a, column) => {
    const group = groups.get(`${a} ${b}`);
    if (group) cells.push({ x: column, y: row, ...reduced(metric, group, how) });
  }));
  return { xs, ys, cells, bests: [...grouped(cells, c => classOf(c.point)).values()].map(list => bestOf(list, metric)).filter(Boolean) };
}

function bestOf(entries, metric) {
  const known = entries.filter(e => !Number.isNaN(e.value));
  if (known.length === 0 || metric.better === 0) return null;
  return known.reduce((best, e) => ((metric.better > 0 ? e.value > best.value : e.value < best.value) ? e : best));
}

/** A line for each value of `by` that `shown` has (one line without it): [{value, text, marks: [{x (a value of the axis), value, point, ...}]}]. */
function lineSeries(points, x, by, metric, how, shown = points) {
  const lines = by ? valuesIn(by, shown) : [null];
  return lines.map(value => {
    const own = by ? points.filter(i => by.of[i] === value) : points, groups = grouped(own, i => x.of[i]);
    const marks = valuesIn(x, own).map(v => ({ x: v, ...reduced(metric, groups.get(v), how) }));
    return { value, text: by ? axisText(by, value) : metric.title, marks };
  });
}

/**
 * The points that no other beats in one figure without losing in the other, and the rest. Figures are compared to nine
 * digits, to which simulators agree; equal points stay together.
 */
function paretoFront(points, a, b) {
  const side = metric => Float64Array.from(metric.values, v => (metric.better > 0 ? -1 : 1) * Number(v.toPrecision(9))), cost = side(a), price = side(b);
  const known = points.filter(i => !Number.isNaN(cost[i]) && !Number.isNaN(price[i]));
  known.sort((i, j) => cost[i] - cost[j] || price[i] - price[j] || i - j);
  const front = [], rest = [];
  let least = Infinity, at = NaN;
  for (const i of known) {
    if (price[i] < least || (price[i] === least && cost[i] === at)) {
      front.push(i);
      at = cost[i];
      least = price[i];
    } else rest.push(i);
  }
  return { front, rest };
}

/** The front of the points of each class, which are compared among themselves: {front, rest, fronts}. */
function frontsByClass(points, a, b, classOf) {
  const parts = [...grouped(points, classOf).values()].map(list => paretoFront(list, a, b)), join = key => parts.flatMap(p => p[key]);
  return { front: join('front'), rest: join('rest'), fronts: parts.map(p => p.front).filter(f => f.length > 0) };
}

/** Of the targets [{x, y}] on a picture, the next one in a direction: straight ahead rather than near. */
function nextTarget(targets, from, dx, dy) {
  let best = -1, least = Infinity;
  targets.forEach((t, k) => {
    const ahead = (t.x - from.x) * dx + (t.y - from.y) * dy, aside = Math.abs((t.x - from.x) * dy) + Math.abs((t.y - from.y) * dx);
    if (ahead <= 0.5) return;
    const far = ahead + 3 * aside;
    if (far < least) [least, best] = [far, k];
  });
  return best;
}
