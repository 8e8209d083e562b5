// Cards with one number each, and the sentences that say what limits a run.

function card(label, value, unit, more, gauge) {
  const box = element('div', undefined, { class: 'card' }), number = element('div', value, { class: 'value' });
  if (unit) number.append(' ', element('small', unit));  // A narrow card breaks the line between the two.
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
  const helpful = helpfulSuggestions(first.suggestions, batch), [best] = helpful, keeps = best && keepsBatch(best, batch);
  const other = keeps && helpful.find(s => !keepsBatch(s, batch) && s.saved > best.saved), lines = [{ text: first.sentence }];
  for (const [word, s] of [['Try', best], ['Or', other]])
    if (s) lines.push({ text: `${word} ${suggestedChange(s, batch)}: `, code: s.sets.map(set => `--set ${shellWord(set)}`).join(' '), after: s.saved === undefined ? '' : ` ${savingText(s, batch)}` });
  const [next] = diagnosis.slice(1).filter(f => f.share > 0.05);
  if (next) lines.push({ text: `Next: ${next.sentence}` });
  return lines;
}
function keepsBatch(s, batch) { return s.samples === undefined || s.samples === batch; }
/** What helps: changes that keep the batch before those that do not, each kind with the best first. */
function helpfulSuggestions(suggestions, batch) {
  const shown = suggestions.filter(s => s.saved === undefined || s.saved >= 0.01);
  return [...shown.filter(s => keepsBatch(s, batch)), ...shown.filter(s => !keepsBatch(s, batch))];
}
function suggestedChange(s, batch) { return `${keepsBatch(s, batch) ? '' : 'with another batch: '}${s.change}`; }
function suggestionList(suggestions, batch) {
  const helpful = helpfulSuggestions(suggestions, batch);
  if (helpful.length === 0) return '\u2013';
  const list = element('ul');
  for (const s of helpful) {
    const item = element('li', `${suggestedChange(s, batch)}: `);
    item.append(element('code', s.sets.map(set => `--set ${shellWord(set)}`).join(' ')), s.saved === undefined ? ', not simulated' : `, ${savingText(s, batch)}`);
    list.append(item);
  }
  return list;
}
function savingText(s, batch) {
  const { saved, period_s: period, samples } = s, keeps = keepsBatch(s, batch);
  const share = `${saved >= 0 ? 'saves' : 'costs'} ${percentText(Math.abs(saved))} of the ${keeps ? 'period' : 'time per sample'}: ${secondsText(period)}`;
  return `${share}${keeps ? '' : ` for ${samples} sample${samples === 1 ? '' : 's'}`}, simulated.`;
}
function fillLines(place, lines) {
  place.replaceChildren(...lines.map(({ text, code, after }) => {
    const line = element('p', text);
    if (code) line.append(element('code', code), after);
    return line;
  }));
  place.hidden = lines.length === 0;
}
