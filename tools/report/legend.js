// The legend of the timeline.

/** Colors, as buttons that hide a kind of work or a cause of idle time; `hidden` has the kinds that are hidden. */
function fillLegend(list, runs, byMicro, palette, hidden, pressed) {
  list.replaceChildren();
  const put = (text, colour, key) => {
    const item = element('li'), box = element('i'), entry = key === undefined ? element('span', undefined, { class: 'rest' }) : element('button', undefined, { type: 'button', 'aria-pressed': !hidden.has(key), title: hidden.has(key) ? 'show' : 'hide' });
    box.style.background = colour;
    entry.append(box, text);
    if (key !== undefined) entry.addEventListener('click', () => pressed(key));
    item.append(entry);
    list.append(item);
  };
  const kinds = new Set(runs.flatMap(run => run.ops.map(colourKind)));
  if (byMicro) list.append(element('li', 'one color for each micro-batch'));
  else for (const kind of KINDS) if (kinds.has(kind)) put(KIND_NAMES[kind], palette[kind], kind);
  const waits = new Set(runs.flatMap(run => usedDevices(run).flatMap(d => IDLE.filter(([key]) => d.idle?.[key + '_s'] > 0).map(([key]) => key))));
  if (waits.size > 0) word(list, 'waits:');
  for (const cause of CAUSES) if (waits.has(cause)) put(CAUSE_NAMES[cause], causeColour(cause, palette), cause);
  fillMemoryLegend(list, runs, palette, put);
  if (runs.some(run => run.changes.length > 0)) put('the machine changes', palette.change);
}
function word(list, text) { list.append(element('li', text, { class: 'rest' })); }
function fillMemoryLegend(list, runs, palette, put) {
  if (runs.some(run => run.memory.length > 0)) {
    word(list, 'memory:');
    put('stays', palette.resident);
    put('activations', palette.stash);
    put('message buffers', palette.traffic);
    const { most, peak, capacity } = memoryScale(runs), item = element('li', undefined, { class: 'rest' });
    if (capacity > 0 && most >= capacity) item.append(element('i', undefined, { class: 'dash' }), `capacity ${sizeText(capacity)}`);
    else item.append(`scale to ${sizeText(peak)}${capacity > 0 ? `; capacity ${sizeText(capacity)}` : ''}`);
    list.append(item);
  }
  if (runs.some(run => run.memory.length === 0)) list.append(element('li', 'a run without memory.csv has no memory curve'));
}
