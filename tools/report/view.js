// The timeline of some runs: what is in view, what is chosen, and how it changes. The page that has them calls showRuns(),
// and defines receive(), which is true when all of their spans have arrived.

const canvas = $('view'), scroller = $('scroller');
const state = {
  view: { from: 0, to: 1 }, chosen: null, found: [], next: 0, marked: null, paper: false, hidden: new Set(), open: new Set(), focused: false,
};
/** `length` is of what is drawn, `wholeLength` of the runs; the first view is the warm-up and a few micro-batches of the steady state, or one iteration where that is not much more. */
let runs = [], length = 1, wholeLength = 1, firstEnd = 1, layout = { rows: [], shown: [], height: 0 }, palette, waiting = 0;

/** Another list of runs; the view stays what it is where `keeps` is true. */
function setRuns(list, keeps = false) {
  runs = list;
  length = Math.max(1, ...runs.map(run => run.length));
  wholeLength = Math.max(1, ...runs.map(run => run.wholeLength));
  firstEnd = firstViewEnd(runs);
  state.view = keeps ? clamped(state.view.from, state.view.to, length) : { from: 0, to: firstEnd };
  state.chosen = state.marked = null;
  state.found = [];
  nameRuns(runs);
}

function sizedView() {
  const width = state.paper ? PAPER_WIDTH : scroller.clientWidth;
  LEFT = width < 600 ? 92 : 184;
  return { ...state.view, width };
}
function heightNow() { return Math.min(layout.height, Math.max(160, Math.floor(innerHeight * 0.76))); }

function arrange() {
  layout = rowsOf(runs, { messages: $('messages').checked, memory: $('memory').checked, paired: $('paired').checked, open: state.open, every: $('replicas').checked, filter: $('filter').value });
  $('spacer').style.height = layout.height + 'px';
  recolour();
}
function recolour() {
  palette = coloursOf([...PALETTE, ...KINDS]);
  fillLegend($('legend'), runs, $('colour').value === 'micro', palette, state.hidden, key => {
    const at = [...$('legend').querySelectorAll('button')].indexOf(document.activeElement);
    if (!state.hidden.delete(key)) state.hidden.add(key);
    recolour();
    if (at >= 0) $('legend').querySelectorAll('button')[at]?.focus();
  });
  redraw();
  tellParts();
}
/** At most once a frame. */
function redraw() {
  if (!waiting) waiting = requestAnimationFrame(paint);
}
function paint() {
  cancelAnimationFrame(waiting);
  waiting = 0;
  const view = sizedView(), height = heightNow();
  const scene = {
    runs, rows: layout.rows, view, height, palette, top: scroller.scrollTop, byMicro: $('colour').value === 'micro',
    critical: $('critical').checked, paired: $('paired').checked, chosen: state.chosen, marked: state.marked, hidden: state.hidden,
  };
  if (state.paper) fillStrips($('strips'), layout, scene);
  else draw(sizedContext(canvas, view.width, height), scene);
  if (!state.paper && runs.every(run => run.overview)) drawOverview($('overview'), runs, state.view, palette, wholeLength);
}

function show(from, to) {
  state.view = clamped(from, to, length);
  redraw();
  tellParts();
}
function zoom(factor, at = (state.view.from + state.view.to) / 2) {
  const { from, to } = zoomed(state.view, factor, at, length);
  show(from, to);
}
/** The start and end of an iteration: from the end of the one before. */
function iterationTimes(k) {
  const ends = n => Math.max(...runs.map(run => run.iterationEnds[Math.min(n, run.iterationEnds.length - 1)]));
  return [k > 0 ? ends(k - 1) : 0, ends(k)];
}
function iterationCount() { return Math.max(...runs.map(run => run.iterationEnds.length)); }
function iterationInView() {
  const { from, to } = state.view, middle = (from + to) / 2;
  return Math.max(0, Array.from({ length: iterationCount() }, (_, k) => k).findIndex(k => iterationTimes(k)[1] >= middle));
}
function isInView([from, to]) { return Math.abs(state.view.from - from) < 1 && Math.abs(state.view.to - to) < 1; }
function showIteration(k) { show(...iterationTimes(Math.min(Math.max(k, 0), iterationCount() - 1))); }
function fillIterations() {
  $('iterations').replaceChildren();
  const count = iterationCount(), put = (text, name, act) => {
    const button = element('button', text, { type: 'button', 'aria-label': name });
    button.addEventListener('click', act);
    $('iterations').append(button);
  };
  if (!isInView(iterationTimes(0))) {
    put('Warm-up', 'Warm-up and a few micro-batches', () => show(0, firstEnd));
    $('iterations').lastChild.id = 'warm-up';
  }
  for (let k = 0; (count > 1 || firstEnd < length) && k < Math.min(count, 5); ++k) put(k === 0 ? 'Iteration 1' : String(k + 1), `Iteration ${k + 1}`, () => showIteration(k));
  put('All', 'All iterations', () => show(0, length));
  $('iterations').lastChild.id = 'all';
}

let telling = 0;
/** Device time of the selection, or of what is in view, shortly after the view comes to rest. */
function tellParts() {
  clearTimeout(telling);
  telling = setTimeout(() => {
    const [from, to] = state.marked ?? [state.view.from, state.view.to], what = `${state.marked ? 'selected' : 'in view'} ${timeText(to - from)}`;
    const times = runs.map((_, r) => timeIn(runs, layout.shown.filter(place => place.run === r), from, to));
    if (times.includes(null)) return tellParts();
    $('to-selection').disabled = !state.marked;
    $('parts').replaceChildren(...times.flatMap((time, r) => partLines(runs.length > 1 ? `${labelOf(runs[r])}, ${what}` : what[0].toUpperCase() + what.slice(1), partsOf(time))));
    const buttons = [...$('iterations').children], skipped = buttons.some(button => button.id === 'warm-up') ? 1 : 0;
    buttons.forEach((button, k) => button.setAttribute('aria-pressed', isInView(button.id === 'all' ? [0, length] : button.id === 'warm-up' ? [0, firstEnd] : iterationTimes(k - skipped))));
  }, 60);
}
function mark(range) {
  state.marked = range;
  redraw();
  tellParts();
}
function zoomToMarked() {
  if (!state.marked) return;
  const [from, to] = state.marked;
  state.marked = null;
  show(from, to);
}
function fold(key) {
  if (!state.open.delete(key)) state.open.add(key);
  arrange();
}
function move(part) {
  const by = part * (state.view.to - state.view.from);
  show(state.view.from + by, state.view.to + by);
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
  const rowOf = () => layout.rows.find(a => a.run === r && a.lane === lane);
  if (!rowOf()) {  // It is one of several replicas, or its row is filtered out.
    $('filter').value = '';
    const group = run.groups.findIndex(g => g.devices.includes(lane.device));
    if (group >= 0) state.open.add(`${r}:${group}`);
    arrange();
  }
  const row = rowOf();
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


/** Cards, the sentence that answers, and which controls the runs have; arrange() draws them. */
function fillHead() {
  $('cards').replaceChildren(...(runs.length > 1 ? compareCards(runs) : runCards(runs[0])));
  $('cards').style.gridTemplateColumns = runs.length > 1 ? `repeat(auto-fit, minmax(min(200px, 100%), 1fr))` : '';
  fillLines($('answer'), runs.length > 1 ? comparison(runs) : diagnosisLines(runs[0].results.diagnosis, samplesOf(runs[0])));
  $('notice').textContent = batchNotice(runs);
  $('notice').hidden = $('notice').textContent === '';
  $('paired-label').hidden = runs.length < 2;
  $('drawn').textContent = drawnNote(runs);
  $('drawn').hidden = $('drawn').textContent === '';
  $('overview').hidden = !runs.every(run => run.overview) || (firstEnd >= length && length >= wholeLength);
  $('replicas-label').hidden = runs.every(run => run.groups.every(g => g.devices.length === 1));
  fillIterations();
}
