// Where the time and the memory of each pipeline rank go, as stacked bars.

/** Classes of time with their colors; they sum to a period. */
const RANK_TIME = [
  ['compute_s', 'compute', 'forward'], ['optimizer_s', 'optimizer', 'update'], ['exposed_collectives_s', 'exposed collectives', 'all_reduce'],
  ['exposed_messages_s', 'exposed messages', 'transfer'], ['host_memory_s', 'host memory', 'stash'], ['bubble_s', 'bubble', 'input'], ['unexplained_s', 'unexplained', 'drain'],
];
const RANK_MEMORY = [
  ['weights_bytes', 'weights', 'resident'], ['gradients_bytes', 'gradients', 'weight_gradient'], ['optimizer_bytes', 'optimizer', 'update'],
  ['activations_bytes', 'activations', 'stash'], ['messages_bytes', 'messages', 'transfer'],
];

/** Adds `make(k)` for k in 0..count-1 to `place`, a screen at a time, as its scroller comes near the end of what is there. */
function fillAsScrolled(place, scroller, count, make, atOnce = 60) {
  let there = 0;
  const more = () => {
    const end = Math.min(count, there + atOnce);
    for (; there < end; ++there) place.append(make(there));
  };
  more();
  scroller.addEventListener('scroll', () => {
    while (there < count && scroller.scrollTop + 2 * scroller.clientHeight > scroller.scrollHeight) more();
  });
}

function swatchList(parts) {
  const list = element('p', undefined, { class: 'swatches' });
  for (const [, name, colour] of parts) {
    const item = element('span');
    item.append(element('i', undefined, { class: 'swatch ' + colour }), name);
    list.append(item);
  }
  return list;
}
/** A name, a bar of parts of `whole`, and a number. `limit`: where a mark stands. */
function rankBar(name, note, parts, whole, text, limit) {
  const row = element('div', undefined, { class: 'rank', role: 'listitem', title: note }), bar = stack(parts.map(([key, value]) => [key, share(value, whole)]));
  if (limit > 0 && limit < whole * 1.0001) {
    const mark = element('span', undefined, { class: 'mark' });
    mark.style.left = `${(100 * limit) / whole}%`;
    bar.append(mark);
  }
  row.append(element('span', name, { class: 'name' }), bar, element('span', text, { class: 'number' }));
  return row;
}
function fillRankBars(place, runs, classes, sizesOf) {
  const rows = runs.flatMap(run => placesOf(run).filter(p => p.rank).map(p => ({ run, ...p })));
  if (rows.length === 0) return false;
  const shown = classes.filter(([key]) => rows.some(({ rank }) => rank[key] > 1e-12));
  place.before(swatchList(shown));
  fillAsScrolled(place, place, rows.length, k => {
    const { run, rank, name } = rows[k], { whole, text, limit, note = '' } = sizesOf(run, rank, shown);
    const numbers = shown.map(([key, title]) => `${title} ${key.endsWith('_s') ? percentText(share(rank[key], run.results.period_s)) : sizeText(rank[key])}`);
    return rankBar((runs.length > 1 ? run.letter + ' ' : '') + name, numbers.join(', ') + note, shown.map(([key, , colour]) => [colour, rank[key]]), whole, text, limit);
  });
  return true;
}
/** Both charts; hides the section of results of earlier versions, which have no ranks. */
function fillRankCharts(section, time, memory, runs) {
  const longest = Math.max(...runs.map(run => run.results.period_s));
  const most = largest(runs.flatMap(run => run.results.ranks ?? []), r => Math.max(r.peak_memory_bytes, r.memory_free_bytes != null ? r.peak_memory_bytes + r.memory_free_bytes : 0));
  const there = fillRankBars(time, runs, RANK_TIME, (run, rank) => ({ whole: longest, text: `${percentText(share(rank.compute_s + rank.optimizer_s, run.results.period_s))} busy` }));
  if (there) fillRankBars(memory, runs, RANK_MEMORY, (run, { peak_memory_bytes: peak, memory_free_bytes: free, host_memory_bytes: host }) => ({
    whole: most, text: free != null ? `${sizeText(peak)} of ${sizeText(peak + free)}` : sizeText(peak), limit: free != null ? peak + free : 0,
    note: host > 0 ? `, ${sizeText(host)} in host memory` : '',
  }));
  section.hidden = !there;
}
