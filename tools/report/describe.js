// What is under a point of the timeline, in words.

function describe(r, i) {
  const run = runs[r], op = run.ops[run.op[i]], computes = laneOf(run, i).kind === 'compute';
  return [
    `${nameOf(run, i)}  ${op.kind.replace('_', ' ')}${computes ? '' : ', ' + sizeText(op.bytes)}`,
    `stage ${op.stage}, ${isUpdate(op) ? 'update' : 'micro-batch'} ${numberOf(run, i)}, iteration ${run.iteration[i] + 1}`,
    `on ${run.devices[laneOf(run, i).device]}${computes ? `, weights version ${run.version[i]}` : ''}`,
    `${timeText(run.start[i], 9)} to ${timeText(run.end[i], 9)}, takes ${timeText(run.end[i] - run.start[i], 6)}`,
    ...(run.critical[i] ? ['on the critical path'] : []),
    ...(runs.length > 1 ? [run.name] : []),
  ];
}

/** Why a device waits at a time. */
function gapText(run, device, time) {
  const gaps = knownGaps(run, device), i = gaps ? firstWhere(0, gaps.end.length, n => gaps.end[n] > time) : -1;
  if (i < 0 || i >= gaps.end.length || gaps.start[i] > time) return [];
  const cause = CAUSES[gaps.key[i]], [, , why] = IDLE.find(([key]) => key === (cause === 'collective' ? 'transfer' : cause));
  return [`idle ${timeText(gaps.end[i] - gaps.start[i])}: ${CAUSE_NAMES[cause]}`, `waits ${cause === 'collective' ? 'for a collective on the wire' : why}`];
}
/** The row whose name is under a point, where it stands for several devices or is one of them. */
function namedRow(x, y) {
  const row = x >= LEFT || y < AXIS ? null : rowAt(layout.rows, y + scroller.scrollTop);
  return row?.group?.devices.length > 1 ? row : null;
}

/** What is under a point of the canvas: {text, run, span}; null over nothing. */
function hit(x, y) {
  const row = y < AXIS || x < LEFT ? null : rowAt(layout.rows, y + scroller.scrollTop), view = sizedView();
  if (!row || row.kind === 'heading' || !(row.lane ?? row.memory).there) return null;
  const time = timeAt(view, x), run = runs[row.run];
  if (row.kind === 'memory') {
    const { time: times, stash, messages, resident } = row.memory, n = firstWhere(0, times.length, k => times[k] > time) - 1;
    if (n < 0 || time > run.length) return null;
    const total = resident + stash[n] + messages[n];
    return { text: [`${sizeText(total)} at ${timeText(time, 6)} on ${run.devices[row.device]}`, `stays ${sizeText(resident)}`, `activations ${sizeText(stash[n])}`, `messages ${sizeText(messages[n])}`] };
  }
  const span = spanAt(run, row.lane, time, 2 / scaleOf(view));
  const changes = run.changes.filter(c => c.devices.has(row.device) && time < run.length && holdsAt(c, time)).map(c => c.text);
  if (span < 0) {
    const text = [...(row.kind === 'compute' ? gapText(run, row.device, time) : []), ...changes];
    return text.length > 0 ? { text } : null;
  }
  return { run: row.run, span, text: [...describe(row.run, span), ...changes] };
}

function tip(event) {
  const box = canvas.getBoundingClientRect(), x = event ? event.clientX - box.left : 0, y = event ? event.clientY - box.top : 0;
  const named = event && namedRow(x, y), over = event && hit(x, y);
  canvas.style.cursor = named ? 'pointer' : '';
  showTip(named ? [spreadText(named.group), named.group.devices.slice(0, 8).map(d => runs[named.run].devices[d]).join(', ') + (named.group.devices.length > 8 ? ', \u2026' : '')] : over && over.text, event);
}
