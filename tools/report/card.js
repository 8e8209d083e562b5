// Cards with one number each, and the sentences that say what limits a run.

function card(label, value, unit, more, gauge) {
  const box = element('div', undefined, { class: 'card' }), number = element('div', value, { class: 'value' });
  if (unit) number.append(element('small', ' ' + unit));
  box.append(element('div', label, { class: 'label' }), number, ...(gauge ? [gauge] : []), element('div', more, { class: 'more' }));
  return box;
}
/** A bar of a share; the text next to it has the number. */
function gaugeOf(part) {
  const gauge = element('div', undefined, { class: part > 1 ? 'gauge full' : 'gauge', 'aria-hidden': 'true' }), bar = element('i');
  bar.style.width = `${Math.min(100, 100 * part)}%`;
  gauge.append(bar);
  return gauge;
}

/** The sentences of the terminal: the first cause, and the best change; of those that keep the batch too. */
function diagnosisLines(diagnosis, batch) {
  const [first] = diagnosis ?? [];
  if (!first) return [];
  const isShown = s => s.saved === undefined || s.saved >= 0.01, best = first.suggestions.find(isShown);
  const same = first.suggestions.find(s => isShown(s) && s.saved !== undefined && s.samples === batch && s !== best);
  const lines = [{ text: first.sentence }];
  for (const [word, s] of [['Try', best], ['Or', same]])
    if (s) lines.push({ text: `${word} ${s.change}: `, code: s.sets.map(set => `--set ${shellWord(set)}`).join(' '), after: s.saved === undefined ? '' : ` ${savingText(s)}` });
  const [next] = diagnosis.slice(1).filter(f => f.share > 0.05);
  if (next) lines.push({ text: `Next: ${next.sentence}` });
  return lines;
}
function suggestionList(suggestions) {
  if (suggestions.length === 0) return '\u2013';
  const list = element('ul');
  for (const s of suggestions) {
    const item = element('li', `${s.change}: `);
    item.append(element('code', s.sets.map(set => `--set ${shellWord(set)}`).join(' ')), s.saved === undefined ? ', not simulated' : `, ${savingText(s)}`);
    list.append(item);
  }
  return list;
}
function savingText({ saved, period_s: period, samples }) {
  return `${saved >= 0 ? 'saves' : 'costs'} ${percentText(Math.abs(saved))} of the time per sample: ${secondsText(period)} for ${samples} sample${samples === 1 ? '' : 's'}, simulated.`;
}
function fillLines(place, lines) {
  place.replaceChildren(...lines.map(({ text, code, after }) => {
    const line = element('p', text);
    if (code) line.append(element('code', code), after);
    return line;
  }));
  place.hidden = lines.length === 0;
}
