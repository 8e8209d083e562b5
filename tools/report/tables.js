// Everything beside the drawing. Text goes in as text, so that no name can become part of the page.

function isMeasured({ results }) { return results.provenance.clock !== 'simulated'; }

function originOf(run) {
  const { backend, backend_version: version } = run.results.provenance;
  return `${isMeasured(run) ? 'measured' : 'simulated'} by ${backend}${version ? ' ' + version : ''}`;
}

/** A column is its title, or makes it: a list of text and elements. */
function columnHead(column) {
  const head = element('th', undefined, { scope: 'col' });
  head.append(...(typeof column === 'function' ? column() : [column]));
  return head;
}

/** A head of one row, or two where columns have a common title; rows: [{name, note, cells: [text or element], kind}]. */
function fillTable(table, columns, rows, groups = []) {
  const head = table.createTHead();
  if (groups.length > 0)
    head.insertRow().append(element('td'), ...groups.map(g => element('th', g.title, { scope: 'colgroup', colspan: g.columns })));
  head.insertRow().append(element('td'), ...columns.map(columnHead));
  const body = table.createTBody();
  for (const { name, note, cells, kind } of rows) {
    const row = body.insertRow();
    row.append(element('th', name, { scope: 'row', ...(note ? { title: note } : {}) }));
    for (const cell of cells) {
      const td = row.insertCell();
      if (kind) td.className = kind;
      td.append(cell);
    }
    if (note) row.append(element('td', note, { class: 'note' }));
  }
}

const largest = (list, of) => list.reduce((most, x) => Math.max(most, of(x)), 0);
const share = (part, whole) => (whole > 0 ? part / whole : 0);

/** name, definition, value in the results (undefined: there is none), text, and whether it is a share. */
const FIGURES = [
  ['one iteration', 'the first, from its first start to its last end, fill and drain included', r => r.makespan_s, secondsText],
  ['period', 'one more iteration, back to back', r => r.period_s, secondsText],
  ['whole run', 'all iterations', r => r.length_s, secondsText],
  ['throughput', 'samples per second at the period', r => r.throughput_samples_per_s, v => numberText(v) + '/s'],
  ['bubble', 'idle share of the devices within one iteration', r => r.bubble, percentText, true],
  ['steady bubble', 'idle share of the period on the busiest device', r => r.steady_bubble, percentText, true],
  ['peak memory, planned', 'of the fullest device', r => largest(r.devices, d => d.peak_memory_bytes), sizeText],
  ['peak memory, measured', 'of the fullest device, what was really taken', r => r.learnt?.memory?.length ? largest(r.learnt.memory, d => d.total_bytes) : undefined, sizeText],
  ['energy', 'of the whole run', r => r.energy_J || undefined, v => numberText(v) + ' J'],
  ['critical path: compute', 'share of the whole run', r => share(r.critical_path.compute_s, r.length_s), percentText, true],
  ['critical path: transfers', 'share of the whole run', r => share(r.critical_path.transfer_s, r.length_s), percentText, true],
  ['critical path: waiting', 'share of the whole run', r => share(r.critical_path.wait_s, r.length_s), percentText, true],
  ['loss', 'of the last iteration, as the pipeline saw it', r => r.learnt?.losses?.at(-1), numberText],
];

/** One column a run, and one with the change for each after the first. */
function figureRows(runs) {
  const rows = [];
  for (const [name, note, of, text, isShare] of FIGURES) {
    const values = runs.map(run => of(run.results));
    if (values.every(v => v === undefined)) continue;
    const cells = values.map(v => (v === undefined ? '\u2013' : text(v)));
    for (const v of values.slice(1))
      cells.push(v === undefined || values[0] === undefined ? '' : changeText(v, values[0], isShare));
    rows.push({ name, note, cells });
  }
  return rows;
}

function fillFigures(table, runs) {
  const columns = runs.map(run => `${run.name}\n${originOf(run)}`);
  for (const run of runs.slice(1)) columns.push(`${run.name} against the first`);
  fillTable(table, columns, figureRows(runs));
  for (const run of runs)
    if (run.results.fits === false)
      table.after(element('p', `${run.name}: with the messages that are on their way, a device needs more memory than it has.`, { class: 'warning' }));
}

function busyCell(utilisation) {
  const cell = element('span', percentText(utilisation));
  const meter = element('meter', undefined, { min: 0, max: 1, 'aria-hidden': 'true' });
  meter.value = utilisation;
  cell.append(meter);
  return cell;
}

/** The columns of each run beside those of the others, one row for each name. */
function fillBeside(table, runs, entriesOf, nameOf, columns) {
  const lists = runs.map(run => new Map(entriesOf(run).map(entry => [nameOf(entry), entry])));
  const names = [...new Set(lists.flatMap(list => [...list.keys()]))];
  const rows = names.map(name => ({
    name, cells: lists.flatMap(list => columns.map(([, of]) => (list.has(name) ? of(list.get(name)) : '\u2013'))),
  }));
  if (names.length === 0) return table.replaceWith(element('p', 'None.'));
  const groups = runs.length > 1 ? runs.map(run => ({ title: run.name, columns: columns.length })) : [];
  fillTable(table, runs.flatMap(() => columns.map(([title]) => title)), rows, groups);
}

function fillDevices(table, runs) {
  fillBeside(table, runs, run => run.results.devices.filter(d => d.used), d => d.name, [
    ['busy', d => busyCell(d.utilisation)],
    ['waits for link', d => secondsText(d.exposed_communication_s)],
    ['peak memory', d => sizeText(d.peak_memory_bytes) + (d.memory_capacity_bytes > 0 ? ` of ${sizeText(d.memory_capacity_bytes)}` : '')],
    ['at', d => d.peak_memory_at],
    ['activations', d => String(d.peak_activations)],
  ]);
}

/** Shares of the whole run, which sum to one with that in which it computes. */
const IDLE = [
  ['start_up', 'start-up', 'for input, until it first turns back: the pipeline fills'], ['input', 'input', 'for what another device makes, in between'],
  ['drain', 'drain', 'behind its last forward: the pipeline empties'], ['transfer', 'transfers', 'for what is on the wire'],
  ['receiver', 'no receiver', 'for a message of its own that nobody takes yet'], ['other', 'other', 'for nothing that the program knows'],
];
function fillIdle(table, runs) {
  const there = runs.filter(run => run.results.devices.every(d => d.idle)), shares = new Map();
  for (const run of there)
    for (const d of run.results.devices) shares.set(d, [d.utilisation, ...IDLE.map(([key]) => share(d.idle[key + '_s'], run.results.length_s))]);
  const used = run => run.results.devices.filter(d => d.used);
  const causes = [['computes', 'computes', 'what is not idle'], ...IDLE].map((cause, k) => [...cause, k])
    .filter(([, , , k]) => k === 0 || there.some(run => used(run).some(d => shares.get(d)[k] > 0)));
  const swatch = key => element('i', undefined, { class: 'swatch ' + key });
  fillBeside(table, there, used, d => d.name, [
    ['', d => stack(causes.map(([key, , , k]) => [key, shares.get(d)[k]]))],
    ...causes.map(([key, title, note, k]) => [() => [swatch(key), element('span', title, { title: note })], d => percentText(shares.get(d)[k])]),
  ]);
}
/** Parts of a whole beside each other; the numbers stand in the cells behind it. */
function stack(parts) {
  const bar = element('span', undefined, { class: 'stack', 'aria-hidden': 'true' });
  for (const [key, part] of parts) {
    const piece = element('i', undefined, { class: key });
    piece.style.width = `${100 * part}%`;
    bar.append(piece);
  }
  return bar;
}

function fillLinks(table, runs) {
  fillBeside(table, runs, run => run.results.links, l => `${l.name} ${l.forward ? '\u2192' : '\u2190'}`, [
    ['traffic', l => sizeText(l.traffic_bytes)],
    ['busy', l => busyCell(l.utilisation)],
  ]);
}

function fillOrigin(table, scenarios, runs) {
  const from = key => runs.map(run => String(run.results.provenance[key] ?? '') || '\u2013');
  const row = (name, cells) => ({ name, cells, kind: 'text' });
  fillTable(table, runs.map(run => run.name), [
    row('title', runs.map(run => run.results.title || '\u2013')), row('backend', runs.map(originOf)),
    row('clock', from('clock')), row('machine', from('machine')), row('stagecraft', from('stagecraft')), row('seed', from('seed')),
    row('scenario, SHA-256', from('scenario_sha256')), row('iterations', runs.map(run => String(run.results.iterations))),
    row('instructions', runs.map(run => String(run.results.instructions))),
  ]);
  for (const run of runs) {
    const details = element('details');
    details.append(element('summary', runs.length > 1 ? `Resolved scenario of ${run.name}` : 'Resolved scenario'), element('pre', run.scenario));
    scenarios.append(details);
  }
}

function fillLegend(list, runs, byMicro, palette) {
  list.replaceChildren();
  const put = (text, colour) => {
    const item = element('li'), box = element('i');
    box.style.background = colour;
    item.append(box, text);
    list.append(item);
  };
  const there = new Set(runs.flatMap(run => run.ops.map(colourKind)));
  if (byMicro) list.append(element('li', 'one colour a micro-batch'));
  else for (const kind of KINDS) if (there.has(kind)) put(kind.replace('_', ' '), palette[kind]);
  if (runs.some(run => run.memory.length > 0)) {
    put('memory that stays', palette.resident);
    put('activations', palette.stash);
    put('messages', palette.traffic);
  }
  if (runs.some(run => run.memory.length === 0)) list.append(element('li', 'a run without memory.csv has no memory curve'));
}
