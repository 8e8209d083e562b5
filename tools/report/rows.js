// Names, idle time and memory of the rows of the timeline.

/** The scale of memory: the capacity where a device uses more than half of it, or its line would press all curves flat. */
function memoryScale(runs) {
  const peak = largest(runs.flatMap(run => run.memory), m => m.peak);
  const capacity = largest(runs.flatMap(run => run.memory.map(m => run.results.devices?.[m.device]?.memory_capacity_bytes ?? 0)), c => c);
  return { most: capacity > 0 && peak > capacity / 2 ? Math.max(peak, capacity) : Math.max(peak, 1), peak, capacity };
}

/** What the devices of a row are, to the left of it. */
function drawRowName(context, scene, row, y, run) {
  const { palette } = scene, thick = row.kind === 'compute';
  context.textAlign = 'left';
  if (!thick) {
    context.font = '9px system-ui, sans-serif';
    context.fillStyle = palette.dim;
    return context.fillText(fitted(context, row.first ? (row.kind === 'all_reduce' ? 'collective' : row.kind) : '', LEFT - 30), 22, y + row.height / 2);
  }
  if (!row.first) return;
  const count = row.weight > 1 ? ` \u00d7${row.weight}` : '', stages = stagesText(row.group.stages), device = run.devices[row.device];
  const short = LEFT < 120 ? `S${row.group.stages.slice(0, 3).join(',')}${row.group.stages.length > 3 ? '\u2026' : ''}` : stages;
  const [title, under] = scene.paired ? [labelOf(run), stages] : stages ? [short, device] : [device, ''];
  context.font = 'bold 12px system-ui, sans-serif';
  context.fillStyle = palette.ink;
  const room = LEFT - 14 - context.measureText(count).width;
  context.fillText(fitted(context, title, room), 8, y + (under ? 7 : row.height / 2));
  context.fillStyle = palette.accent;
  context.textAlign = 'right';
  context.fillText(count, LEFT - 8, y + (under ? 7 : row.height / 2));
  context.textAlign = 'left';
  context.font = '10px system-ui, sans-serif';
  context.fillStyle = palette.dim;
  if (under) context.fillText(fitted(context, under, LEFT - 16), 8, y + 19);
}

/** The idle time of a device in the colors of its causes, above the work where both are in one pixel. */
function drawGaps(context, { runs, view, palette, hidden, critical }, row, y, box) {
  const gaps = knownGaps(runs[row.run], row.device);
  if (!gaps) return;
  const colours = CAUSES.map(cause => causeColour(cause, palette)), boxes = colours.map(() => []), parts = new Float64Array(CAUSES.length), cellTime = 1 / scaleOf(view);
  slices(gaps, { from: 0, to: gaps.end.length }, view, i => gaps.key[i], parts, i => {
    boxes[gaps.key[i]].push(xOf(view, gaps.start[i]), y, (gaps.end[i] - gaps.start[i]) * scaleOf(view), box);
  }, (pixel, times) => {
    for (let key = 0, top = y; key < times.length; ++key) {
      if (times[key] === 0) continue;
      const tall = (box * times[key]) / cellTime;
      boxes[key].push(LEFT + pixel, top, 1, tall);
      top += tall;
    }
  });
  paintBoxes(context, boxes.map((list, k) => (hidden.has(CAUSES[k]) ? [] : list)), colours, critical ? 0.4 : 1);
}

function drawMemory(context, scene, row, y) {
  const { view, palette } = scene, run = scene.runs[row.run], box = row.height - 3, bottom = y + box;
  const tall = bytes => (box * bytes) / scene.most, capacity = run.results.devices?.[row.device]?.memory_capacity_bytes ?? 0;
  context.font = '10px system-ui, sans-serif';
  context.textAlign = 'left';
  context.fillStyle = palette.dim;
  const peak = `${isMeasured(run) ? 'planned ' : ''}${sizeText(row.memory.peak)}`;
  const whole = capacity > 0 ? `${peak} of ${sizeText(capacity)}` : peak;
  const text = context.measureText(whole).width <= LEFT - 16 ? whole : fitted(context, peak, LEFT - 16);
  context.fillText(text, 8, y + box / 2);
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
    if (capacity <= 0 || tall(capacity) > box + 0.5) return;
    context.fillStyle = palette.capacity;
    for (let x = LEFT; x < view.width; x += 8) context.fillRect(x, Math.max(y, bottom - tall(capacity)), 5, 1);
  });
}
