// Devices that do the same work in nearly the same time share a row.

/** Figures of two such devices differ by less than this share. */
const NEARLY = 0.01;

/** The largest relative difference of two devices in busy time, memory and the parts of their idle time. */
function differenceOf(a, b, length) {
  const apart = (x, y, whole) => (Math.max(x, y) > 0 ? Math.abs(x - y) / whole : 0);
  const idle = Object.keys(a.idle ?? {}).map(key => apart(a.idle[key], b.idle?.[key] ?? Infinity, length));
  return Math.max(apart(a.busy_s, b.busy_s, Math.max(a.busy_s, b.busy_s)), apart(a.peak_memory_bytes, b.peak_memory_bytes, Math.max(a.peak_memory_bytes, b.peak_memory_bytes)), ...idle);
}

/**
 * Groups of devices with the same type, stages and lanes, in the order of their first devices: [{devices, stages, spread}].
 * The cluster's changes may hold for one of them alone, so devices that change are alone.
 */
function groupsOf({ devices, stages, lanes, results, changes }) {
  const works = new Map(), groups = [], open = new Map();
  for (const lane of lanes) works.set(lane.device, `${works.get(lane.device) ?? ''} ${lane.kind}:${lane.spans}`);
  devices.forEach((_, d) => {
    if (!works.has(d)) return;
    const device = results.devices?.[d] ?? {}, own = stages?.[d] ?? [];
    const key = `${device.type} ${own.join(',')}${works.get(d)}`, alone = own.length === 0 || changes.some(c => c.devices.has(d)), alike = alone ? [] : open.get(key) ?? [];
    for (const group of alike) {
      const difference = differenceOf(results.devices[group.devices[0]], device, results.length_s);
      if (!(difference < NEARLY)) continue;
      group.devices.push(d);
      group.spread = Math.max(group.spread, difference);
      return;
    }
    const group = { devices: [d], stages: own, spread: 0 };
    groups.push(group);
    if (!alone) open.set(key, [...alike, group]);
  });
  return groups;
}

function stagesText(stages) {
  if (stages.length === 0) return '';
  const whole = stages.length > 2 && stages.at(-1) - stages[0] === stages.length - 1 ? `${stages[0]}\u2013${stages.at(-1)}` : stages.join(', ');
  return `Stage${stages.length > 1 ? 's' : ''} ${whole}`;
}
function spreadText({ devices, spread }) {
  return spread < 5e-10 ? `${devices.length} devices, identical` : `${devices.length} devices, identical within ${(100 * Math.max(spread, 0.001)).toFixed(1)} %`;
}

/** Whether a row is asked for: "stage 3" or "s3" by its stage, anything else by a part of its device's name. */
function isAsked(query, name, stages) {
  const words = query.trim().toLowerCase(), stage = /^s(?:tages?)? ?(\d+)$/.exec(words);
  return words === '' || (stage ? stages.includes(Number(stage[1])) : name.toLowerCase().includes(words));
}
