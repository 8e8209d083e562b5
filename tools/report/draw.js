// The timeline on a canvas.

const KINDS = ['forward', 'backward', 'input_gradient', 'weight_gradient', 'recompute', 'update', 'predict', 'all_reduce'];
const DARK_TEXT = new Set(['backward', 'input_gradient', 'weight_gradient', 'recompute', 'predict']);
const HUES = 24, INK_ON_HUE = '#111';

const PALETTE = ['background', 'ink', 'dim', 'line', 'idle', 'strong', 'resident', 'stash', 'traffic', 'change', ...KINDS];

/** A message has the color of what it carries. */
function colourKind(op) {
  if (op.kind === 'send' || op.kind === 'receive') return op.text.endsWith('F') ? 'forward' : 'backward';
  return op.kind;
}

/** The number of each span's color, the colors, and the inks of labels on them. */
function colouring(run, byMicro, palette) {
  if (byMicro) {
    const colours = Array.from({ length: HUES }, (_, k) => `hsl(${Math.round((k * 137.508) % 360)} 58% 66%)`);
    return { keyOf: i => run.micro[i] % HUES, colours, inks: colours.map(() => INK_ON_HUE) };
  }
  const keys = run.ops.map(op => KINDS.indexOf(colourKind(op)));
  return {
    keyOf: i => keys[run.op[i]], colours: KINDS.map(kind => palette[kind]),
    inks: KINDS.map(kind => (DARK_TEXT.has(kind) ? INK_ON_HUE : '#fff')),
  };
}

/** scene: {runs, rows, view, top, height, palette, byMicro, critical, chosen, marked}. */
function draw(context, scene) {
  const { view, palette, height } = scene;
  context.fillStyle = palette.background;
  context.fillRect(0, 0, view.width, height);
  context.textBaseline = 'middle';
  const colourings = scene.runs.map(run => colouring(run, scene.byMicro, palette));
  const most = Math.max(1, ...scene.runs.flatMap(run => run.memory.map(m => m.peak)));
  for (const row of scene.rows) {
    const y = row.y - scene.top;
    if (y + row.height < AXIS || y > height) continue;
    if (row.kind === 'heading') drawHeading(context, scene, row, y);
    else if (row.kind === 'memory') drawMemory(context, scene, row, y, most);
    else drawLane(context, scene, row, y, colourings[row.run]);
  }
  drawAxis(context, scene);
  for (const run of scene.runs) for (const change of run.changes) drawChange(context, scene, change, AXIS - 4, 3, 1);
  if (scene.marked) {
    context.globalAlpha = 0.25;
    context.fillStyle = palette.ink;
    context.fillRect(Math.min(...scene.marked), AXIS, Math.abs(scene.marked[1] - scene.marked[0]), height - AXIS);
    context.globalAlpha = 1;
  }
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
  context.fillText(run ? `${row.text}: ${originOf(run)}` : row.text, 4, y + row.height / 2, view.width - 8);
}

function drawLane(context, scene, row, y, { keyOf, colours, inks }) {
  const { view, palette } = scene, run = scene.runs[row.run], thick = row.kind === 'compute';
  const box = row.height - (thick ? 2 : 3);
  context.textAlign = 'left';
  context.font = thick ? '12px system-ui, sans-serif' : '9px system-ui, sans-serif';
  context.fillStyle = thick ? palette.ink : palette.dim;
  const label = thick ? (scene.paired ? run.name : run.devices[row.device]) : row.first ? row.kind.replace('_', '-') : '';
  context.fillText(fitted(context, label, LEFT - (thick ? 12 : 30)), thick ? 4 : 22, y + row.height / 2);
  if (!row.lane.there) return;
  inPlot(context, view, y, row.height, () => {
    context.fillStyle = palette.idle;
    context.fillRect(LEFT, y, xOf(view, run.length) - LEFT, box);
    const boxes = colours.map(() => []), faint = colours.map(() => []), outlined = [], labels = [];
    const into = critical => (scene.critical && !critical ? faint : boxes);
    const parts = new Float64Array(colours.length), cellTime = 1 / scaleOf(view);
    slices(run, row.lane, view, keyOf, parts, i => {
      const x = xOf(view, run.start[i]), width = xOf(view, run.end[i]) - x;
      into(run.critical[i])[keyOf(i)].push(x, y, Math.max(width - (width > 3 ? 1 : 0), 1), box);
      if (scene.critical && run.critical[i]) outlined.push(x, width);
      if (thick && width > 9) labels.push(i, Math.max(x, LEFT), Math.min(x + width, view.width - RIGHT));
    }, (pixel, times, critical) => {
      const total = Math.max(cellTime, times.reduce((sum, time) => sum + time, 0));
      for (let key = 0, bottom = y + box; key < times.length; ++key) {
        if (times[key] === 0) continue;
        const tall = (box * times[key]) / total;
        into(critical)[key].push(LEFT + pixel, bottom -= tall, 1, tall);
      }
    });
    paintBoxes(context, faint, colours, 0.3);
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
    const text = [name, name.replace(/^\d+/, ''), String(run.micro[i])].find(t => 6.4 * t.length + 3 < right - left);
    if (!text) continue;
    context.fillStyle = inkOf(i);
    context.fillText(text, (left + right) / 2, y);
  }
}

function drawMemory(context, scene, row, y, most) {
  const { view, palette } = scene, run = scene.runs[row.run], box = row.height - 4, bottom = y + box;
  const tall = bytes => (box * bytes) / most;
  context.font = '9px system-ui, sans-serif';
  context.textAlign = 'left';
  context.fillStyle = palette.dim;
  context.fillText(isMeasured(run) ? 'memory, as planned' : 'memory', 22, y + box / 2 - 6);
  context.fillText(`at most ${sizeText(row.memory.peak)}`, 22, y + box / 2 + 6);
  if (!row.memory.there) return;
  inPlot(context, view, y, row.height, () => {
    const { stash, messages } = memoryPixels(row.memory, view);
    const until = Math.min(stash.length, Math.ceil(xOf(view, run.length) - LEFT));
    context.fillStyle = palette.resident;
    context.fillRect(LEFT, bottom - tall(row.memory.resident), until, tall(row.memory.resident));
    const steps = (colour, base, size) => {
      context.fillStyle = colour;
      for (let p = 0, q; p < until; p = q) {  // equal neighbors are one box
        for (q = p + 1; q < until && size[q] === size[p] && base(q) === base(p); ++q);
        const low = tall(base(p));
        context.fillRect(LEFT + p, bottom - low - tall(size[p]), q - p, tall(size[p]));
      }
    };
    steps(palette.stash, () => row.memory.resident, stash);
    steps(palette.traffic, p => row.memory.resident + stash[p], messages);
    context.fillStyle = palette.line;
    context.fillRect(LEFT, bottom, view.width, 1);
  });
}
