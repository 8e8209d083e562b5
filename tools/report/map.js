// The map: a color for each pair of settings. A drawing returns what a pointer or a key can reach: [{x, y, point, text}].

/** How low and how high the colors of a map reach: by factors where values differ much. */
function colourScale(cells) {
  const known = cells.map(c => c.value).filter(v => !Number.isNaN(v)), low = known.reduce((a, v) => Math.min(a, v), Infinity), high = known.reduce((a, v) => Math.max(a, v), -Infinity);
  const factors = low > 0 && high / low > 20, at = factors ? Math.log : v => v;
  return { low, high, factors, part: v => (high > low ? (at(v) - at(low)) / (at(high) - at(low)) : 0.5) };
}

/** How a map is laid out: wide enough names, rows that can be read. */
function mapLayout(context, map, x, y, width) {
  context.font = FONT;
  const longest = map.ys.reduce((most, v) => Math.max(most, context.measureText(axisName(y, v)).width), 0);
  const left = Math.min(longest + 14, width * 0.35), row = Math.max(16, Math.min(40, 300 / map.ys.length));
  return { left, top: 24, row, column: (width - left - PLOT.right) / map.xs.length, height: 24 + row * map.ys.length + PLOT.bottom };
}

function drawMap(context, size, map, { x, y, metric, how, chosen, palette }) {
  const layout = mapLayout(context, map, x, y, size.width), scale = colourScale(map.cells);
  cleared(context, size, palette);
  const targets = map.cells.map(cell => {
    const at = { x: layout.left + cell.x * layout.column, y: layout.top + cell.y * layout.row, width: layout.column - 1, height: layout.row - 1 };
    drawCell(context, at, cell, { metric, scale, palette, best: map.bests.includes(cell) });
    if (chosen(cell)) outline(context, at, palette);
    const where = [[y, map.ys[cell.y]], [x, map.xs[cell.x]]].map(([axis, v]) => `${axis.name}=${axisText(axis, v)}`).join(', ');
    const value = Number.isNaN(cell.value) ? `no ${metric.title}` : `${metric.title} ${metricText(metric, cell.value)}${cell.count > 1 ? `, ${how} of` : ' of'}`;
    return { x: at.x + at.width / 2, y: at.y + at.height / 2, box: at, point: cell.point, cell, text: [where, `${value} ${countText(cell)}`] };
  });
  drawMapNames(context, layout, map, x, y, palette);
  if (Number.isFinite(scale.low)) drawRamp(context, size.width, scale, metric, palette);
  return targets;
}

function drawCell(context, at, cell, { metric, scale, palette, best }) {
  context.textAlign = 'center';
  const middle = [at.x + at.width / 2, at.y + at.height / 2 + 0.5];
  if (Number.isNaN(cell.value)) {
    context.fillStyle = palette.idle;
    context.fillRect(at.x, at.y, at.width, at.height);
    context.fillStyle = palette.strong;
    context.fillText('\u00d7', ...middle);
    return;
  }
  const rgb = rampColour(scale.part(cell.value)), text = (best ? '\u2605 ' : '') + metricText(metric, cell.value);
  context.fillStyle = `rgb(${rgb})`;
  context.fillRect(at.x, at.y, at.width, at.height);
  context.fillStyle = inkOn(rgb);
  if (context.measureText(text).width < at.width - 4) context.fillText(text, ...middle);
  else if (best) context.fillText('\u2605', ...middle);
}

function outline(context, { x, y, width, height }, palette) {
  context.lineWidth = 3;
  context.strokeStyle = palette.background;
  context.strokeRect(x + 1, y + 1, width - 2, height - 2);
  context.lineWidth = 2;
  context.strokeStyle = palette.strong;
  context.strokeRect(x, y, width, height);
}

function drawMapNames(context, layout, map, x, y, palette) {
  context.fillStyle = palette.ink;
  context.textAlign = 'right';
  map.ys.forEach((v, k) => context.fillText(fitted(context, axisName(y, v), layout.left - 8), layout.left - 6, layout.top + (k + 0.5) * layout.row));
  const bottom = layout.top + layout.row * map.ys.length;
  context.textAlign = 'center';
  const every = Math.ceil(30 / layout.column);
  map.xs.forEach((v, k) => {
    if (k % every === 0) context.fillText(fitted(context, axisName(x, v), every * layout.column - 4), layout.left + (k + 0.5) * layout.column, bottom + 12);
  });
  context.fillStyle = palette.dim;
  context.fillText(x.path, layout.left + (layout.column * map.xs.length) / 2, bottom + 30);
  context.textAlign = 'left';
  context.fillText(fitted(context, y.path, layout.left + 60), 2, 9);
}

function drawRamp(context, width, scale, metric, palette) {
  const wide = 90, right = width - PLOT.right, low = metricText(metric, scale.low), high = metricText(metric, scale.high);
  context.textAlign = 'right';
  context.fillStyle = palette.dim;
  const end = `${high}${scale.factors ? ', by factors' : ''}`, from = Math.round(right - context.measureText(end).width - 6 - wide);
  context.fillText(end, right, 9);
  context.fillText(low, from - 6, 9);
  for (let k = 0; k < wide; ++k) {
    context.fillStyle = `rgb(${rampColour(k / (wide - 1))})`;
    context.fillRect(from + k, 3, Math.min(2, wide - k), 12);  // Neighbors overlap, or seams would show on some screens.
  }
}
