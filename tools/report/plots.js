// Lines over an axis, and two figures against each other.

function drawSeries(context, size, series, { x, points, metric, chosen, palette, how }) {
  cleared(context, size, palette);
  const marks = series.flatMap(s => s.marks), known = marks.map(m => m.value).filter(v => !Number.isNaN(v)), targets = [];
  if (known.length === 0) return nothing(context, size, palette);
  const atY = figureAxis(context, size, metric, known, palette, true), atX = settingAxis(context, size, x, valuesIn(x, points), palette);
  const bottom = size.height - PLOT.bottom;
  series.forEach(({ text, marks: own }, k) => {
    const { colour, shape, dash } = seriesStyle(k), drawn = own.filter(m => !Number.isNaN(m.value));
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.setLineDash(dash);
    context.beginPath();
    drawn.forEach((m, n) => context[n ? 'lineTo' : 'moveTo'](atX(m.x), atY(m.value)));
    context.stroke();
    context.setLineDash([]);
    for (const m of own) {
      const failed = Number.isNaN(m.value), at = { x: atX(m.x), y: failed ? bottom - 6 : atY(m.value) };
      if (failed) drawShape(context, 'cross', at.x, at.y, 3, palette.strong);
      else drawShape(context, shape, at.x, at.y, MARK, colour);
      if (chosen(m)) ring(context, at, palette);
      const value = failed ? `no ${metric.title}` : `${metric.title} ${metricText(metric, m.value)}${m.count > 1 ? `, ${how} of` : ' of'}`;
      targets.push({ ...at, point: m.point, series: k, text: [`${series.length > 1 ? text + ', ' : ''}${x.name}=${axisText(x, m.x)}`, `${value} ${countText(m)}`] });
    }
  });
  return targets;
}

function ring(context, { x, y }, palette) {
  context.strokeStyle = palette.ink;
  context.lineWidth = 2;
  context.beginPath();
  context.arc(x, y, 9, 0, 2 * Math.PI);
  context.stroke();
}

function drawFront(context, size, { front, rest, fronts }, { a, b, nameOf, shortOf, keyOf, chosen, palette }) {
  cleared(context, size, palette);
  const all = [...rest, ...front], targets = [];
  if (all.length === 0) return nothing(context, size, palette);
  const atX = figureAxis(context, size, a, all.map(i => a.values[i]), palette, false, 0.2);
  const atY = figureAxis(context, size, b, all.map(i => b.values[i]), palette, true, 0.2);
  const place = i => ({ x: atX(a.values[i]), y: atY(b.values[i]) });
  for (const part of fronts) drawFrontLine(context, part.map(place), palette);
  const put = (i, onFront) => {
    const at = place(i), { colour, shape } = seriesStyle(keyOf(i));
    context.globalAlpha = onFront ? 1 : 0.7;
    drawShape(context, shape, at.x, at.y, onFront ? MARK + 1 : 3, colour);
    context.globalAlpha = 1;
    if (chosen({ point: i })) ring(context, at, palette);
    targets.push({ ...at, point: i, text: [nameOf(i), ...[a, b].map(m => `${m.title} ${metricText(m, m.values[i])}`), ...(onFront ? ['on the front'] : [])] });
  };
  for (const i of rest) put(i, false);
  for (const i of front) put(i, true);
  drawFrontNames(context, size, front.map(i => ({ ...place(i), text: shortOf(i) })), palette);
  return targets;
}

function drawFrontLine(context, at, palette) {
  context.strokeStyle = palette.ink;
  context.lineWidth = 1.5;
  context.beginPath();
  at.forEach((p, k) => {
    if (k === 0) return context.moveTo(p.x, p.y);
    context.lineTo(p.x, at[k - 1].y);
    context.lineTo(p.x, p.y);
  });
  context.stroke();
}

/** Names beside the points of the front, where no other name is. The list below the picture has them all. */
function drawFrontNames(context, size, named, palette) {
  const taken = [];
  context.textAlign = 'left';
  for (const { x, y, text: whole } of named) {
    const text = fitted(context, whole, 240), width = context.measureText(text).width;
    const left = x + 9 + width < size.width - PLOT.right ? x + 9 : x - 9 - width;
    const free = [y - 9, y + 10].find(line => line > PLOT.top && line < size.height - PLOT.bottom - 6 && left > PLOT.left &&
      !taken.some(t => Math.abs(t.line - line) < 13 && t.left < left + width + 4 && left < t.left + t.width + 4));
    if (free === undefined) continue;
    taken.push({ line: free, left, width });
    context.lineWidth = 3;
    context.strokeStyle = palette.background;
    context.strokeText(text, left, free);
    context.fillStyle = palette.ink;
    context.fillText(text, left, free);
  }
}

/** The names of lines below a picture that is saved, where the page has a list; the picture grows by the lines that it takes. */
function drawLegend(context, series, palette) {
  let x = PLOT.left, y = context.height + 8;
  context.textAlign = 'left';
  series.forEach(({ text, marks }, k) => {
    if (marks.length === 0) return;
    const { colour, shape } = seriesStyle(k), width = 22 + context.measureText(text).width;
    if (x > PLOT.left && x + width > context.width) [x, y] = [PLOT.left, y + 18];
    drawShape(context, shape, x + 5, y, MARK, colour);
    context.fillStyle = palette.ink;
    context.fillText(text, x + 14, y);
    x += width + 10;
  });
  if (series.length > 0) context.height = y + 12;
}

/** A sentence below a picture that is saved, where the page has a paragraph; the picture grows by the lines that it takes. */
function drawNote(context, text, palette) {
  if (text === '') return;
  const left = 4, room = context.width - 2 * left, lines = [''];
  for (const word of text.split(' ')) {
    const longer = lines.at(-1) === '' ? word : `${lines.at(-1)} ${word}`;
    if (lines.at(-1) === '' || context.measureText(longer).width <= room) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  context.fillStyle = palette.dim;
  context.textAlign = 'left';
  lines.forEach((line, k) => context.fillText(line, left, context.height + 10 + 16 * k));
  context.height += 16 * lines.length + 6;
}
