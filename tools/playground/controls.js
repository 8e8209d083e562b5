// The controls. Each shows and writes one value of the scenario, which stays the only place that has it.

const SHARDS = [['none', 'none'], ['optimizer', 'ZeRO-1: optimizer'], ['gradients', 'ZeRO-2: gradients'], ['weights', 'ZeRO-3: weights']];
const RECOMPUTED = ['none', 'selective', 'outputs', 'half', 'layers', 'full'].map(name => [name, name]);
const named = list => list.map(entry => [entry.name ?? entry, entry.name ?? entry]);

/** `kind`: choice, number, or power of two. `of`: choices, [value, title]. `most`: the largest that is offered. `counted`: in the plan, where the text does not say it. */
const CONTROLS = [
  { path: 'run.schedule', name: 'Schedule', kind: 'choice', of: lists => named(lists.schedules) },
  { path: 'second', name: 'Compare with', kind: 'choice', of: lists => [['', 'nothing'], ...named(lists.schedules)] },
  { path: 'model', name: 'Model', kind: 'choice', of: lists => named(lists.models) },
  { path: 'cluster', name: 'Cluster', kind: 'choice', of: lists => named(lists.clusters) },
  { path: 'plan.stages', name: 'Stages', kind: 'number', most: sizes => Math.min(sizes.layers, sizes.devices, 32), counted: sizes => sizes.stages },
  { path: 'plan.replicas', name: 'Replicas (data)', kind: 'power', most: sizes => sizes.devices },
  { path: 'run.micro_batches', name: 'Micro-batches', kind: 'number', most: () => 64, other: { path: 'run.global_batch', name: 'Global batch', kind: 'power', most: () => 4096 } },
  { path: 'plan.micro_batch_size', name: 'Micro-batch size', kind: 'power', most: () => 32 },
  { path: 'backend', name: 'Simulator', kind: 'choice', of: lists => [...lists.backends].reverse().map(name => [name, name === 'fluid' ? 'fluid: messages share links' : name === 'ideal' ? 'ideal: without contention' : name]) },
  { path: 'plan.group.tensor', name: 'Tensor', kind: 'power', most: () => 8 },
  { path: 'plan.group.context', name: 'Context', kind: 'power', most: () => 16 },
  { path: 'plan.group.expert', name: 'Expert', kind: 'power', most: () => 64 },
  { path: 'plan.shard', name: 'Sharding (ZeRO)', kind: 'choice', of: () => SHARDS, left: 'none' },
  { path: 'plan.recompute', name: 'Recomputation', kind: 'choice', of: () => RECOMPUTED, left: 'none' },
  { path: 'software', name: 'Software', kind: 'choice', of: lists => [['none', 'none'], ...named(lists.software)], left: 'none' },
];

/** Makes the inputs; `set(path, value)` gets what the user chooses. */
function makeControls(place, lists, set) {
  const made = CONTROLS.map(control => {
    const label = element('label', undefined, { class: 'control' }), head = element('span', undefined, { class: 'said' });
    control.title = element('span', control.name);
    control.number = element('b');
    head.append(control.title, control.number);
    control.input = control.kind === 'choice' ? element('select') : element('input', undefined, { type: 'range', min: 0, step: 1 });
    control.input.id = `set-${control.path.replaceAll('.', '-')}`;
    if (control.of) control.input.append(...control.of(lists).map(([value, title]) => element('option', title, { value })));
    control.input.addEventListener('input', () => set(shownBy(control).path, valueOfInput(control)));
    label.append(head, control.input);
    return label;
  });
  const more = element('details'), grid = element('div', undefined, { class: 'controls' }), first = CONTROLS.findIndex(control => control.path === 'plan.group.tensor');
  more.open = innerWidth > 1000;
  grid.append(...made.slice(first));
  more.append(element('summary', 'Groups, memory, software'), grid);
  place.replaceChildren(...made.slice(0, first), more);
}
/** A global batch takes the place of the number of micro-batches where the scenario has it. */
function shownBy(control) { return control.isOther ? control.other : control; }
function valueOfInput(control) {
  const { value } = control.input;
  return shownBy(control).kind === 'power' ? String(2 ** value) : value;
}
/** Shows the values: valueOf(path) is undefined where the scenario says nothing. */
function showControls(valueOf, sizes) {
  for (const control of CONTROLS) {
    control.isOther = control.other !== undefined && valueOf(control.other.path, true) !== undefined;
    const { path, name, kind, most } = shownBy(control), value = valueOf(path) ?? control.left ?? control.counted?.(sizes);
    control.title.textContent = name;
    if (kind === 'choice') showChoice(control.input, value ?? '');
    else showNumber(control, value, kind === 'power', most(sizes));
  }
}
function showChoice(input, value, title = value || 'as written') {
  if (![...input.options].some(option => option.value === value)) input.append(element('option', title, { value }));
  input.value = value;
}
function showNumber({ input, number }, value, isPower, most) {
  const n = Number(value ?? 1), isNumber = Number.isFinite(n) && n > 0;
  input.disabled = value !== undefined && !isNumber;
  number.textContent = value ?? '1';
  if (!isNumber) return;
  input.min = isPower ? 0 : 1;
  input.max = isPower ? Math.ceil(Math.log2(Math.max(n, most, 1))) : Math.max(n, most || 1);
  if (document.activeElement !== input || !isPower) input.value = isPower ? Math.log2(n) : n;
  input.setAttribute('aria-valuetext', String(n));
}
