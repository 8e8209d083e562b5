// The editor: a text area whose own text is not drawn, over a colored copy; and what is wrong with the text, at its place.

const LINE = 19, EDGE = 20;

/** Draws the copy, with the problems underlined. */
function colourText(problems = []) {
  const lines = $('yaml').value.split('\n'), bad = new Map(problems.map(p => [p.line, p]));
  $('lines').replaceChildren(...lines.flatMap((_, k) => [element('span', String(k + 1), bad.has(k + 1) ? { class: 'bad' } : {}), '\n']));
  $('paper').replaceChildren(...lines.flatMap((line, k) => [...colouredLine(line, bad.get(k + 1)), '\n']));
  $('yaml').style.height = `${LINE * lines.length + EDGE}px`;
  $('yaml').style.width = `calc(${Math.max(...lines.map(line => line.length)) + 1}ch + ${EDGE}px)`;
}
function colouredLine(line, problem) {
  if (problem) {
    const from = Math.max(0, problem.column - 1), word = wordAt(line, from) || ' ';
    return [...colouredLine(line.slice(0, from)), element('span', word, { class: 'bad' }), ...colouredLine(line.slice(from + word.length))];
  }
  const out = [], part = /(#.*$)|([A-Za-z_][\w.-]*)(?=\s*:)|(\b\d[\w.]*\b)|([^#A-Za-z_\d]+|[A-Za-z_][\w.-]*|.)/g;
  for (const [text, note, key, number] of line.matchAll(part))
    out.push(note || key || number ? element('span', text, { class: note ? 'comment' : key ? 'key' : 'number' }) : text);
  return out;
}
function wordAt(line, from) { return /^[^\s,:{}\[\]]+/.exec(line.slice(from))?.[0] ?? line.slice(from); }

function goTo(line, column) {
  const at = $('yaml').value.split('\n').slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0) + column - 1;
  $('yaml').focus();
  $('yaml').setSelectionRange(at, at);
}

/** Problems with a place in the text can be pressed; `edit(text)` takes the text that a help writes, `set(options)` its options. */
function fillProblems(problems, text, file, edit, set) {
  const list = problems.length > 0 ? problems : text ? [{ message: text, line: 0, column: 0, file: '', path: '', help: '' }] : [];
  const inText = p => p.file === file && p.line > 0;
  $('problems').replaceChildren(...list.slice(0, 8).map(p => {
    const item = element('li'), sentence = `${p.path ? `${p.path}: ` : ''}${p.message}`;
    if (inText(p)) {
      const place = element('button', `${p.line}:${p.column}`, { type: 'button', class: 'place', title: 'Go there', 'aria-label': `Go to line ${p.line}, column ${p.column}` });
      place.addEventListener('click', () => goTo(p.line, p.column));
      item.append(place);
    }
    item.append(sentence);
    if (p.help) item.append(helpOf(p, inText(p), edit, set));
    return item;
  }));
  if (list.length > 8) $('problems').append(element('li', `and ${list.length - 8} more`));
  colourText(list.filter(inText));
}
/** The help, with a button for each thing that it says to write. */
function helpOf(p, isInText, edit, set) {
  const help = element('span', p.help, { class: 'help' }), word = /did you mean '([^']+)'/.exec(p.help)?.[1];
  if (word && isInText) help.append(tryButton(`write ${word}`, () => edit(withWord(p, word))));
  for (const options of optionsIn(p.help)) help.append(tryButton(optionsText(options), () => set(options)));
  return help;
}
function tryButton(text, act) {
  const button = element('button', text, { type: 'button', class: 'try', title: 'Change the scenario' });
  button.addEventListener('click', act);
  return button;
}
function withWord({ line, column }, word) {
  const lines = $('yaml').value.split('\n'), text = lines[line - 1], from = column - 1;
  lines[line - 1] = text.slice(0, from) + word + text.slice(from + wordAt(text, from).length);
  return lines.join('\n');
}
/** Options "--set path=value" in a text, as lists of [path, value]: those next to each other belong together. */
function optionsIn(text) {
  const groups = [];
  let end = -1;
  for (const match of text.matchAll(/--set (?:'([\w.[\]]+)=([^']*)'|([\w.[\]]+)=([^\s,;)']*[^\s,;)'.:]))/g)) {
    const option = [match[1] ?? match[3], match[2] ?? match[4]];
    if (end >= 0 && text.slice(end, match.index).trim() === '') groups.at(-1).push(option);
    else groups.push([option]);
    end = match.index + match[0].length;
  }
  return groups;
}
function optionsText(options) { return options.map(([path, value]) => `${path}=${value}`).join(' '); }
/** A suggestion is pressed, not copied. */
function makePressable(place, set) {
  for (const code of place.querySelectorAll('code')) {
    const options = optionsIn(code.textContent).flat();
    if (options.length > 0) code.replaceWith(tryButton(optionsText(options), () => set(options)));
  }
}
