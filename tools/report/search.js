// The page of a search: the answer, the front, the rows and what is proved.

const data = JSON.parse($('data').textContent), { search } = data, { choices } = search;
const state = { chosen: 0, every: false };

function commandOf(choice) {
  return [data.command, ...choice.set.map(set => `--set ${shellWord(set)}`)].join(' ');
}

/** The sentences of what limits the first row; its own options are in its command already. */
function limitLines() {
  const own = choices[0]?.set.length ?? 0;
  const rest = (search.diagnosis ?? []).map(f => ({ ...f, suggestions: f.suggestions.map(s => ({ ...s, sets: s.sets.slice(own) })) }));
  return diagnosisLines(rest, search.samples);
}

function fillRows() {
  const head = element('thead'), line = head.insertRow(), body = element('tbody');
  line.append(...choiceHeads(search).map((name, k) => element('th', name, { scope: 'col', ...(k >= 4 && k <= 8 ? { class: 'left' } : {}) })));
  choices.forEach((choice, k) => {
    if (!state.every && !data.stand_out[k]) return;
    const row = body.insertRow(), title = element('th', undefined, { scope: 'row' });
    const button = element('button', String(k + 1), { type: 'button', 'data-row': k, 'aria-pressed': k === state.chosen, 'aria-label': `Row ${k + 1}: show its command` });
    if (k === state.chosen) row.className = 'chosen';
    title.append(button);
    const cells = choiceCells(choice, search);
    row.append(title, ...cells.map(([text, kind]) => element('td', text, kind ? { class: kind } : {})));
  });
  $('rows').replaceChildren(head, body);
  fillBudget();
}

/** What the rows take of the scenario's budget, where it has one. */
function fillBudget() {
  const columns = budgetColumns(search), head = element('thead'), body = element('tbody');
  $('budget-section').hidden = columns.length === 0;
  head.insertRow().append(...['row', 'period', ...columns.map(([, name]) => name)].map(name => element('th', name, { scope: 'col' })));
  choices.forEach((choice, k) => {
    if (!state.every && !data.stand_out[k]) return;
    body.insertRow().append(element('th', String(k + 1), { scope: 'row' }), ...[secondsText(periodOf(choice)), ...budgetCells(search, choice)].map(text => element('td', text)));
  });
  $('budget').replaceChildren(head, body);
}

function fillChosen() {
  const choice = choices[state.chosen], command = commandOf(choice), again = element('p', 'Run it: ');
  again.append(copyButton(command));
  $('chosen-title').textContent = `Row ${state.chosen + 1}`;
  const why = choice.behind ? [element('p', `Behind the first: ${choice.behind}.`)] : [];
  $('chosen').replaceChildren(element('p', `${choiceText(choice, data.device_types[state.chosen])}; planner ${choice.planner}, placement ${choice.placement}.`), ...why, again, element('pre', command, { tabindex: 0 }));
}

function fillProof() {
  $('proved').replaceChildren(...proofSentences(search).map(sentence => element('li', sentence)));
  const rows = ([name, ...cells], kinds) => {
    const row = element('tr');
    row.append(element('th', name, { scope: 'row' }), ...cells.map((cell, k) => element('td', String(cell), kinds[k] ? { class: kinds[k] } : {})));
    return row;
  };
  $('counts').append(...searchCounts(search).map(line => rows(line, ['', 'note'])));
  const refused = Object.entries(search.refused);
  $('refused-section').hidden = refused.length === 0;
  $('refused').append(...refused.map(line => rows(line, ['text'])));
}

function choose(k) {
  state.chosen = k;
  fillRows();
  fillChosen();
  $('rows').querySelector(`[data-row="${k}"]`)?.focus();
}

/** The picture as a file, in the colors of paper. */
function pictureText() { return new XMLSerializer().serializeToString($('front').querySelector('svg')) + '\n'; }

function listen() {
  $('rows').addEventListener('click', ({ target }) => target.dataset.row && choose(Number(target.dataset.row)));
  $('rows').addEventListener('keydown', e => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key], shown = [...$('rows').querySelectorAll('[data-row]')], at = shown.indexOf(e.target);
    if (!step || at < 0 || !shown[at + step]) return;
    e.preventDefault();
    choose(Number(shown[at + step].dataset.row));
  });
  $('every').addEventListener('change', () => {
    state.every = $('every').checked;
    fillRows();
  });
  $('svg').addEventListener('click', () => saveFile('pareto-front.svg', pictureText(), 'image/svg+xml'));
  listenToTheme(() => {}, () => {});
}

$('summary').textContent = `${search.model} on ${search.cluster}: ${countText(search.samples, 'sample')} in an iteration`;
$('origin').textContent = `stagecraft ${data.version}`;
fillLines($('answer'), answerSentences(search, data.device_types[0]).map(text => ({ text })));
$('cards').replaceChildren(...searchCards(search).map(parts => card(...parts)));
$('cards').querySelectorAll('.card').forEach(c => c.classList.toggle('words', c.textContent.startsWith('Limited by')));
fillLines($('limit'), limitLines());
fillProof();
for (const id of ['front-section', 'rows-section', 'chosen-section']) $(id).hidden = choices.length === 0;
const others = choices.length - data.stand_out.filter(Boolean).length;
$('every-label').hidden = others === 0;
$('every-text').textContent = `every row: ${others} more with somewhat less memory`;
if (choices.length > 0) {
  fillRows();
  fillChosen();
}
listen();
// What a test asks.
window.report = { data, state, choose, picture: pictureText };
