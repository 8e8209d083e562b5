// What the pictures of a sweep are drawn with: axes, marks, words.

const COLOURS = ['background', 'ink', 'dim', 'line', 'idle', 'strong'];
const PLOT = { left: 74, right: 16, top: 10, bottom: 44 }, FONT = '11px system-ui, sans-serif', MARK = 4;

function cleared(context, { width, height }, palette) {
  context.fillStyle = palette.background;
  context.fillRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = 'middle';
}

function nothing(context, { width, height }, palette) {
  context.fillStyle = palette.dim;
  context.textAlign = 'center';
  context.fillText('None of the points that are shown has this figure.', width / 2, height / 2);
  return [];
}

/** "4 points, and 1 without it": what a mark stands for. */
function countText({ count, failed }) {
  const runs = count === 1 ? '1 point' : `${count} points`;
  return failed > 0 ? `${runs}, and ${failed} without it` : runs;
}

function toSide(low, high, from, to) { return v => from + ((v - low) / (high - low)) * (to - from); }

/** The axis of a figure at the left or the bottom: marks and a title. Returns where a value stands. */
function figureAxis(context, size, metric, values, palette, upright, zeroShare = 0.5) {
  const { low, high } = roomy(values.reduce((a, v) => Math.min(a, v)), values.reduce((a, v) => Math.max(a, v)), zeroShare), unit = axisUnit(metric, high);
  const at = upright ? toSide(low, high, size.height - PLOT.bottom, PLOT.top) : toSide(low, high, PLOT.left, size.width - PLOT.right);
  const steps = roundSteps(low / unit.size, high / unit.size, upright ? 6 : size.width / 110), step = steps.length > 1 ? steps[1] - steps[0] : 1;
  for (const s of steps) {
    const p = Math.round(at(s * unit.size)), text = stepText(s, step);
    context.fillStyle = palette.line;
    if (upright) context.fillRect(PLOT.left, p, size.width - PLOT.left - PLOT.right, 1);
    else context.fillRect(p, PLOT.top, 1, size.height - PLOT.top - PLOT.bottom);
    context.fillStyle = palette.dim;
    context.textAlign = upright ? 'right' : 'center';
    if (upright) context.fillText(text, PLOT.left - 6, p);
    else context.fillText(text, p, size.height - PLOT.bottom + 12);
  }
  axisTitle(context, size, metricTitle(metric, unit), palette, upright);
  return at;
}

function axisTitle(context, size, text, palette, upright) {
  context.fillStyle = palette.ink;
  context.textAlign = 'center';
  context.save();
  if (upright) {
    context.translate(12, (PLOT.top + size.height - PLOT.bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(text, 0, 0);
  } else context.fillText(text, (PLOT.left + size.width - PLOT.right) / 2, size.height - 12);
  context.restore();
}

function drawShape(context, shape, x, y, size, colour) {
  context.fillStyle = context.strokeStyle = colour;
  context.beginPath();
  if (shape === 'circle') context.arc(x, y, size, 0, 2 * Math.PI);
  else if (shape === 'square') context.rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8);
  else {
    const turns = { triangle: [-1 / 4, 1 / 12, 5 / 12], diamond: [0, 1 / 4, 1 / 2, 3 / 4], cross: [] }[shape], far = size * 1.35;
    turns.forEach((t, k) => context[k ? 'lineTo' : 'moveTo'](x + far * Math.cos(2 * Math.PI * t), y + far * Math.sin(2 * Math.PI * t)));
    context.closePath();
  }
  context.fill();
  if (shape !== 'cross') return;
  context.lineWidth = 2;
  for (const s of [-1, 1]) {
    context.moveTo(x - size, y - s * size);
    context.lineTo(x + size, y + s * size);
  }
  context.stroke();
}

/** The names of an axis below the picture, as many as fit beside each other. */
function settingAxis(context, size, axis, values, palette) {
  const part = places(axis, values), wide = size.width - PLOT.left - PLOT.right - 40, at = k => PLOT.left + 20 + part[k] * wide;
  let free = 0;
  context.textAlign = 'center';
  values.forEach((v, k) => {
    const text = fitted(context, axisName(axis, v), 120), half = context.measureText(text).width / 2;
    context.fillStyle = palette.line;
    context.fillRect(Math.round(at(k)), size.height - PLOT.bottom, 1, 4);
    if (at(k) - half < free) return;
    context.fillStyle = palette.dim;
    context.fillText(text, at(k), size.height - PLOT.bottom + 12);
    free = at(k) + half + 8;
  });
  axisTitle(context, size, axis.path, palette, false);
  return v => at(values.indexOf(v));
}
