// The figures of a sweep: what they are called, how they are written, and which way is better.

/** name in the results: [title, better (-1: less, 1: more, 0: neither), whether it is a share or a yes and no]. */
const METRICS = {
  makespan_s: ['one iteration', -1], period_s: ['period', -1], length_s: ['whole run', -1],
  throughput_samples_per_s: ['throughput', 1], tokens_per_s: ['tokens', 1], mfu: ['MFU', 1, 'share'], hfu: ['HFU', 1, 'share'],
  dollars_per_billion_tokens: ['$ for 10^9 tokens', -1], dollars_per_billion_samples: ['$ for 10^9 samples', -1],
  training_s: ['training', -1, 'days'], training_dollars: ['$ for the training', -1],
  energy_per_token_J: ['energy per token', -1], energy_per_sample_J: ['energy per sample', -1],
  goodput: ['goodput', 1, 'share'], bubble: ['bubble', -1, 'share'],
  exposed_collectives: ['exposed collectives', -1, 'share'], exposed_messages: ['exposed messages', -1, 'share'],
  steady_bubble: ['busiest idle', -1, 'share'],
  utilisation: ['devices busy', 1, 'share'], energy_J: ['energy', -1], peak_memory_bytes: ['peak memory', -1],
  memory_capacity_bytes: ['memory of that device', 0], fits: ['fits with messages', 1, 'yes'], peak_activations: ['activations alive', -1],
  exposed_communication_s: ['exposed communication', -1], traffic_bytes: ['traffic', -1], memory_traffic_bytes: ['memory traffic', -1],
  busiest_link_utilisation: ['busiest link', -1, 'share'],
  critical_compute_s: ['critical path: compute', 0], critical_transfer_s: ['critical path: transfers', -1],
  critical_wait_s: ['critical path: waiting', -1], final_loss: ['last loss', -1], drains: ['drains', 0, 'yes'], stages: ['stages', 0],
  devices: ['devices', -1], samples: ['samples in an iteration', 0], iterations: ['iterations', 0], instructions: ['instructions', 0],
};
/** What the table shows unless every figure is asked for. */
const MAIN_METRICS = ['makespan_s', 'period_s', 'throughput_samples_per_s', 'bubble', 'peak_memory_bytes', 'devices', 'exposed_communication_s', 'training_s', 'training_dollars', 'final_loss'];

/** A figure that this script does not know is called by its name; its unit is at the end of the name in any case. */
function metricOf(name) {
  const [title, better, as] = METRICS[name] ?? [name, -1];
  return { name, title, better, unit: unitOf(name, as) };
}
/** What a page opens on: the loss where all that ran have learned, else the time, or the rate where points differ in their samples. */
function firstMetric(sweep) {
  const values = name => sweep.metrics.find(m => m.name === name)?.values.filter((_, i) => sweep.ran[i]) ?? [];
  const learns = values('final_loss').length > 0 && values('final_loss').every(v => !Number.isNaN(v));
  const speed = new Set(values('samples')).size > 1 ? 'throughput_samples_per_s' : 'period_s';
  return [learns ? 'final_loss' : speed, sweep.metrics[0]?.name].find(name => sweep.metrics.some(m => m.name === name)) ?? '';
}
function unitOf(name, as) {
  if (as) return as;
  for (const [ending, unit] of [['_per_s', 'rate'], ['_s', 'time'], ['_bytes', 'size'], ['_J', 'joule']]) if (name.endsWith(ending)) return unit;
  return 'number';
}

const TEXTS = {
  time: secondsText, size: sizeText, share: percentText, rate: v => numberText(v) + '/s', joule: joulesText,
  days: daysText, yes: v => (v ? 'yes' : 'no'), number: numberText,
};
function metricText(metric, value) { return Number.isFinite(value) ? TEXTS[metric.unit](value) : '\u2013'; }

/** What the marks of an axis that ends at `most` are counted in: {size, text}. */
function axisUnit(metric, most) {
  const largest = (units, scale) => [...units].reverse().find(u => u[1] / scale <= most * (1 + 1e-9)) ?? units[0];
  if (metric.unit === 'days' && most >= 172800) return { size: 86400, text: 'days' };
  if (metric.unit === 'time' || metric.unit === 'days') {
    const [text, size] = largest(TIMES, 1e12);
    return { size: size / 1e12, text };
  }
  if (metric.unit === 'size') {
    const [text, size] = largest(SIZES, 1);
    return { size, text };
  }
  return { share: { size: 0.01, text: '%' }, rate: { size: 1, text: '1/s' }, joule: { size: 1, text: 'J' } }[metric.unit] ?? { size: 1, text: '' };
}
function metricTitle(metric, unit) { return unit.text ? `${metric.title}, ${unit.text}` : metric.title; }
