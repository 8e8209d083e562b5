// The playground: a scenario that is edited, and what it does. Every change goes through change(), so that undo, link,
// controls and picture follow it.

const given = JSON.parse($('data').textContent);
if (given.loader) Object.assign(given, { worker: URL.createObjectURL(new Blob([given.loader], { type: 'text/javascript' })) });
given.worker ??= 'worker.js';

/** What is shown: the text, options next to it where the text has no place for them, a second schedule, the simulator. */
let shown = { yaml: '', sets: {}, second: '', backend: 'fluid' };
let lists = null, file = 'scenario.yaml', files = {}, textPlaces = [], fields = new Map(), sizes = { layers: 8, devices: 8, stages: 1 }, story = null;
/** Whether textPlaces are of the text that is shown; a control waits for that, but not for long. */
let isRead = false;
const READ_MS = 400;
/** Places in the text of the story, from which each of its steps begins. */
let storyPlaces = [];
const engine = openEngine(given), picture = new NewestFirst(engine), undoHistory = new UndoHistory();

function receive() { return true; }

// ---- Changes.

/** The value of a field: what is set, written, or with `isWritten` false also what follows for a field without a value. */
function valueOf(path, isWritten = false) {
  if (path === 'second' || path === 'backend') return shown[path];
  const resolved = at => fields.get(at)?.replace(/ +#.*$/, '').replace(/^(["'])(.*)\1$/, '$2');
  return shown.sets[path] ?? valueInText(textPlaces, path) ?? (isWritten ? undefined : [path, `${path}.name`, `${path}.state`, `${path}.base`].map(resolved).find(value => value !== undefined && value !== path));
}
/** Shows something else: `next` has the members that change. */
function change(next, isTyped = false) {
  shown = { ...shown, ...next };
  undoHistory.add(shown, isTyped);
  present();
}
function forgetPlaces() {
  textPlaces = [];
  isRead = false;
}
/** Another text; its places are unknown until the engine has read it. */
function rewrite(yaml, isTyped = false) {
  forgetPlaces();
  change({ yaml }, isTyped);
}
function setValue(path, value) { setValues([[path, value]]); }
function setValues(options) {
  if (!isRead && performance.now() - presented < READ_MS) return setTimeout(() => setValues(options), 50);
  let next = shown;
  for (const [path, value] of options) next = withOption(next, path, value);
  change(next);
}
/** A value goes into the text where that has a place for it; else it is an option next to the text. */
function withOption(next, path, value) {
  if (path === 'second' || path === 'backend') return { ...next, [path]: value };
  const changed = path in next.sets ? null : withValue({ text: next.yaml, places: textPlaces }, path, value);
  if (!changed) return { ...next, sets: { ...next.sets, [path]: value } };
  textPlaces = changed.places;
  return { ...next, yaml: changed.text };
}
/** Brings the page to what is shown, and asks for the picture. */
function present() {
  if ($('yaml').value !== shown.yaml) $('yaml').value = shown.yaml;
  colourText();
  fillOptions();
  showControls(valueOf, sizes);
  $('undo').disabled = !undoHistory.canUndo();
  $('redo').disabled = !undoHistory.canRedo();
  isSettled = false;
  clearTimeout(presenting);
  presenting = setTimeout(simulate, 40);
  presented = performance.now();
}
let presenting = 0, presented = 0, isSettled = false;

function fillOptions() {
  $('options').replaceChildren(...Object.entries(shown.sets).map(([path, value]) => {
    const button = element('button', `--set ${path}=${value} \u00d7`, { type: 'button', title: 'Take this option away' });
    button.addEventListener('click', () => {
      const { [path]: _, ...sets } = shown.sets;
      change({ sets });
    });
    return button;
  }));
}
function travel(state) {
  if (!state) return;
  if (state.yaml !== shown.yaml) forgetPlaces();
  shown = state;
  present();
}

// ---- The picture, and after it the diagnosis, which simulates several variants.

function request(more) {
  const sets = Object.entries(shown.sets).map(([path, value]) => `${path}=${value}`), one = { backend: shown.backend, ...more };
  return { method: 'run', yaml: shown.yaml, sets, runs: shown.second ? [one, { ...one, sets: [`run.schedule=${shown.second}`] }] : [one] };
}
function simulate() {
  const since = presented, { yaml } = shown;
  $('state').textContent = 'simulating \u2026';
  picture.ask(request({ timeline: true }), (answer, ms) => {
    if (shown.yaml === yaml) {  // Else the text has changed meanwhile.
      textPlaces = answer.places ?? textPlaces;
      isRead = true;
    }
    if (answer.places && story?.yaml === yaml) storyPlaces = answer.places;
    const failed = answer.error ? answer : answer.runs.find(run => run.error);
    $('state').textContent = failed ? (failed.error === 'ended' ? 'stopped' : 'cannot run') : `simulated in ${ms.toFixed(0)} ms`;
    $('right').classList.toggle('stale', Boolean(failed));
    fillProblems(failed?.problems ?? [], failed?.text, file, rewrite, setValues);
    if (!failed) showAnswer(answer);
    showControls(valueOf, sizes);
    window.playground.times.push({ total: performance.now() - since, engine: ms, failed: failed?.text });
    remember();
    if (!failed) picture.ask(request({ diagnose: true }), told => showDiagnosis(told, performance.now() - since));
  });
}
/** A fresh element in the place of one whose tables and notes are of earlier runs. */
function emptied(id, tag = 'table') {
  const fresh = element(tag, undefined, { id });
  $(`${id}-place`).replaceChildren(fresh);
  return fresh;
}
function showAnswer(answer) {
  const before = runs.length > 0 && [state.view.from, state.view.to].every((time, k) => Math.abs(time - [0, firstEnd][k]) < 1);
  if (KINDS.length === 0) describeKinds(answer.page.kinds);
  const list = answer.page.runs.map(openRun);
  let at = 0;
  for (const run of list) for (const part of run.parts) readPart(run, part, JSON.parse(answer.parts[at++]));
  setRuns(list, runs.length > 0 && !before);
  $('title').textContent = runs[0].results.title ?? '';
  fillHead();
  arrange();
  paint();
  fillFigures(emptied('figures'), runs, answer.page.metrics);
  fillTimes($('times-section'), emptied('times'), runs);
  for (const id of ['time-bars', 'memory-bars']) $(id).replaceChildren();
  for (const swatches of document.querySelectorAll('#bars-section .swatches')) swatches.remove();
  fillRankCharts($('bars-section'), $('time-bars'), $('memory-bars'), runs);
  fillRanks(emptied('ranks'), runs);
  fillNotes(answer.runs);
  fields = fieldsOf(runs[0].scenario);
  sizes = { layers: answer.runs[0].layers, devices: answer.runs[0].devices, stages: runs[0].results.setup?.stages };
  $('origin').textContent = `Stagecraft ${lists.version}; ${answer.runs.map(run => run.instructions).join(' and ')} instructions, simulated ${given.token ? 'by the program on this machine' : 'in this page'}.`;
}
function fillNotes(answers) {
  const notes = [...new Set(answers.flatMap(run => run.notes))];
  $('notes').replaceChildren(...notes.map(note => element('li', note)));
}
function showDiagnosis(answer, ms) {
  answer.runs.forEach((run, r) => run.results && runs[r] && Object.assign(runs[r].results, { diagnosis: run.results.diagnosis, diagnosis_note: run.results.diagnosis_note }));
  if (runs.length === 1) fillLines($('answer'), diagnosisLines(runs[0].results.diagnosis, samplesOf(runs[0])));
  $('limits').replaceChildren();
  fillLimits($('limits-section'), $('limits'), runs);
  for (const place of [$('answer'), $('limits')]) makePressable(place, setValues);
  isSettled = true;
  window.playground.diagnosed.push(ms);
}

// ---- Better plans.

async function findPlans() {
  const start = runs.length > 0 && startOfSearch(valueOf, samplesOf(runs[0])), say = text => ($('found-note').textContent = text);
  $('found').hidden = false;
  $('found-rows').replaceChildren();
  if (!start) return say('The plan needs a number of stages and equal micro-batches to be varied here; stagecraft search is the thorough one.');
  const hasGlobalBatch = valueOf('run.global_batch', true) !== undefined, second = openEngine(given), end = performance.now() + SEARCH_MS, asked = shown;
  const isOver = () => performance.now() > end || shown !== asked;
  const evaluate = async plan => {
    const options = optionsOf(plan, start, hasGlobalBatch);
    const sets = [...Object.entries(asked.sets), ...options].map(([path, value]) => `${path}=${value}`);
    const { runs: [run] = [] } = await second.ask({ method: 'run', yaml: asked.yaml, sets, runs: [{ backend: 'ideal' }] }, Math.max(500, end - performance.now()));
    if (!run?.results || run.results.fits === false) return null;
    return { seconds: 1 / run.results.throughput_samples_per_s, bytes: Math.max(...run.results.devices.map(d => d.peak_memory_bytes)), options };
  };
  $('find-plans').disabled = true;
  const { found, tried, isComplete } = await searchPlans(start, valueOf('software') !== 'none', evaluate, (best, count) => {
    fillFound(best);
    say(`Trying plans with the same devices and samples: ${count} so far \u2026`);
  }, isOver);
  second.close();
  $('find-plans').disabled = false;
  say(`${tried} plans tried${isComplete ? ', all that can be reached' : ` in ${SEARCH_MS / 1000} s`}${found.length === 0 ? '; none of them runs' : ', without contention. Press one to take it'}. stagecraft search is the thorough one.`);
}
function fillFound(best) {
  $('found-rows').replaceChildren(...best.map(({ plan, seconds, bytes, options }) => {
    const item = element('li');
    item.append(tryButton(planText(plan), () => setValues(options)), ` ${secondsText(seconds)} per sample, ${sizeText(bytes)}`);
    return item;
  }));
}

// ---- Where scenarios come from: a link, a story, an example, or the file that the program opened.

async function remember() {
  if (!given.token) history.replaceState(null, '', await linkOf(shown));
}
function openScenario(yaml, more = {}) {
  forgetPlaces();
  state.view = { from: 0, to: firstEnd };
  change({ yaml, sets: {}, second: '', ...more });
}
function openExample(name) {
  story = STORIES.find(s => s.name === name) ?? null;
  fillStory();
  if (story) openScenario(story.yaml, { second: story.second ?? '', backend: 'fluid' });
  else openScenario(files[`scenarios/examples/${name}.yaml`].replace(/^# yaml-language-server.*\n/, ''), { backend: 'fluid' });
}
function fillStory() {
  $('story').hidden = !story;
  if (!story) return;
  $('story').replaceChildren(element('p', story.text));
  for (const step of story.steps) {
    const line = element('p');
    line.append(tryButton(step.press, () => takeStep(step)), ` ${step.text}`);
    $('story').append(line);
  }
}
function takeStep({ options }) {
  textPlaces = storyPlaces;
  isRead = true;
  let next = { yaml: story.yaml, sets: {}, second: story.second ?? '', backend: 'fluid' };
  for (const [path, value] of options) next = withOption(next, path, value);
  change(next);
}
function fillExamples() {
  const group = (label, names) => {
    const list = element('optgroup', undefined, { label });
    list.append(...names.map(([value, text]) => element('option', text, { value })));
    return list;
  };
  const names = Object.keys(files).filter(path => /^scenarios\/examples\/[^/]*\.yaml$/.test(path)).map(path => path.slice(19, -5));
  $('example').append(group('Stories', STORIES.map(s => [s.name, s.name])), group('Examples', names.map(name => [name, name])));
  $('example').addEventListener('change', () => $('example').value && openExample($('example').value));  // A link has none.
}

function listenToEditing() {
  $('yaml').addEventListener('input', () => rewrite($('yaml').value, true));
  $('undo').addEventListener('click', () => travel(undoHistory.undo()));
  $('redo').addEventListener('click', () => travel(undoHistory.redo()));
  document.addEventListener('keydown', e => {
    const key = e.key.toLowerCase(), redoes = key === 'y' || (key === 'z' && e.shiftKey);
    if (!(e.ctrlKey || e.metaKey) || e.altKey || !['z', 'y'].includes(key) || e.target.type === 'search') return;
    e.preventDefault();
    travel(redoes ? undoHistory.redo() : undoHistory.undo());
  });
  $('find-plans').addEventListener('click', findPlans);
  $('share').addEventListener('click', async () => {
    await remember();
    try {
      await navigator.clipboard.writeText(location.href);
      $('share').textContent = 'Copied';
    } catch {
      $('share').textContent = 'It is in the address bar';
    }
    setTimeout(() => ($('share').textContent = 'Copy link'), 1500);
  });
}
async function start() {
  files = await engine.ready;
  lists = await engine.ask({ method: 'lists' });
  if (lists.error) return fillProblems([], lists.text, file, () => {}, () => {});
  file = lists.file;
  window.playground.ready = performance.now();
  makeControls($('controls'), lists, setValue);
  listenToEditing();
  $('file-name').textContent = file;
  if (given.token) return startServed();
  fillExamples();
  addEventListener('hashchange', async () => openLinked(await readLink(location.hash)));
  openLinked(await readLink(location.hash));
}
function openLinked(linked) {
  if (linked?.yaml !== undefined) {
    story = null;
    fillStory();
    showChoice($('example'), '', 'from a link');
    return openScenario(linked.yaml, linked);
  }
  const names = [...$('example').options].map(option => option.value).filter(value => value !== ''), name = names.includes(linked?.example) ? linked.example : names[0];
  $('example').value = name;
  openExample(name);
  const problem = linked?.problem ?? (linked && name !== linked.example ? `There is no example '${linked.example}'.` : '');
  $('link-problem').textContent = problem;
  $('link-problem').hidden = problem === '';
}
window.playground = { times: [], diagnosed: [], ready: 0, state, shown: () => shown, runs: () => runs, isSettled: () => isSettled };
listen();
start();
