// The answer of a sweep in a few sentences: the best point, what is already enough, and which setting matters most.

/** The best value of a figure for each value of an axis: [{value, best}]; points without the figure do not count. */
function bestByValue(axis, metric, points) {
  return [...grouped(points, i => axis.of[i])].map(([value, list]) => ({ value, best: reduced(metric, list, 'best') })).filter(e => e.best.count > 0);
}
/** How many times as good the best value of an axis is as its worst one, each with the best other settings. */
function weightOf(axis, metric, points) {
  const values = bestByValue(axis, metric, points).map(e => e.best.value);
  return values.length > 1 && values.every(v => v > 0) ? Math.max(...values) / Math.min(...values) : 1;
}

const ENOUGH = 0.95, MATTERS = 1.01;
/** The smallest value of an axis that reaches 95 % of the best; null where that is the best point's own value, or sizes are not known. */
function enoughOf(axis, metric, points, best) {
  if (!axis.sizes || axis.of[best.point] < 0) return null;
  const reached = v => (metric.better > 0 ? v / best.value : best.value / v);
  const enough = bestByValue(axis, metric, points).filter(e => e.value >= 0 && reached(e.best.value) >= ENOUGH).sort((a, b) => axis.sizes[a.value] - axis.sizes[b.value])[0];
  return enough && axis.sizes[enough.value] < axis.sizes[axis.of[best.point]] ? { axis, value: enough.value, share: reached(enough.best.value) } : null;
}

/** Sentences about the points that are shown; empty where none of them has the figure. */
function answerOf(sweep, points, metric) {
  const known = points.filter(i => sweep.ran[i]), best = metric && metric.better !== 0 && reduced(metric, known, 'best');
  if (!best || best.count === 0) return [];
  const memory = sweep.metrics.find(m => m.name === 'peak_memory_bytes'), sentences = [];
  const used = memory && metric !== memory && Number.isFinite(memory.values[best.point]) ? `; peak memory ${sizeText(memory.values[best.point])}` : '';
  sentences.push(`Best ${metric.title}: ${metricText(metric, best.value)} with ${labelOf(sweep, best.point)}${used}.`);
  const axes = sweep.axes.filter(a => new Set(known.map(i => a.of[i])).size > 1);
  const enough = axes.map(axis => enoughOf(axis, metric, known, best)).filter(Boolean);
  if (enough.length > 0)
    sentences.push(`${enough.map(e => `${e.axis.name}=${axisText(e.axis, e.value)} already reaches ${(100 * e.share).toFixed(0)} % of it`).join(', ')}.`);
  const weights = axes.map(axis => ({ axis, weight: weightOf(axis, metric, known) })).filter(w => w.weight >= MATTERS).sort((a, b) => b.weight - a.weight);
  if (weights.length > 0)
    sentences.push(`What matters most: ${weights.map(({ axis, weight }) => `${axis.name} (\u00d7${weight.toFixed(2)})`).join(', ')}, each with the best of the others.`);
  return sentences;
}
