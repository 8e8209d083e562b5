// The timeline on a canvas.

/** Kinds of work in the order of the legend, and what people call them; describeKinds() fills both. */
const KINDS = [], KIND_NAMES = {};
function describeKinds(kinds) {
  for (const { key, name } of [...kinds, { key: 'all_reduce', name: 'collective' }]) {
    KINDS.push(key);
    KIND_NAMES[key] = name;
  }
}
const HUES = 24, INK_ON_HUE = '#111';

const PALETTE = ['background', 'ink', 'dim', 'line', 'idle', 'strong', 'resident', 'stash', 'traffic', 'change', 'capacity', 'accent', 'start_up', 'input', 'drain', 'transfer', 'receiver', 'other'];

/** A message, or a copy to host memory and back, has the color of what it is for, and all collectives have one color. */
function colourKind(op) {
  if (['send', 'receive', 'offload', 'fetch'].includes(op.kind)) return op.text.endsWith('F') ? 'forward' : 'backward';
  return KINDS.includes(op.kind) ? op.kind : 'all_reduce';
}
function causeColour(cause, palette) { return palette[cause === 'collective' ? 'all_reduce' : cause]; }

/** The number of each span's color, the colors, and the inks of labels on them. */
function colouring(run, byMicro, palette) {
  if (byMicro) {
    const colours = Array.from({ length: HUES }, (_, k) => `hsl(${Math.round((k * 137.508) % 360)} 58% 66%)`);
    return { keyOf: i => run.micro[i] % HUES, colours, inks: colours.map(() => INK_ON_HUE) };
  }
  const keys = run.ops.map(op => KINDS.indexOf(colourKind(op)));
  return {
    keyOf: i => keys[run.op[i]], colours: KINDS.map(kind => palette[kind]),
    inks: KINDS.map(kind => inkOn(rgbOf(palette[kind]))),
  };
}

/** Red, green and blue of "#3a78bd". */
function rgbOf(colour) { return [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16)); }

/** scene: {runs, rows, view, top, height, palette, byMicro, critical, chosen, marked, hidden}. */
function draw(context, scene) {
  const { view, palette, height } = scene;
  context.fillStyle = palette.background;
  context.fillRect(0, 0, view.width, height);
  context.textBaseline = 'middle';
  const colourings = scene.runs.map(run => colouring(run, scene.byMicro, palette));
  scene.most = memoryScale(scene.runs).most;
  for (const row of scene.rows) {
    const y = row.y - scene.top;
    if (y + row.height < AXIS || y > height) continue;
    if (row.kind === 'heading') drawHeading(context, scene, row, y);
    else if (row.kind === 'memory') drawMemory(context, scene, row, y);
    else drawLane(context, scene, row, y, colourings[row.run]);
  }
  drawAxis(context, scene);
  for (const run of scene.runs) for (const change of run.changes) drawChange(context, scene, change, AXIS - 4, 3, 1);
  if (scene.marked) drawMarked(context, scene);
}

/** The selected range of time. */
function drawMarked(context, { marked, view, palette, height }) {
  inPlot(context, view, AXIS, height, () => {
    const [from, to] = marked.map(time => xOf(view, time));
    context.globalAlpha = 0.16;
    context.fillStyle = palette.accent;
    context.fillRect(from, AXIS, to - from, height - AXIS);
    context.globalAlpha = 1;
    for (const x of [from, to]) context.fillRect(Math.round(x) - 1, AXIS, 2, height - AXIS);
  });
}

function inPlot(context, view, y, height, paint) {
  context.save();
  context.beginPath();
  context.rect(LEFT, y, view.width - LEFT - RIGHT, height);
  context.clip();
  paint();
  context.restore();
}

/** The times of a change, faint over what is drawn there. */
function drawChange(context, { view, palette }, change, y, height, alpha) {
  context.fillStyle = palette.change;
  context.globalAlpha = alpha;
  for (const [from, until] of timesOf(change, view)) {
    const x = Math.max(xOf(view, from), LEFT);
    context.fillRect(x, y, Math.max(Math.min(xOf(view, until), view.width - RIGHT) - x, 1), height);
  }
  context.globalAlpha = 1;
}

function drawAxis(context, { view, palette, height }) {
  context.fillStyle = palette.background;
  context.fillRect(0, 0, view.width, AXIS);
  context.font = '11px system-ui, sans-serif';
  context.textAlign = 'center';
  for (const tick of ticks(view.from, view.to, (view.width - LEFT) / 110)) {
    const x = xOf(view, tick.time);
    context.fillStyle = palette.line;
    context.fillRect(Math.round(x), AXIS - 5, 1, 5);
    context.fillStyle = palette.dim;
    context.fillText(tick.text, Math.min(Math.max(x, LEFT), view.width - 30), AXIS / 2 - 1);
  }
  context.fillStyle = palette.line;
  context.fillRect(LEFT, AXIS - 1, view.width - LEFT - RIGHT, 1);
}

function drawHeading(context, { runs, view, palette }, row, y) {
  context.font = 'bold 12px system-ui, sans-serif';
  context.textAlign = 'left';
  context.fillStyle = palette.ink;
  const run = runs[row.run];
  context.fillText(run ? `${labelOf(run)}, ${originOf(run)}` : row.text, 4, y + row.height / 2, view.width - 8);
}

function drawLane(context, scene, row, y, { keyOf, colours, inks }) {
  const { view, palette } = scene, run = scene.runs[row.run], thick = row.kind === 'compute';
  const box = row.height - (thick ? 2 : 3);
  drawRowName(context, scene, row, y, run);
  if (!row.lane.there) return;
  inPlot(context, view, y, row.height, () => {
    context.fillStyle = palette.idle;
    context.fillRect(LEFT, y, xOf(view, run.length) - LEFT, box);
    if (thick && row.first) drawGaps(context, scene, row, y, box);
    const boxes = colours.map(() => []), faint = colours.map(() => []), outlined = [], labels = [];
    const into = (critical, key) => ((scene.critical && !critical) || (!scene.byMicro && scene.hidden.has(KINDS[key])) ? faint : boxes);
    const parts = new Float64Array(colours.length), cellTime = 1 / scaleOf(view);
    slices(run, row.lane, view, keyOf, parts, i => {
      const x = xOf(view, run.start[i]), width = xOf(view, run.end[i]) - x;
      into(run.critical[i], keyOf(i))[keyOf(i)].push(x, y, Math.max(width - (width > 3 ? 1 : 0), 1), box);
      if (scene.critical && run.critical[i]) outlined.push(x, width);
      if (thick && width > 9) labels.push(i, Math.max(x, LEFT), Math.min(x + width, view.width - RIGHT));
    }, (pixel, times, critical) => {
      const total = Math.max(cellTime, times.reduce((sum, time) => sum + time, 0));
      for (let key = 0, bottom = y + box; key < times.length; ++key) {
        if (times[key] === 0) continue;
        const tall = (box * times[key]) / total;
        into(critical, key)[key].push(LEFT + pixel, bottom -= tall, 1, tall);
      }
    });
    paintBoxes(context, faint, colours, 0.2);
    paintBoxes(context, boxes, colours, 1);
    context.strokeStyle = palette.strong;
    context.lineWidth = 2;
    for (let k = 0; k < outlined.length; k += 2) context.strokeRect(outlined[k] + 1, y + 1, Math.max(outlined[k + 1] - 3, 1), box - 2);
    drawLabels(context, run, labels, y + box / 2, i => inks[keyOf(i)]);
    if (scene.chosen && scene.chosen.run === row.run && scene.chosen.span >= row.lane.from && scene.chosen.span < row.lane.to) {
      const x = xOf(view, run.start[scene.chosen.span]);
      context.strokeStyle = palette.ink;
      context.strokeRect(x, y + 1, Math.max(xOf(view, run.end[scene.chosen.span]) - x - 1, 2), box - 2);
    }
    for (const change of run.changes)
      if (thick && change.devices.has(row.device)) {
        drawChange(context, scene, change, y, box, 0.16);
        drawChange(context, scene, change, y, 3, 1);
      }
    context.fillStyle = palette.dim;
    for (const end of run.iterationEnds) context.fillRect(Math.round(xOf(view, end)), y - 1, 1, row.height + 1);
  });
}

function paintBoxes(context, lists, colours, alpha) {
  context.globalAlpha = alpha;
  lists.forEach((list, key) => {
    context.fillStyle = colours[key];
    for (let k = 0; k < list.length; k += 4) context.fillRect(list[k], list[k + 1], list[k + 2], list[k + 3]);
  });
  context.globalAlpha = 1;
}

/** "3F7" where it fits, else "F7", else "7". */
function drawLabels(context, run, labels, y, inkOf) {
  context.font = '11px system-ui, sans-serif';
  context.textAlign = 'center';
  for (let k = 0; k < labels.length; k += 3) {
    const [i, left, right] = [labels[k], labels[k + 1], labels[k + 2]], name = nameOf(run, i);
    const text = [name, name.replace(/^\d+/, ''), String(numberOf(run, i))].find(t => 6.4 * t.length + 3 < right - left);
    if (!text) continue;
    context.fillStyle = inkOf(i);
    context.fillText(text, (left + right) / 2, y);
  }
}
