// Where things are: rows, times, and the spans behind a pixel. Nothing here draws.

let LEFT = 184;  // A narrow screen has less room for names.
const RIGHT = 12, AXIS = 24, HEADING = 26, GAP = 6;
const HEIGHTS = { compute: 26, send: 9, receive: 9, all_reduce: 9, copy: 9, memory: 20 };

/** The devices that have rows: [{group, device, weight}], where one device stands for `weight` of them. */
function representatives(run, r, { open, every, filter = '' }) {
  return run.groups.flatMap((group, g) => {
    const asked = group.devices.filter(d => isAsked(filter, run.devices[d], group.stages));
    const unfolded = every || open?.has(`${r}:${g}`) || asked.length === 1;
    const weightOf = device => run.standsFor?.[device] ?? 1;
    if (unfolded) return asked.map(device => ({ group, key: `${r}:${g}`, device, weight: weightOf(device) }));
    return asked.slice(0, 1).map(device => ({ group, key: `${r}:${g}`, device, weight: asked.reduce((sum, d) => sum + weightOf(d), 0) }));
  });
}

/** Rows from top to bottom: {kind, y, height, run, device, and text, lane or memory}. Devices that do nothing have none. */
function rowsOf(runs, options) {
  const { messages, memory, paired } = options, rows = [], shown = [];
  let y = AXIS;
  const put = (kind, height, more) => {
    rows.push({ kind, y, height, ...more });
    y += height;
  };
  const device = (run, r, place) => {
    shown.push({ run: r, ...place });
    (run.lanesOf.get(place.device) ?? []).forEach((lane, k, lanes) => {
      const first = k === 0 || lanes[k - 1].kind !== lane.kind;
      if (lane.kind === 'compute' || messages) put(lane.kind, HEIGHTS[lane.kind], { run: r, ...place, lane, first });
    });
    const curve = memory && run.memoryOf.get(place.device);
    if (curve) put('memory', HEIGHTS.memory, { run: r, ...place, memory: curve });
    y += GAP;
  };
  const places = runs.map((run, r) => representatives(run, r, options));
  if (paired) {
    const named = places.map((list, r) => new Map(list.map(place => [runs[r].devices[place.device], place])));
    for (const name of new Set(named.flatMap(map => [...map.keys()]))) {
      put('heading', HEADING, { run: -1, text: name });
      runs.forEach((run, r) => named[r].has(name) && device(run, r, named[r].get(name)));
    }
  } else {
    runs.forEach((run, r) => {
      if (runs.length > 1) put('heading', HEADING, { run: r, text: run.name });
      for (const place of places[r]) device(run, r, place);
    });
  }
  return { rows, shown, height: y };
}

/** Pixels of a time, and back. `view` is {from, to, width}. */
function scaleOf(view) { return (view.width - LEFT - RIGHT) / (view.to - view.from); }
function xOf(view, time) { return LEFT + (time - view.from) * scaleOf(view); }
function timeAt(view, x) { return view.from + (x - LEFT) / scaleOf(view); }

/** Times from..to, kept inside 0..length and not shorter than a picosecond a pixel or so. */
function clamped(from, to, length) {
  const span = Math.min(Math.max(to - from, 1000), length);
  const begin = Math.min(Math.max(from, 0), length - span);
  return { from: begin, to: begin + span };
}
function zoomed(view, factor, at, length) {
  return clamped(at - (at - view.from) * factor, at + (view.to - at) * factor, length);
}

/**
 * The spans of a lane that are in view. A span of a pixel or more is handed to `wide(span)`. Narrower ones that start in
 * the same pixel are one cell: `cell(pixel, parts, critical)`, where parts[key] is the time in it of the spans with
 * keyOf(span) == key, so that nothing is lost and busy time stays what it is at every zoom.
 */
function slices(run, lane, view, keyOf, parts, wide, cell) {
  const scale = scaleOf(view), { start, end } = run;
  let i = firstWhere(lane.from, lane.to, n => end[n] > view.from);
  while (i < lane.to && start[i] < view.to) {
    if ((end[i] - start[i]) * scale >= 1) {
      wide(i++);
      continue;
    }
    const pixel = Math.floor((start[i] - view.from) * scale), edge = view.from + (pixel + 1) / scale;
    let critical = 0;
    parts.fill(0);
    do {
      parts[keyOf(i)] += end[i] - start[i];
      critical |= run.critical[i];
      ++i;
    } while (i < lane.to && start[i] < edge && (end[i] - start[i]) * scale < 1);
    cell(pixel, parts, critical);
  }
}

/** When a change holds in a view, [from, until] each time; times that no pixel lies between are one. */
function timesOf(change, view) {
  const end = Math.min(change.until, view.to), list = [];
  if (change.every * scaleOf(view) < 2) return change.from < end && change.until > view.from ? [[Math.max(change.from, view.from), end]] : [];
  for (let k = Math.max(0, Math.floor((view.from - change.from) / change.every)); change.from + k * change.every < end; ++k) {
    const from = change.from + k * change.every, until = Math.min(from + change.lasts, end);
    if (until > view.from) list.push([from, until]);
  }
  return list;
}
function holdsAt(change, time) {
  return time >= change.from && time < change.until && (change.every === 0 || (time - change.from) % change.every < change.lasts);
}

/** The span of a lane at a time, or the nearest within `slack`; -1 without one. */
function spanAt(run, lane, time, slack) {
  const behind = firstWhere(lane.from, lane.to, n => run.end[n] > time);
  const far = i => (i < lane.from || i >= lane.to ? Infinity : Math.max(run.start[i] - time, time - run.end[i], 0));
  const best = far(behind - 1) < far(behind) ? behind - 1 : behind;
  return far(best) <= slack ? best : -1;
}

/** Most memory in each pixel of a view: stash[pixel], messages[pixel], of the sample with the largest sum. */
function memoryPixels(curve, view) {
  const scale = scaleOf(view), count = Math.max(0, Math.ceil(view.width - LEFT - RIGHT));
  const stash = new Float64Array(count), messages = new Float64Array(count);
  let at = firstWhere(0, curve.time.length, n => curve.time[n] > view.from) - 1;
  for (let pixel = 0; pixel < count; ++pixel) {
    const edge = view.from + (pixel + 1) / scale;
    let most = -1;
    for (let n = Math.max(at, 0); n < curve.time.length && curve.time[n] < edge; ++n) {
      const total = curve.stash[n] + curve.messages[n];
      if (total > most) {
        most = total;
        stash[pixel] = curve.stash[n];
        messages[pixel] = curve.messages[n];
      }
      at = n;
    }
  }
  return { stash, messages };
}

function rowAt(rows, y) {
  const at = rows[firstWhere(0, rows.length, n => rows[n].y + rows[n].height > y)];
  return at && at.y <= y ? at : null;
}
