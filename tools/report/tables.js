// Everything except the drawing. Text goes in as text, so that no name can become part of the page.

function isMeasured({ results }) { return results.provenance.clock !== 'simulated'; }

function backendOf(run) {
  const { backend, backend_version: version } = run.results.provenance;
  return backend + (version ? ' ' + version : '');
}
function originOf(run) { return `${isMeasured(run) ? 'measured' : 'simulated'} by ${backendOf(run)}`; }

/** What a run is of, in a line: [what, its name] each; nothing of a run whose files do not say it. */
function setupOf(run) {
  const s = run.results.setup;
  if (!s) return [];
  const counted = (n, what) => `${n} ${what}${n === 1 ? '' : what.endsWith('batch') ? 'es' : 's'}`;
  return [
    ['model', s.model], ['cluster', s.cluster], ['schedule', s.plan ? s.schedule : `${s.schedule}, ${counted(s.micro_batches, 'micro-batch')}`],
    ['plan', `${s.plan ? `${s.plan}, by ${s.planner}` : `${s.planner}, ${counted(s.stages, 'stage')}`} on ${counted(s.devices, 'device')}`], ['weights', s.weights],
    ['backend', backendOf(run)], ['from', s.scenario_file?.startsWith('/') ? s.scenario_file.split('/').pop() : s.scenario_file],
  ].filter(([, name]) => name);
}
function fillSetups(place, runs) {
  for (const run of runs.filter(r => r.results.setup))
    place.append(element('p', (runs.length > 1 ? `${run.letter}, ${run.name}: ` : '') + setupOf(run).map(pair => pair.join(' ')).join('; ')));
}

/** A column is its title, or makes it: a list of text and elements. */
function columnHead(column) {
  const head = element('th', undefined, { scope: 'col' });
  head.append(...(typeof column === 'function' ? column() : [column]));
  return head;
}

/** rows: [{name, note, cells: [text or element], kind}], or what `rowOf` makes such a row of. */
function fillTable(table, columns, rows, rowOf = row => row) {
  table.createTHead().insertRow().append(element('td'), ...columns.map(columnHead));
  const body = table.createTBody();
  fillAsScrolled(body, table.parentElement ?? table, rows.length, k => {
    const { name, note, cells, kind } = rowOf(rows[k]), row = element('tr');
    row.append(element('th', name, { scope: 'row', ...(note ? { title: note } : {}) }));
    for (const cell of cells) {
      const td = row.insertCell();
      if (kind) td.className = kind;
      td.append(cell);
    }
    if (note) row.append(element('td', note, { class: 'note' }));
    return row;
  });
}

const largest = (list, of) => list.reduce((most, x) => Math.max(most, of(x)), 0);
const mean = list => list.reduce((sum, x) => sum + x, 0) / list.length;
const share = (part, whole) => (whole > 0 ? part / whole : 0);

/** Not for the whole run, and not again and again: then no iteration is like another. */
function changesOnce({ results }) { return (results.change_times ?? []).some(c => c.from_s > 0 || c.until_s !== undefined); }
function periodNote(runs) {
  if (!runs.some(changesOnce)) return 'one more iteration, back to back';
  return (runs.every(changesOnce) ? '' : 'one more iteration, back to back; ') + 'the mean of those after the first where the machine changes';
}

/** A predicted time, with the interval of published runs like it. */
function intervalText(seconds, { interval }) {
  return secondsText(seconds) + (interval ? ` ${halfWidthText(interval)}` : '');
}

/** Rows that are no metrics, after the metric with this name: name, definition, value in the results (undefined: there is none), text, and whether it is a share. */
const MORE_FIGURES = {
  throughput_samples_per_s: [
    ['time per sample', 'period divided by the samples of an iteration', r => (r.throughput_samples_per_s > 0 ? 1 / r.throughput_samples_per_s : undefined), secondsText],
  ],
  tokens_per_s: [
    ['tokens per device', 'per second', r => r.rates?.tokens_per_s_per_device || undefined, v => shortNumber(v) + '/s'],
    ['model FLOP/s per device', 'of forward and backward, without recomputation', r => r.rates?.model_flops_per_device || undefined, v => shortNumber(v) + 'FLOP/s'],
  ],
  utilisation: [['compute', 'share of a period, mean over the devices', r => mainShares(r).compute, percentText, true]],
  energy_J: [
    ['critical path: compute', 'share of the whole run', r => share(r.critical_path.compute_s, r.length_s), percentText, true],
    ['critical path: transfers', 'share of the whole run', r => share(r.critical_path.transfer_s, r.length_s), percentText, true],
    ['critical path: waiting', 'share of the whole run', r => share(r.critical_path.wait_s, r.length_s), percentText, true],
  ],
  peak_memory_bytes: [
    ['peak memory, measured', 'of the fullest device, what was really taken', r => (r.learnt?.memory?.length ? largest(r.learnt.memory, d => d.total_bytes) : undefined), sizeText],
  ],
};

/** A metric in the results; undefined where it is not known, which is null, or 0 of rates, budgets and energies. */
function valueIn(results, { path, unit }) {
  const value = path.split('.').reduce((map, key) => map?.[key], results) ?? undefined;
  return value === 0 && (path.includes('.') || unit === 'joule') ? undefined : value;
}
function metricFigure(metric) {
  const note = metric.name === 'period_s' ? periodNote : metric.meaning, text = TEXTS[metric.unit];
  return [metric.title, note, results => valueIn(results, metric), metric.has_interval ? intervalText : text, metric.unit === 'share'];
}
function figuresOf(metrics) {
  return metrics.filter(m => m.is_main || m.is_compared).flatMap(m => [metricFigure(m), ...(MORE_FIGURES[m.name] ?? [])]);
}

/** One column a run, and one with the change for each after the first. */
function figureRows(runs, metrics) {
  const rows = [];
  for (const [name, note, of, text, isShare] of figuresOf(metrics)) {
    const values = runs.map(run => of(run.results));
    if (values.every(v => v === undefined)) continue;
    const cells = values.map((v, k) => (v === undefined ? '\u2013' : text(v, runs[k].results)));
    for (const v of values.slice(1))
      cells.push(v === undefined || values[0] === undefined ? '' : changeText(v, values[0], isShare));
    rows.push({ name, note: typeof note === 'function' ? note(runs) : note, cells });
  }
  return rows;
}

function fillFigures(table, runs, metrics) {
  const several = runs.length > 1, columns = runs.map(run => `${several ? labelOf(run) : run.name}\n${originOf(run)}`);
  for (const run of runs.slice(1)) columns.push(`${run.letter} against ${runs[0].letter}`);
  fillTable(table, columns, figureRows(runs, metrics));
  for (const run of runs)
    if (run.results.fits === false)
      table.after(element('p', `${several ? labelOf(run) : run.name}: with the messages that are on their way, a device needs more memory than it has.`, { class: 'warning' }));
}

function busyCell(utilisation) {
  const cell = element('span', percentText(utilisation));
  const meter = element('meter', undefined, { min: 0, max: 1, 'aria-hidden': 'true' });
  meter.value = utilisation;
  cell.append(meter);
  return cell;
}

/** A row for each name; of several runs one below the other, so that any number of them fits a page. columns: [title, cell of an entry]. */
function fillBeside(table, runs, entriesOf, nameOf, columns) {
  const lists = runs.map(run => new Map(entriesOf(run).map(entry => [nameOf(entry), entry])));
  const names = [...new Set(lists.flatMap(list => [...list.keys()]))], cellsOf = (list, name) => columns.map(([, of]) => (list.has(name) ? of(list.get(name)) : '\u2013'));
  if (names.length === 0) return table.replaceWith(element('p', 'None.'));
  if (runs.length === 1) return fillTable(table, columns.map(([title]) => title), names, name => ({ name, cells: cellsOf(lists[0], name) }));
  table.createTHead().insertRow().append(element('td'), element('td'), ...columns.map(([title]) => columnHead(title)));
  fillAsScrolled(table, table.parentElement, names.length, k => {
    const name = names[k], body = element('tbody');
    runs.forEach((run, r) => {
      const row = body.insertRow();
      if (r === 0) row.append(element('th', name, { scope: 'rowgroup', rowspan: runs.length }));
      row.append(element('th', run.letter, { scope: 'row', title: labelOf(run), class: 'letter' }));
      for (const cell of cellsOf(lists[r], name)) row.insertCell().append(cell);
    });
    return body;
  });
}

/** Pipeline ranks with equal replicas in one, each with its first device; for results of earlier versions, every device. */
function placesOf({ results: { ranks, devices } }) {
  if (!ranks?.length) return devices.filter(d => d.used).map(d => ({ name: d.name, device: d }));
  const named = new Map(devices.map(d => [d.name, d])), times = new Map();
  for (const { rank } of ranks) times.set(rank, (times.get(rank) ?? 0) + 1);
  return ranks.map(r => ({ name: times.get(r.rank) > 1 ? `${r.rank}, ${r.first_device}` : r.rank, device: named.get(r.first_device), rank: r }));
}
/** Where the time of each pipeline rank goes, and its memory by class. */
function fillRanks(table, runs) {
  const ranks = runs.flatMap(run => placesOf(run).map(p => p.rank ?? {})), known = key => ranks.some(r => r[key] > 0);
  const size = (key, title) => (known(key) ? [[title, p => sizeText(p.rank?.[key] ?? 0)]] : []);
  const part = (run, key) => ({ rank, device }) => percentText(share((rank ?? device.time)?.[key] ?? 0, run.results.period_s));
  const entries = run => placesOf(run).map(p => ({ ...p, waits: { bubble: part(run, 'bubble_s')(p), collectives: part(run, 'exposed_collectives_s')(p), messages: part(run, 'exposed_messages_s')(p) } }));
  fillBeside(table, runs, entries, p => p.name, [
    ['first device', p => p.device.name], ['busy', p => busyCell(p.rank?.utilisation ?? p.device.utilisation)],
    ['bubble', p => p.waits.bubble], ['exposed collectives', p => p.waits.collectives], ['exposed messages', p => p.waits.messages],
    ...size('weights_bytes', 'weights'), ...size('gradients_bytes', 'gradients'), ...size('optimizer_bytes', 'optimizer'), ...size('activations_bytes', 'activations'), ...size('messages_bytes', 'messages'),
    ['sum', p => sizeText(p.device.peak_memory_bytes)],
    ...(ranks.some(r => r.memory_free_bytes != null) ? [['free', p => (p.rank?.memory_free_bytes != null ? sizeText(Math.max(0, p.rank.memory_free_bytes)) : '\u2013')]] : []),
    ...size('host_memory_bytes', 'host memory'),
    ['in flight', p => String(p.rank?.peak_activations ?? p.device.peak_activations)],
  ]);
  for (const run of runs) {
    const text = unusedText(run.results);
    if (text) table.after(element('p', `${runs.length > 1 ? run.letter + ': ' : ''}${text}`));
  }
}
/** What is said of devices without a row: members of groups, of which one is listed, and devices without a stage. */
function unusedText({ devices, setup, ranks, devices_per_group: members }) {
  const idle = devices.filter(d => !d.used).map(d => d.name);
  if (members > 1) {
    const groups = ranks?.length ? '' : `Each of these devices stands for its group of ${members}.`, without = setup ? devices.length - setup.devices : 0;
    return `${groups}${without > 0 ? ` ${without} more device${without > 1 ? 's do' : ' does'} nothing.` : ''}`.trim();
  }
  if (idle.length === 0) return '';
  const names = idle.length > 4 ? `${idle.slice(0, 3).join(', ')} and ${idle.length - 3} more do` : `${idle.join(', ')} ${idle.length > 1 ? 'do' : 'does'}`;
  return `${names} nothing, and ${idle.length > 1 ? 'are' : 'is'} not shown.`;
}

/** Shares of the whole run; together with the share in which a device computes, they sum to one. */
const IDLE = [
  ['start_up', 'start-up', 'for input, before its first backward: the pipeline fills'], ['input', 'input', 'for input from another device, in between'],
  ['drain', 'drain', 'after its last forward: the pipeline empties'], ['transfer', 'messages', 'for messages on the wire'], ['collective', 'collectives', 'for its collectives on the wire'],
  ['receiver', 'no receiver', 'for a device that does not receive its message yet'], ['other', 'other', 'for nothing that the program knows'],
];
/** The share in which a device computes, and the shares of its idle time by cause; they sum to one. */
function computeAndIdle(d, length) {
  const idle = IDLE.map(([key]) => share(d.idle[key + '_s'] ?? 0, length));
  return [1 - idle.reduce((sum, part) => sum + part, 0), ...idle];
}
function fillIdle(table, runs) {
  const there = runs.filter(run => run.results.devices.every(d => d.idle)), shares = new Map();
  for (const run of there)
    for (const d of run.results.devices) shares.set(d, computeAndIdle(d, run.results.length_s));
  const used = run => placesOf(run).map(p => ({ ...p.device, name: p.name, shares: shares.get(p.device) }));
  const causes = [['computes', 'computes', 'what is not idle'], ...IDLE].map((cause, k) => [...cause, k])
    .filter(([, , , k]) => k === 0 || there.some(run => used(run).some(d => d.shares[k] > 0)));
  const swatch = key => element('i', undefined, { class: 'swatch ' + key });
  fillBeside(table, there, used, d => d.name, [
    ['shares', d => stack(causes.map(([key, , , k]) => [key, d.shares[k]]))],
    ...causes.map(([key, title, note, k]) => [() => [swatch(key), element('span', title, { title: note })], d => percentText(d.shares[k])]),
  ]);
}
/** Parts of a whole next to each other; the cells after it have the numbers. */
function stack(parts) {
  const bar = element('span', undefined, { class: 'stack', 'aria-hidden': 'true' });
  for (const [key, part] of parts) {
    const piece = element('i', undefined, { class: key });
    piece.style.width = `${100 * part}%`;
    bar.append(piece);
  }
  return bar;
}

/** The main classes of time; they sum to the period. */
const MAIN_CLASSES = [
  ['compute', 'compute'], ['exposed_collectives', 'exposed collectives'], ['exposed_messages', 'exposed messages'],
  ['bubble', 'bubble'], ['host_memory', 'host memory'], ['optimizer', 'optimizer'], ['unexplained', 'unexplained'],
];
/** Classes of time, in the words of the field; they sum to the period. */
const TIME_CLASSES = [
  ['products_s', 'matrix products'], ['attention_s', 'attention'], ['memory_bound_s', 'memory-bound kernels'], ['launches_s', 'launches'],
  ['tensor_s', 'tensor collectives'], ['context_s', 'context collectives'], ['expert_s', 'expert collectives'], ['data_s', 'data collectives'],
  ['messages_s', 'messages'], ['bubble_s', 'bubble'], ['host_memory_s', 'host memory'], ['optimizer_s', 'optimizer'], ['other_s', 'other compute'], ['unexplained_s', 'unexplained'],
];
/** The classes that take time in a run: [{name, seconds, share}]. */
function timeParts({ results: { time, period_s: period } }) {
  if (!time) return [];
  return TIME_CLASSES.map(([key, name]) => ({ name, seconds: time[key], share: share(time[key], period) })).filter(part => part.seconds > 0);
}
function fillTimes(section, table, runs) {
  section.hidden = runs.every(run => !run.results.time);
  if (!section.hidden) fillBeside(table, runs, timeParts, part => part.name, [['time', part => secondsText(part.seconds)], ['share', part => busyCell(part.share)]]);
}

const LINKS_SHOWN = 24;
/** With its direction, where it has two. */
function linkName(l) { return l.forward === undefined ? l.name : `${l.name} ${l.forward ? '\u2192' : '\u2190'}`; }

/** The busiest links with this in their names. */
function fillLinks(runs, query) {
  const words = query.trim().toLowerCase(), busiest = new Map();
  for (const run of runs)
    for (const l of run.results.links)
      if (linkName(l).toLowerCase().includes(words)) busiest.set(linkName(l), Math.max(busiest.get(linkName(l)) ?? 0, l.utilisation));
  const names = new Set([...busiest].sort((a, b) => b[1] - a[1]).slice(0, LINKS_SHOWN).map(([name]) => name));
  $('links').replaceChildren();
  if (names.size > 0)
    fillBeside($('links'), runs, run => run.results.links.filter(l => names.has(linkName(l))), linkName, [
      ['traffic', l => sizeText(l.traffic_bytes)],
      ['busy', l => busyCell(l.utilisation)],
      ['over the run', heatCell],
    ]);
  if (words === '') $('link-find').hidden = busiest.size <= LINKS_SHOWN;
  const left = runs.find(run => run.results.links_note)?.results.links_note;
  $('links-note').textContent = (busiest.size === 0 ? (words ? `No link has ${query.trim()} in its name.` : 'None.')
    : names.size < busiest.size ? `The busiest ${names.size} of ${busiest.size}.` : '') + (left ? ` Traffic is ${left}.` : '');
}
/** A strip from the run's start to its end; the root of the share, or links that are little used would not be seen. */
function heatCell(link) {
  if (link.percent_over_time === undefined) return '\u2013';
  const percents = link.percent_over_time.split(' ').map(p => Math.min(100, Number(p))), most = percents.reduce((a, b) => Math.max(a, b), 0);
  const strip = element('canvas', undefined, { class: 'heat', width: percents.length, height: 1, role: 'img', 'aria-label': `at most ${most} % at a time`, title: `at most ${most} % at a time` });
  const context = strip.getContext('2d');
  context.fillStyle = coloursOf(['traffic']).traffic;
  percents.forEach((percent, k) => {
    context.globalAlpha = Math.min(1, Math.sqrt(percent / 100));
    if (percent > 0) context.fillRect(k, 0, 1, 1);
  });
  return strip;
}

function fillOrigin(table, scenarios, runs) {
  const from = key => runs.map(run => String(run.results.provenance[key] ?? '') || '\u2013');
  const row = (name, cells) => ({ name, cells, kind: 'text' });
  fillTable(table, runs.map(run => (runs.length > 1 ? labelOf(run) : run.name)), [
    ...(runs.length > 1 ? [row('run', runs.map(run => run.name))] : []), row('title', runs.map(run => run.results.title || '\u2013')), row('backend', runs.map(originOf)),
    row('clock', from('clock')), row('machine', from('machine')), row('stagecraft', from('stagecraft')), row('seed', from('seed')),
    row('scenario, SHA-256', from('scenario_sha256')), row('iterations', runs.map(run => String(run.results.iterations))),
    ...(runs.some(run => run.results.changes) ? [row('changes', runs.map(run => (run.results.changes ?? ['\u2013']).join('; ')))] : []),
    ...(runs.some(run => run.results.jitter_most) ? [row('jitter', runs.map(run => (run.results.jitter_most ? `${numberText(100 * run.results.jitter_most)} % at most, of every op` : '\u2013')))] : []),
    row('instructions', runs.map(run => String(run.results.instructions))),
  ]);
  for (const run of runs) {
    const details = element('details');
    details.append(element('summary', runs.length > 1 ? `Resolved scenario of ${labelOf(run)}` : 'Resolved scenario'), element('pre', run.scenario));
    scenarios.append(details);
  }
}
