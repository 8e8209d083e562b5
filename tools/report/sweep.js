// The page of a sweep: what is shown, and what the user does.

const sweep = decodeSweep(JSON.parse($('data').textContent));
const axisOf = path => sweep.axes.find(a => a.path === path);
const metricNamed = name => sweep.metrics.find(m => m.name === name);
const varying = sweep.axes.filter(a => variesIn(a) && !a.follows);
const CHOICES = { how: ['best', 'mean', 'worst'], status: ['', 'ok', 'failed'], words: null, every: ['', '1'] };
const first = firstState(), targets = {};
let state, shown = [], rows = [], compared = {}, best = { front: [], rest: [], fronts: [] }, paper = false, waiting = 0, saved = null;

/** Sizes across, names down: what is looked at most often. */
function firstState() {
  const byCount = [...varying].sort((a, b) => b.values.length - a.values.length), sized = byCount.filter(a => a.sizes), named = byCount.filter(a => !a.sizes);
  const [x = '', y = x] = [...sized.slice(0, 1), ...named, ...sized.slice(1)].map(a => a.path);
  const known = (...names) => [...names, sweep.metrics[0]?.name ?? ''].find(name => name === '' || metricNamed(name));
  const metric = firstMetric(sweep);
  return {
    metric, how: 'best', status: '', words: '', mapX: x, mapY: y, lineX: x, lineBy: x === y ? '' : y,
    costA: metric, costB: known('peak_memory_bytes'), sort: 'number', every: '', point: sweep.count === 1 ? String(sweep.number[0]) : '', fixed: {},
  };
}
function fillChoices() {
  const metrics = sweep.metrics.map(m => [m.name, m.title]), axes = varying.map(a => [a.path, a.name]);
  const choose = (id, list) => {
    $(id).replaceChildren(...list.map(([value, text]) => element('option', text, { value })));
    CHOICES[id] = list.map(([value]) => value);
  };
  for (const id of ['metric', 'costA', 'costB']) choose(id, metrics);
  for (const id of ['mapX', 'mapY', 'lineX']) choose(id, axes);
  choose('lineBy', [['', '\u2013'], ...axes]);
  CHOICES.sort = ['number', 'end', ...sweep.axes.map(a => a.path), ...sweep.figures.map(f => f.name)].flatMap(key => [key, '-' + key]);
  CHOICES.point = sweep.number.map(String);
  for (const axis of varying) {
    const label = element('label', axis.name + ' '), select = element('select', undefined, { 'data-fixed': axis.path, title: axis.path });
    select.append(element('option', 'any', { value: '*' }), ...axis.texts.map((t, k) => element('option', axis.names[k], { value: t })));
    label.append(select);
    $('fixed').append(label);
    CHOICES['fix.' + axis.path] = axis.texts;
  }
}

/** Puts the state into the page's controls, and chooses and draws what it says. */
function show() {
  for (const id of ['metric', 'how', 'status', 'words', 'mapX', 'mapY', 'lineX', 'lineBy', 'costA', 'costB']) $(id).value = state[id];
  $('every').checked = state.every === '1';
  for (const select of document.querySelectorAll('[data-fixed]')) select.value = state.fixed[select.dataset.fixed] ?? '*';
  shown = shownPoints(sweep, state);
  rows = sortedPoints(sweep, shown, state.sort.replace(/^-/, ''), state.sort.startsWith('-'));
  const ran = shown.filter(i => sweep.ran[i]);
  $('map-section').hidden = varying.length < 2 || sweep.metrics.length === 0;
  $('lines-section').hidden = varying.length < 1 || sweep.metrics.length === 0;
  $('front-section').hidden = sweep.metrics.length < 2 || sweep.count < 2;
  $('pictures').hidden = sweep.count < 2 || sweep.metrics.length === 0;
  $('shown').textContent = `${shown.length} of ${sweep.count} points${verdict(ran)}`;
  $('answer').replaceChildren(...answerOf(sweep, shown, metricNamed(state.metric)).map(sentence => element('p', sentence)));
  $('answer').hidden = !$('answer').firstChild || sweep.count < 2;
  setComparedPoints();
  fillGridHead($('points'), gridColumns(sweep, state.every === '1'), state.sort);
  fillFront();
  tell();
  redraw();
}

/** Which points each picture compares, and a sentence about those that it leaves out. */
function setComparedPoints() {
  const like = (id, names, paths) => {
    const axes = paths.map(axisOf).filter(Boolean), metric = { onAnyDevices: names.every(name => metricNamed(name)?.onAnyDevices) };
    const { like: points, instead } = likePoints(sweep, shown, metric, axes), note = leftOutText(sweep, shown, instead, axes);
    $(`${id}-note`).textContent = note;
    $(`${id}-note`).hidden = note === '';
    return { points, note, classOf: i => (metric.onAnyDevices ? 0 : devicesOf(sweep, i)) };
  };
  compared = {
    map: like('map', [state.metric], [state.mapX, state.mapY]), lines: like('lines', [state.metric], [state.lineX, state.lineBy]),
    front: like('front', [state.costA, state.costB], varying.map(a => a.path)),
  };
}

function verdict(ran) {
  const metric = metricNamed(state.metric);
  if (!metric || metric.better === 0) return '';
  const { usual, like } = likePoints(sweep, ran, metric), ahead = reduced(metric, like, 'best'), on = usual === null ? '' : ` on ${countOfDevices(usual)}`;
  return ahead.count > 0 ? `; best ${metric.title}${on}: ${metricText(metric, ahead.value)} with ${labelOf(sweep, ahead.point)}` : '';
}

function frontText({ front, rest, fronts }) {
  const other = fronts.length > 1 ? 'no other on as many devices' : 'no other';
  return `${front.length} of ${front.length + rest.length} points ${front.length === 1 ? 'is' : 'are'} on the front: ${other} is better in one figure and not worse in the other`;
}
function fillFront() {
  if ($('front-section').hidden) return;
  best = frontsByClass(compared.front.points, metricNamed(state.costA), metricNamed(state.costB), compared.front.classOf);
  const { front } = best, metrics = [metricNamed(state.costA), metricNamed(state.costB)];
  $('front-count').textContent = front.length === 0 ? 'No point has both figures.' : `${frontText(best)}${state.lineBy && state.lineBy !== state.lineX ? '; colors as in Lines' : ''}:`;
  $('front-list').replaceChildren(...front.slice(0, 100).map(i => {
    const item = element('li');
    const label = labelOf(sweep, i), figures = metrics.map(m => metricText(m, m.values[i])).join(', ');
    const button = element('button', undefined, { type: 'button', 'data-point': i, title: `${label}: ${figures}` });
    button.append(element('span', label), `: ${figures}`);
    item.append(button);
    return item;
  }));
}

/** What is said of the chosen point, and the address. */
function tell() {
  const i = chosenPoint();
  $('chosen-title').textContent = i === null ? 'Point' : `Point ${sweep.number[i]}`;
  fillChosen($('chosen'), sweep, i);
  for (const button of $('front-list').querySelectorAll('button')) button.setAttribute('aria-pressed', Number(button.dataset.point) === i);
  history.replaceState(null, '', addressOf(state, first) || location.pathname + location.search);
}
function chosenPoint() {
  const i = state.point === '' ? -1 : sweep.number.indexOf(Number(state.point));
  return i < 0 ? null : i;
}

function redraw() {
  if (!waiting) waiting = requestAnimationFrame(paint);
}
function paint() {
  cancelAnimationFrame(waiting);
  waiting = 0;
  const palette = coloursOf(COLOURS), chosen = chosenPoint(), metric = metricNamed(state.metric), how = state.how;
  const onPoint = mark => mark.point === chosen;
  if (metric && !$('map-section').hidden) paintMap(metric, how, chosen, palette);
  if (metric && !$('lines-section').hidden) {
    const x = axisOf(state.lineX), by = state.lineBy === state.lineX ? null : axisOf(state.lineBy);
    const series = lineSeries(compared.lines.points, x, by, metric, how, shown);
    fillLegend($('legend'), by ? series : []);
    targets.lines = drawSeries(...sized('lines', 320), series, { x, points: shown, metric, how, palette, chosen: onPoint });
  }
  if (!$('front-section').hidden) {
    const by = axisOf(state.lineBy);
    const shortOf = shortNames(sweep, best.front);
    targets.front = drawFront(...sized('front', 320), best, {
      a: metricNamed(state.costA), b: metricNamed(state.costB), palette, chosen: onPoint, nameOf: i => labelOf(sweep, i), shortOf,
      keyOf: i => (by ? by.of[i] + (by.of.includes(-1) ? 1 : 0) : 0),
    });
  }
  paintRows();
}

function paintMap(metric, how, chosen, palette) {
  const x = axisOf(state.mapX), y = axisOf(state.mapY), map = heatMap(compared.map.points, x, y, metric, how, { shown, classOf: compared.map.classOf });
  const width = pictureWidth('map'), { height } = mapLayout($('map').getContext('2d'), map, x, y, width);
  const here = cell => chosen !== null && x.of[chosen] === map.xs[cell.x] && y.of[chosen] === map.ys[cell.y];
  targets.map = drawMap(...sized('map', height), map, { x, y, metric, how, chosen: here, palette });
}
function paintRows() {
  fillGridRows($('scroller'), $('points'), gridColumns(sweep, state.every === '1'), sweep, rows, chosenPoint(), paper);
}
function pictureWidth(id) { return paper ? PAPER_WIDTH : $(id).clientWidth; }
/** Where a picture is drawn: its canvas, or the file that it is saved to. */
function sized(id, height) {
  const width = pictureWidth(id);
  if (!saved) return [sizedContext($(id), width, height, paper), { width, height }];
  saved.files[id] = new SvgContext($(id).getContext('2d'), width, height);
  return [saved.files[id], { width, height }];
}
function legendSeries() {
  const by = state.lineBy === state.lineX ? null : axisOf(state.lineBy);
  return by ? lineSeries(compared.lines.points, axisOf(state.lineX), by, metricNamed(state.metric), state.how, shown) : [];
}
/** The text of a picture as an SVG file, in the colors of paper. */
function svgOf(id) {
  saved = { files: {} };
  inLight(paint);
  if (id === 'lines') inLight(() => drawLegend(saved.files.lines, legendSeries(), coloursOf(COLOURS)));
  inLight(() => drawNote(saved.files[id], compared[id].note, coloursOf(COLOURS)));
  const text = saved.files[id].document();
  saved = null;
  paint();
  return text;
}

const GLYPHS = { circle: '\u25cf', square: '\u25a0', triangle: '\u25b2', diamond: '\u25c6', cross: '\u2715' };
function fillLegend(list, series) {
  list.replaceChildren(...series.flatMap(({ text, marks }, k) => {
    if (marks.length === 0) return [];
    const { colour, shape } = seriesStyle(k), item = element('li', undefined, text.length > 40 ? { title: text } : {}), glyph = element('span', GLYPHS[shape] + ' ');
    glyph.style.color = colour;
    item.append(glyph, text);
    return item;
  }));
}

function choose(i) {
  state.point = i === null ? '' : String(sweep.number[i]);
  const place = rows.indexOf(i);
  if (place >= 0) revealRow($('scroller'), $('points'), place);
  tell();
  redraw();
}

function hit(id, x, y) {
  const list = targets[id] ?? [], boxed = list.find(({ box }) => box && x >= box.x && x < box.x + box.width + 1 && y >= box.y && y < box.y + box.height + 1);
  if (boxed) return boxed;
  let best = null, least = 14 ** 2;
  for (const t of list) {
    const far = t.box ? Infinity : (t.x - x) ** 2 + (t.y - y) ** 2;
    if (far < least) [best, least] = [t, far];
  }
  return best;
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
function listenToPicture(id) {
  const canvas = $(id);
  canvas.addEventListener('pointermove', e => showTip(hit(id, e.offsetX, e.offsetY)?.text, e));
  canvas.addEventListener('pointerleave', () => showTip(null));
  canvas.addEventListener('click', e => choose(hit(id, e.offsetX, e.offsetY)?.point ?? null));
  canvas.addEventListener('keydown', e => {
    if (e.key === 'Escape') choose(null);
    if (!ARROWS[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    const list = targets[id] ?? [], from = list.find(t => t.point === chosenPoint());
    const next = from ? nextTarget(list, from, ...ARROWS[e.key]) : list.length - 1;
    if (next >= 0) choose(list[next].point);
  });
}

function listenToTable() {
  $('scroller').addEventListener('scroll', () => requestAnimationFrame(paintRows));
  $('points').addEventListener('click', e => {
    const key = e.target.closest('[data-key]')?.dataset.key, row = e.target.closest('[data-point]');
    if (key) change({ sort: state.sort === key ? '-' + key : key });
    if (row) choose(Number(row.dataset.point));
  });
  $('scroller').addEventListener('keydown', e => {
    if (e.target !== $('scroller')) return;
    const page = Math.max(1, Math.floor($('scroller').clientHeight / ROW) - 2);
    const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -rows.length, End: rows.length }[e.key];
    if (e.key === 'Escape') choose(null);
    if (by === undefined || rows.length === 0) return;
    e.preventDefault();
    const at = rows.indexOf(chosenPoint());
    choose(rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)]);
  });
}

function change(by) {
  Object.assign(state, by);
  show();
}

function listen() {
  for (const id of ['metric', 'how', 'status', 'mapX', 'mapY', 'lineX', 'lineBy', 'costA', 'costB']) $(id).addEventListener('change', () => change({ [id]: $(id).value }));
  $('every').addEventListener('change', () => change({ every: $('every').checked ? '1' : '' }));
  $('words').addEventListener('input', () => change({ words: $('words').value }));
  $('filters').addEventListener('submit', e => e.preventDefault());
  $('fixed').addEventListener('change', ({ target }) => {
    const { [target.dataset.fixed]: _, ...fixed } = state.fixed;
    change({ fixed: target.value === '*' ? fixed : { ...fixed, [target.dataset.fixed]: target.value } });
  });
  $('reset').addEventListener('click', () => change({ ...first, fixed: {} }));
  $('front-list').addEventListener('click', ({ target }) => target.dataset.point && choose(Number(target.dataset.point)));
  for (const id of ['map', 'lines', 'front']) listenToPicture(id);
  listenToTable();
  $('csv').addEventListener('click', saveCsv);
  document.addEventListener('keydown', e => {
    if (e.key !== '/' || e.ctrlKey || e.metaKey || ['INPUT', 'SELECT'].includes(document.activeElement.tagName)) return;
    e.preventDefault();
    $('words').select();
  });
  addEventListener('resize', redraw);
  addEventListener('hashchange', () => {
    state = stateOf(location.hash, first, CHOICES);
    show();
  });
  for (const button of document.querySelectorAll('[data-svg]'))
    button.addEventListener('click', () => saveFile(`${sweep.name}-${button.dataset.svg}.svg`, svgOf(button.dataset.svg), 'image/svg+xml'));
  listenToTheme(redraw, onPaper => {
    paper = onPaper;
    paint();
  });
}

function saveCsv() { saveFile(`${sweep.name}.csv`, csvOf(sweep, rows), 'text/csv'); }

function summary() {
  const failed = sweep.ends.of.filter(e => e >= 0 && sweep.ends.values[e].status !== 'ok').length, missing = sweep.ends.of.filter(e => e < 0).length;
  return `${sweep.count} point${sweep.count === 1 ? '' : 's'} of ${sweep.base} on ${sweep.backend}${failed ? `, ${failed} failed` : ''}${missing ? `, ${missing} not run` : ''}`;
}

$('summary').textContent = summary();
$('origin').textContent = `${sweep.name}.yaml, stagecraft ${sweep.version}`;
fillChoices();
state = stateOf(location.hash, first, CHOICES);
listen();
show();
paint();
// What a test asks; a canvas has no elements to look up.
window.report = { sweep, targets, paint, change, csv: () => csvOf(sweep, rows), svg: svgOf, state: () => state };
