// The answer of the page: a card for each number that people ask for first, and what limits the run.

const usedDevices = run => run.results.devices.filter(d => d.used);
function samplesOf({ results: r }) { return Math.max(1, Math.round(r.throughput_samples_per_s * r.period_s)); }
function perSample({ results: r }) { return r.throughput_samples_per_s > 0 ? 1 / r.throughput_samples_per_s : r.period_s; }
/** The device that uses most of its memory; where capacities are not known, most memory. */
function fullestDevice(run) {
  const fill = d => (d.memory_capacity_bytes > 0 ? d.peak_memory_bytes / d.memory_capacity_bytes : d.peak_memory_bytes);
  return usedDevices(run).reduce((a, b) => (fill(b) > fill(a) ? b : a));
}
function memoryCard(run) {
  const full = fullestDevice(run), part = full.memory_capacity_bytes > 0 ? full.peak_memory_bytes / full.memory_capacity_bytes : undefined;
  const more = part === undefined ? `on ${full.name}` : `${Math.round(100 * part)} % of ${sizeText(full.memory_capacity_bytes)} on ${full.name}`;
  return card(isMeasured(run) ? 'Peak memory, planned' : 'Peak memory', sizeText(full.peak_memory_bytes), '', more, part === undefined ? undefined : gaugeOf(part));
}
/** How far published runs like this one are from their predictions, of all numbers that follow from a time. */
function intervalUnit({ interval }, unit = '') {
  return interval ? `${unit}${unit ? ' ' : ''}${halfWidthText(interval)}` : unit;
}
function rateCard({ results }) {
  const { rates: r, devices, length_s: length } = results;
  const used = devices.filter(d => d.used), busy = used.reduce((sum, d) => sum + d.utilisation, 0) / used.length;
  if (!(r?.mfu > 0)) return card('Devices compute', percentText(busy), '', `of the ${secondsText(length)} that are simulated`);
  const recomputed = r.hfu > 0 && r.hfu - r.mfu > 5e-4 ? `; ${percentText(r.hfu)} with recomputation` : '';
  return card('Model FLOPs utilization', percentText(r.mfu), intervalUnit(results, 'MFU'), `${shortNumber(r.model_flops_per_device)}FLOP/s per device${recomputed}`);
}
/** What devices wait for on the wire: collectives and messages. */
function communicationCard({ results: r }) {
  const parts = mainShares(r), sum = parts.exposed_collectives + parts.exposed_messages;
  return card('Exposed communication', percentText(sum), '', `of a period: collectives ${percentText(parts.exposed_collectives)}, messages ${percentText(parts.exposed_messages)}`);
}
/** Shares of a period by class, mean over the used devices; they sum to one. */
function mainShares(r) {
  const used = r.devices.filter(d => d.used && d.time);
  return Object.fromEntries(MAIN_CLASSES.map(([key]) => [key, share(used.reduce((sum, d) => sum + (d.time[key + '_s'] ?? 0), 0), used.length * r.period_s)]));
}
/** What spare nodes are worth, where the scenario has the time of a repair. */
function sparesText({ spares, goodput_of_spares: shares }) {
  if (!shares) return '';
  const others = [...new Set([0, Math.max(0, spares - 1), spares + 1])].filter(n => n !== spares);
  return `, and ${countText(spares, 'spare node')}; ${others.map(n => `${percentText(shares[n])} with ${n || 'none'}`).join(', ')}`;
}
/** Goodput with the failures of the scenario, or by published rates. */
function goodputCards({ results: { economics: e, expected_failures: expected } }) {
  if (e?.checkpoint_interval_s > 0) return [card('Goodput', percentText(e.goodput), '', `with the failures of the scenario and a checkpoint every ${daysText(e.checkpoint_interval_s)}${sparesText(e)}`)];
  if (!expected) return [];
  const more = `${numberText(expected.failures_per_day)} failures a day as in Llama 3, a checkpoint of ${secondsText(expected.checkpoint_s)} every ${daysText(expected.checkpoint_interval_s)}, ${secondsText(expected.restart_s)} to restart`;
  return [card('Goodput, expected', percentText(expected.goodput), '', e?.duration_s > 0 ? `${more}; the training then takes ${daysText(e.duration_s / expected.goodput)}` : more)];
}
function priceCards({ results }) {
  const e = results.economics;
  if (!(e?.dollars_per_billion_tokens > 0)) return [];
  return [card('Price', `$${numberText(e.dollars_per_billion_tokens)}`, intervalUnit(results, 'per 10^9 tokens'), e.dollars > 0 ? `$${shortNumber(e.dollars)} and ${daysText(e.duration_s)} for the training` : `for ${e.devices} devices`)];
}

function runCards(run) {
  const { results: r } = run, first = Math.abs(r.period_s / r.makespan_s - 1) < 5e-4;
  const tokens = r.rates?.tokens_per_s > 0 ? r.rates.tokens_per_s : 0;
  const speed = tokens > 0 ? card('Throughput', shortNumber(tokens), intervalUnit(r, 'tokens/s'), `${numberText(r.throughput_samples_per_s)} samples/s, ${samplesOf(run)} in an iteration`)
    : card('Throughput', numberText(r.throughput_samples_per_s), intervalUnit(r, 'samples/s'), `${samplesOf(run)} in an iteration`);
  const filled = r.fill + r.drain > 5e-4 ? `; the first fills for ${percentText(r.fill)} and drains for ${percentText(r.drain)}` : '';
  return [
    card('Iteration time', secondsText(r.period_s), intervalUnit(r), first ? 'fill and drain included' : `the period; the first takes ${secondsText(r.makespan_s)}`),
    speed, rateCard(run), memoryCard(run),
    card('Bubble', percentText(r.bubble), '', `of a period, waiting for other stages${filled}`),
    communicationCard(run), ...priceCards(run), ...goodputCards(run),
  ];
}

/** All causes with what they cost and the changes that may help, of one run. */
function fillLimits(section, place, runs) {
  const told = runs.filter(run => run.results.diagnosis?.length > 0 || run.results.diagnosis_note);
  section.hidden = told.length === 0;
  for (const run of told) {
    if (runs.length > 1) place.append(element('h3', labelOf(run)));
    if (run.results.diagnosis_note) place.append(element('p', `${run.results.diagnosis_note[0].toUpperCase()}${run.results.diagnosis_note.slice(1)}.`));
    if (!(run.results.diagnosis?.length > 0)) continue;
    const table = element('table', undefined, { class: 'words' }), wide = element('div', undefined, { class: 'wide', tabindex: 0, role: 'group', 'aria-label': 'what limits it' });
    wide.append(table);
    fillTable(table, ['costs', 'cause', 'what would help'], run.results.diagnosis.map(f => ({
      name: f.cause.replaceAll('-', ' '), kind: 'text', cells: [f.lost_s > 0 ? percentText(f.share) : '\u2013', f.sentence, suggestionList(f.suggestions, samplesOf(run))],
    })));
    place.append(wide);
  }
}
