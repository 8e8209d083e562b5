// What keys, the pointer and the controls of the timeline do.

function toggle(id) {
  $(id).checked = !$(id).checked;
  arrange();
}

const KEYS = {
  '+': () => zoom(0.8), '=': () => zoom(0.8), w: () => zoom(0.8), '-': () => zoom(1.25), s: () => zoom(1.25),
  ArrowLeft: () => move(-0.1), a: () => move(-0.1), ArrowRight: () => move(0.1), d: () => move(0.1), 0: () => show(0, length),
  ArrowUp: () => scroller.scrollBy(0, -40), ArrowDown: () => scroller.scrollBy(0, 40), c: () => toggle('critical'),
  m: () => toggle('messages'), n: () => toggle('memory'), '.': () => step(1), ',': () => step(-1),
  Escape: () => {
    choose(null);
    mark(null);
  },
  z: zoomToMarked, '[': () => showIteration(iterationInView() - 1), ']': () => showIteration(iterationInView() + 1), x: foldChosen,
  Enter: () => state.chosen && reveal(state.chosen, true),
};

/** Opens or folds the replicas of the chosen op; without one, of all rows. */
function foldChosen() {
  if (!state.chosen) return toggle('replicas');
  const run = runs[state.chosen.run], { device } = laneOf(run, state.chosen.span);
  fold(`${state.chosen.run}:${run.groups.findIndex(g => g.devices.includes(device))}`);
}
for (let k = 1; k <= 9; ++k) KEYS[k] = () => k <= iterationCount() && showIteration(k - 1);

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
    if (e.offsetX < LEFT || !(state.focused || e.ctrlKey)) return;
    e.preventDefault();
    const sideways = e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY), delta = e.deltaY || e.deltaX;
    if (sideways) move((Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : delta) / 1000);
    else zoom(Math.exp(Math.max(-200, Math.min(200, delta)) / 500), timeAt(sizedView(), e.offsetX));
  }, { passive: false });
  listenToDrags();
  listenToOverview($('overview'), part => {
    const half = (state.view.to - state.view.from) / 2;
    show(part * wholeLength - half, part * wholeLength + half);
  });
  canvas.addEventListener('pointerleave', () => tip(null));
  scroller.addEventListener('scroll', redraw);
  $('search').addEventListener('submit', e => {
    e.preventDefault();
    find($('query').value.trim());
  });
  $('filter').addEventListener('input', arrange);
  for (const id of ['messages', 'memory', 'paired', 'replicas']) $(id).addEventListener('change', arrange);
  for (const id of ['colour', 'critical']) $(id).addEventListener('change', recolour);
  $('closer').addEventListener('click', () => zoom(0.6));
  $('farther').addEventListener('click', () => zoom(1 / 0.6));
  $('to-selection').addEventListener('click', zoomToMarked);
  canvas.addEventListener('focus', () => (state.focused = true));
  canvas.addEventListener('blur', () => (state.focused = false));
  addEventListener('resize', redraw);
  listenToTheme(recolour, paper => {
    receive();
    state.paper = paper;
    recolour();
    paint();
    if (!paper) $('strips').replaceChildren();
  });
}

function listenToDrags() {
  let drag = null;
  canvas.addEventListener('pointerdown', e => {
    const named = namedRow(e.offsetX, e.offsetY);
    if (e.button === 0 && named) fold(named.key);
    if (e.button !== 0 || e.offsetX < LEFT) return;
    drag = { x: e.offsetX, y: e.offsetY, view: sizedView(), moves: e.shiftKey, moved: false };
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener('pointermove', e => {
    if (!drag) return tip(e);
    drag.moved = drag.moved || Math.abs(e.offsetX - drag.x) > 3;
    if (!drag.moved) return;
    tip(null);
    const by = (drag.x - e.offsetX) / scaleOf(drag.view);
    if (drag.moves) show(drag.view.from + by, drag.view.to + by);
    else mark([drag.x, e.offsetX].sort((a, b) => a - b).map(x => Math.min(Math.max(timeAt(drag.view, x), 0), length)));
  });
  const drop = e => {
    const done = drag;
    drag = null;
    if (!done || e.type === 'pointercancel' || done.moved) return;
    choose(hit(done.x, done.y)?.run === undefined ? null : hit(done.x, done.y));
    if (!state.chosen) mark(null);
  };
  canvas.addEventListener('pointerup', drop);
  canvas.addEventListener('pointercancel', drop);
}
