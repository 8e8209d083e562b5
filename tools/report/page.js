// The page: what is in view, and what the user does.

const runs = JSON.parse($('data').textContent).runs.map(openRun);
const parts = runs.flatMap(run => run.parts.map(part => [run, part]));
let arrived = 0;
const length = Math.max(1, ...runs.map(run => run.length));
const canvas = $('view'), scroller = $('scroller');
const state = { view: { from: 0, to: length }, chosen: null, found: [], next: 0, marked: null, paper: false };
let layout, palette, waiting = 0;

function sizedView() { return { ...state.view, width: scroller.clientWidth }; }
function heightNow() { return Math.min(layout.height, state.paper ? 16000 : Math.max(160, Math.floor(innerHeight * 0.8))); }

function arrange() {
  layout = rowsOf(runs, { messages: $('messages').checked, memory: $('memory').checked, paired: $('paired').checked });
  $('spacer').style.height = layout.height + 'px';
  recolour();
}
function recolour() {
  palette = coloursOf(PALETTE);
  fillLegend($('legend'), runs, $('colour').value === 'micro', palette);
  redraw();
}
/** Reads what has arrived of the page's data, or enough of it; true when that is all. */
function receive(enough = () => false) {
  const whole = document.readyState !== 'loading';
  for (; arrived < parts.length && (whole || $(`part${arrived + 1}`)) && !enough(); ++arrived)
    readPart(...parts[arrived], JSON.parse($(`part${arrived}`).textContent));
  return arrived === parts.length;
}
/** Until all that is in sight is drawn, which does not wait for the rest of the page. */
function paintEarly() {
  const top = scroller.scrollTop, bottom = top + heightNow();
  const inSight = layout.rows.filter(row => row.kind !== 'heading' && row.y < bottom && row.y + row.height > top);
  const there = () => inSight.every(row => (row.lane ?? row.memory).there);
  receive(there);
  paint();
  if (there()) performance.mark('drawn');
  else requestAnimationFrame(paintEarly);
}
/** At most once a frame. */
function redraw() {
  if (!waiting) waiting = requestAnimationFrame(paint);
}
function paint() {
  cancelAnimationFrame(waiting);
  waiting = 0;
  const view = sizedView(), height = heightNow();
  draw(sizedContext(canvas, view.width, height), {
    runs, rows: layout.rows, view, height, palette, top: state.paper ? 0 : scroller.scrollTop, byMicro: $('colour').value === 'micro',
    critical: $('critical').checked, paired: $('paired').checked, chosen: state.chosen, marked: state.marked,
  });
}

function show(from, to) {
  state.view = clamped(from, to, length);
  redraw();
}
function zoom(factor, at = (state.view.from + state.view.to) / 2) {
  state.view = zoomed(state.view, factor, at, length);
  redraw();
}
function move(part) {
  const by = part * (state.view.to - state.view.from);
  show(state.view.from + by, state.view.to + by);
}

function describe(r, i) {
  const run = runs[r], op = run.ops[run.op[i]], computes = laneOf(run, i).kind === 'compute';
  return [
    `${nameOf(run, i)}  ${op.kind.replace('_', ' ')}${computes ? '' : ', ' + sizeText(op.bytes)}`,
    `stage ${op.stage}, ${op.kind === 'update' || op.kind === 'all_reduce' ? 'update' : 'micro-batch'} ${run.micro[i]}, iteration ${run.iteration[i]}`,
    `on ${run.devices[laneOf(run, i).device]}${computes ? `, weights version ${run.version[i]}` : ''}`,
    `${timeText(run.start[i], 9)} to ${timeText(run.end[i], 9)}, takes ${timeText(run.end[i] - run.start[i], 6)}`,
    ...(run.critical[i] ? ['on the critical path'] : []),
    ...(runs.length > 1 ? [run.name] : []),
  ];
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
  if (span < 0) return changes.length > 0 ? { text: changes } : null;
  return { run: row.run, span, text: [...describe(row.run, span), ...changes] };
}

function tip(event) {
  const box = canvas.getBoundingClientRect(), over = event && hit(event.clientX - box.left, event.clientY - box.top);
  showTip(over && over.text, event);
}

function choose(chosen) {
  state.chosen = chosen;
  $('status').textContent = chosen ? describe(chosen.run, chosen.span).join('; ') : '';
  redraw();
}

/** Brings an op into view, wide enough to be seen, and its row too. */
function reveal({ run: r, span }, closer) {
  const run = runs[r], lane = laneOf(run, span), long = Math.max(run.end[span] - run.start[span], 1);
  if (lane.kind !== 'compute' && !$('messages').checked) {
    $('messages').checked = true;
    arrange();
  }
  const span0 = state.view.to - state.view.from, wide = closer || long * scaleOf(sizedView()) < 12 ? long * 16 : span0;
  const middle = (run.start[span] + run.end[span]) / 2;
  if (wide !== span0 || run.start[span] < state.view.from || run.end[span] > state.view.to) show(middle - wide / 2, middle + wide / 2);
  const row = layout.rows.find(a => a.run === r && a.lane === lane);
  if (row.y - AXIS < scroller.scrollTop || row.y + row.height > scroller.scrollTop + heightNow())
    scroller.scrollTop = row.y - heightNow() / 2;
  choose({ run: r, span });
}

function find(query) {
  if (!receive()) {
    $('status').textContent = 'The page has not arrived yet.';
    return;
  }
  if (query !== state.query) Object.assign(state, { query, found: findSpans(runs, query), next: 0 });
  if (state.found.length === 0) {
    $('status').textContent = `There is no op ${query}; write stage, kind and micro-batch, such as 0F0.`;
    return;
  }
  reveal(state.found[state.next % state.found.length], false);
  $('status').textContent = `${(state.next++ % state.found.length) + 1} of ${state.found.length}: ${$('status').textContent}`;
}

/** The next op of the row; without one, the first in view. */
function step(by) {
  if (!receive()) return;
  if (!state.chosen) {
    const row = layout.rows.find(a => a.kind === 'compute');
    if (row) reveal({ run: row.run, span: Math.min(firstWhere(row.lane.from, row.lane.to, n => runs[row.run].end[n] > state.view.from), row.lane.to - 1) }, false);
    return;
  }
  const { run, span } = state.chosen, lane = laneOf(runs[run], span), next = span + by;
  if (next >= lane.from && next < lane.to) reveal({ run, span: next }, false);
}

function toggle(id) {
  $(id).checked = !$(id).checked;
  arrange();
}

const KEYS = {
  '+': () => zoom(0.8), '=': () => zoom(0.8), w: () => zoom(0.8), '-': () => zoom(1.25), s: () => zoom(1.25),
  ArrowLeft: () => move(-0.1), a: () => move(-0.1), ArrowRight: () => move(0.1), d: () => move(0.1), 0: () => show(0, length),
  ArrowUp: () => scroller.scrollBy(0, -40), ArrowDown: () => scroller.scrollBy(0, 40), c: () => toggle('critical'),
  m: () => toggle('messages'), '.': () => step(1), ',': () => step(-1), Escape: () => choose(null),
  Enter: () => state.chosen && reveal(state.chosen, true),
};

function listen() {
  canvas.addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey || !KEYS[e.key]) return;
    e.preventDefault();
    KEYS[e.key]();
  });
  document.addEventListener('keydown', e => {
    if (e.key !== '/' || e.ctrlKey || e.metaKey || ['INPUT', 'SELECT'].includes(document.activeElement.tagName)) return;
    e.preventDefault();
    $('query').select();
  });
  canvas.addEventListener('wheel', e => {
    if (e.offsetX < LEFT) return;
    e.preventDefault();
    const sideways = e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY), delta = e.deltaY || e.deltaX;
    if (sideways) move((Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : delta) / 1000);
    else zoom(Math.exp(Math.max(-200, Math.min(200, delta)) / 500), timeAt(sizedView(), e.offsetX));
  }, { passive: false });
  listenToDrags();
  canvas.addEventListener('pointerleave', () => tip(null));
  scroller.addEventListener('scroll', redraw);
  $('search').addEventListener('submit', e => {
    e.preventDefault();
    find($('query').value.trim());
  });
  $('link-query').addEventListener('input', () => fillLinks(runs, $('link-query').value));
  for (const id of ['messages', 'memory', 'paired']) $(id).addEventListener('change', arrange);
  for (const id of ['colour', 'critical']) $(id).addEventListener('change', recolour);
  $('closer').addEventListener('click', () => zoom(0.6));
  $('farther').addEventListener('click', () => zoom(1 / 0.6));
  $('all').addEventListener('click', () => show(0, length));
  addEventListener('resize', redraw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour);
  for (const [event, paper] of [['beforeprint', true], ['afterprint', false]])
    addEventListener(event, () => {
      receive();
      state.paper = paper;
      document.documentElement.classList.toggle('paper', paper);
      recolour();
      paint();  // No frame comes before the paper.
    });
}

function listenToDrags() {
  let drag = null;
  canvas.addEventListener('pointerdown', e => {
    if (e.button !== 0 || e.offsetX < LEFT) return;
    drag = { x: e.offsetX, y: e.offsetY, view: sizedView(), marks: e.shiftKey, moved: false };
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener('pointermove', e => {
    if (!drag) return tip(e);
    drag.moved = drag.moved || Math.abs(e.offsetX - drag.x) > 3;
    if (!drag.moved) return;
    tip(null);
    const by = (drag.x - e.offsetX) / scaleOf(drag.view);
    if (drag.marks) state.marked = [drag.x, e.offsetX];
    else show(drag.view.from + by, drag.view.to + by);
    redraw();
  });
  const drop = e => {
    const done = drag;
    drag = state.marked = null;
    if (!done || e.type === 'pointercancel') return redraw();
    if (done.marks && done.moved) show(...[done.x, e.offsetX].sort((a, b) => a - b).map(x => timeAt(done.view, x)));
    if (!done.moved) choose(hit(done.x, done.y)?.run === undefined ? null : hit(done.x, done.y));
    redraw();
  };
  canvas.addEventListener('pointerup', drop);
  canvas.addEventListener('pointercancel', drop);
}

fillSetups($('setups'), runs);
fillFigures($('figures'), runs);
$('paired-label').hidden = runs.length < 2;
arrange();
listen();
requestAnimationFrame(paintEarly);
document.addEventListener('DOMContentLoaded', () => {
  fillTimes($('times-section'), $('times'), runs);
  fillDevices($('devices'), runs);
  fillIdle($('idle'), runs);
  fillLinks(runs, '');
  fillOrigin($('origin'), $('scenarios'), runs);
  receive();
  redraw();
  performance.mark('whole');
});
// What a test asks; a canvas has no elements to look up.
window.report = { runs, state, hit, rows: () => layout.rows, x: time => xOf(sizedView(), time), paint };
