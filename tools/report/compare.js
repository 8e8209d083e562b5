// Several runs: which is the fastest, by how much, and what differs.

/** What tells runs apart, in a few words: their schedules, their backends and so on; else their names. */
function nameRuns(runs) {
  const counted = (n, what, more = 's') => `${n} ${what}${n === 1 ? '' : more}`;
  const features = [s => s?.model, s => s?.cluster, s => s?.schedule, s => s?.planner, s => s && counted(s.stages, 'stage'), s => s && counted(s.devices, 'device'), s => s && counted(s.micro_batches, 'micro-batch', 'es'), s => s?.weights];
  const of = run => [...features.map(f => f(run.results.setup)), run.results.provenance.backend], lists = runs.map(of);
  const told = lists[0].map((_, k) => k).filter(k => new Set(lists.map(list => list[k])).size > 1);
  runs.forEach((run, r) => {
    run.letter = String.fromCharCode(65 + (r % 26)) + (r < 26 ? '' : Math.floor(r / 26));
    run.features = told.map(k => lists[r][k]).filter(Boolean).join(', ') || run.name.split('/').pop();
  });
}
function labelOf(run) { return `${run.letter}: ${run.features}`; }

function compareCards(runs) {
  const slowest = Math.max(...runs.map(perSample)), fastest = Math.min(...runs.map(perSample));
  return runs.map(run => {
    const time = perSample(run), against = time === fastest ? 'fastest' : `${changeText(time, fastest)} time per sample`;
    return card(labelOf(run), secondsText(time), intervalUnit(run.results, 'per sample'), `${against}; iteration ${secondsText(run.results.period_s)}, peak memory ${sizeText(fullestDevice(run).peak_memory_bytes)}`, gaugeOf(time / slowest));
  });
}

/** Mean idle time of a device by one cause for each sample of the whole run: with fills and drains, however many iterations have one. */
function idlePerSample(run, key) {
  const used = usedDevices(run).filter(d => d.idle), samples = samplesOf(run) * Math.max(1, run.results.iterations);
  return used.length === 0 ? 0 : used.reduce((sum, d) => sum + (d.idle[key + '_s'] ?? 0), 0) / used.length / samples;
}

/** Who is faster, by how much, at what memory, and which idle time shrank. */
function comparison(runs) {
  const [first] = runs, order = [...runs].sort((a, b) => perSample(a) - perSample(b)), [best] = order, other = best === first ? order[1] : first;
  const text = `${best.letter} (${best.features})`, against = `${other.letter} (${other.features})`, saved = 1 - perSample(best) / perSample(other);
  if (saved < 0.002) return [{ text: `${text} and ${against} take the same time per sample within 0.2 %.` }];
  const memory = fullestDevice(best).peak_memory_bytes / fullestDevice(other).peak_memory_bytes - 1;
  const cost = Math.abs(memory) < 0.005 ? 'the same peak memory' : `${percentText(Math.abs(memory))} ${memory > 0 ? 'more' : 'less'} peak memory`;
  const shrinks = ([key]) => idlePerSample(other, key) - idlePerSample(best, key);
  const cause = [...IDLE].sort((a, b) => shrinks(b) - shrinks(a))[0], explains = shrinks(cause) > 0.002 * perSample(other);
  return [{ text: `${text} needs ${percentText(saved)} less time per sample than ${against}, with ${cost}.` +
    (explains ? ` The idle time that shrinks most: ${cause[1]}, from ${secondsText(idlePerSample(other, cause[0]))} to ${secondsText(idlePerSample(best, cause[0]))} per sample, mean over the devices and the run.` : '') }];
}
/** A warning where times of an iteration are not comparable; empty where they are. */
function batchNotice(runs) {
  if (new Set(runs.map(samplesOf)).size === 1) return '';
  return `Batches differ: ${runs.map(run => `${run.letter} has ${samplesOf(run)}`).join(', ')} samples in an iteration. Compare the time per sample; iterations on the time axis are not comparable.`;
}

/** The fields of a resolved scenario by path; it has one value a line. */
function fieldsOf(yaml) {
  const fields = new Map(), stack = [];
  for (const commented of yaml.split('\n')) {
    const line = commented.replace(/  # (default|computed)$/, '');
    const match = /^( *)(- )?(?:([^\s:#'"][^:]*|"[^"]*"|'[^']*'):(?: (.*))?|(.*))$/.exec(line);
    if (!match || line.trim() === '' || line.trim().startsWith('#')) continue;
    const [, space, dash, key, value, item] = match, depth = space.length + (dash ? 1 : 0);
    while (stack.length > 0 && stack.at(-1).depth >= (dash ? space.length + 0.5 : depth)) stack.pop();
    const parent = stack.at(-1);
    let path = parent ? parent.path : '';
    if (dash) {
      const count = parent ? (parent.items = (parent.items ?? -1) + 1) : 0;
      path += `[${count}]`;
      stack.push({ depth: space.length + 0.5, path });
    }
    if (key === undefined) fields.set(path, item);
    else {
      const full = path ? `${path}.${key}` : key;
      if (value) fields.set(full, value);
      else stack.push({ depth: dash ? space.length + 2 : depth, path: full });
    }
  }
  return fields;
}
const MOST_CHANGES = 60;
function fillChanges(section, table, runs) {
  const lists = runs.map(run => fieldsOf(run.scenario)), paths = [...new Set(lists.flatMap(list => [...list.keys()]))];
  const differ = paths.filter(path => new Set(lists.map(list => list.get(path))).size > 1);
  section.hidden = runs.length < 2;
  if (section.hidden) return;
  if (differ.length === 0) return table.replaceWith(element('p', 'Nothing: the resolved scenarios are the same.'));
  fillTable(table, runs.map(labelOf), differ.slice(0, MOST_CHANGES).map(path => ({ name: path, kind: 'text', cells: lists.map(list => list.get(path) ?? '\u2013') })));
  if (differ.length > MOST_CHANGES) table.after(element('p', `${differ.length - MOST_CHANGES} more fields differ.`));
}
