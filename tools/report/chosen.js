// Everything about one point.

/** What runs a point again, with its timeline. */
function commandOf(sweep, i) {
  const sets = sweep.axes.filter(a => a.of[i] >= 0).map(a => `--set ${shellWord(`${a.path}=${a.texts[a.of[i]]}`)}`);
  return ['stagecraft run', shellWord(sweep.base), `--backend ${sweep.backend}`, ...sets, `--out ${shellWord(`${sweep.out}/${sweep.key[i]}`)}`].join(' ');
}

function listTable(caption, rows) {
  const table = element('table');
  table.append(element('caption', caption));
  const body = table.createTBody();
  for (const [name, text, note] of rows) {
    const row = body.insertRow();
    row.append(element('th', name, { scope: 'row', ...(note ? { title: note } : {}) }), element('td', text));
  }
  return table;
}

function fillChosen(panel, sweep, i) {
  if (i === null) {
    panel.replaceChildren(element('p', 'Choose a point in a picture or in the table to see what it is and how to run it again.', { class: 'hint' }));
    return;
  }
  const { status, code, message } = endOf(sweep, i), command = commandOf(sweep, i), parts = [];
  if (status !== 'ok') parts.push(element('p', `${status}${code ? ` (${code})` : ''}${message ? `: ${message}` : ''}`, { class: 'warning' }));
  const varied = sweep.axes.filter(a => a.of[i] >= 0).map(a => [a.path, a.texts[a.of[i]]]);
  if (varied.length > 0) parts.push(listTable('Settings', varied));
  else parts.push(element('p', 'It is the base as it stands.'));
  if (sweep.kept.has(i)) {
    const line = element('p');
    line.append(element('a', 'Its timeline, memory and links', { href: `${sweep.folder.split('/').map(encodeURIComponent).join('/')}/${sweep.key[i]}/report.html` }));
    parts.push(line);
  }
  const again = element('p', sweep.kept.has(i) ? 'Once more: ' : 'Run it with its timeline: ');
  again.append(copyButton(command));
  parts.push(again, element('pre', command, { tabindex: 0 }), element('p', sweep.found
    ? 'From the folder in which this page was made; the next page links what it writes.'
    : `The scenario is named as ${sweep.name}.yaml names it, which was not found when this page was made.`, { class: 'hint' }));
  if (sweep.ran[i]) parts.push(listTable('Results', sweep.metrics.map(m => [m.title, metricText(m, m.values[i]), m.name])));
  panel.replaceChildren(...parts);
}
