// A small search: from the plan of the scenario to its neighbors, always from the best that was found, until the time is
// over. Samples of an iteration stay; devices stay too. `stagecraft search` is the thorough one.

const SEARCH_MS = 15_000, BEST_SHOWN = 5;

/** The plan that a search begins with; null where the scenario leaves a part of it to a planner. `samples`: of an iteration. */
function startOfSearch(valueOf, samples) {
  const count = (path, fallback) => Number(valueOf(path) ?? fallback);
  const plan = {
    stages: count('plan.stages'), tensor: count('plan.group.tensor', 1), replicas: count('plan.replicas', 1), size: count('plan.micro_batch_size', 1),
    recompute: valueOf('plan.recompute') ?? 'none', schedule: valueOf('run.schedule') ?? '', samples,
  };
  return Object.values(plan).every(value => typeof value === 'string' || (Number.isInteger(value) && value > 0)) && Number.isInteger(batchesOf(plan)) ? plan : null;
}
function batchesOf({ samples, size, replicas }) { return samples / (size * replicas); }

/** Plans that differ in one choice. A factor of two goes from one degree to another. */
function neighbours(plan, canSplitLayers) {
  const degrees = ['stages', 'replicas', ...(canSplitLayers ? ['tensor'] : [])], list = [];
  for (const from of degrees)
    for (const to of degrees)
      if (from !== to && plan[from] % 2 === 0) list.push({ ...plan, [from]: plan[from] / 2, [to]: plan[to] * 2 });
  for (const size of [plan.size * 2, plan.size / 2]) list.push({ ...plan, size });
  for (const recompute of ['none', 'selective', 'layers']) list.push({ ...plan, recompute });
  for (const schedule of ['1f1b', 'zb-h1', 'interleaved']) list.push({ ...plan, schedule });
  const isWhole = next => next.tensor <= 8 && Number.isInteger(next.size) && Number.isInteger(batchesOf(next));
  return list.filter(next => isWhole(next) && JSON.stringify(next) !== JSON.stringify(plan));
}
/** What differs from the plan that the search began with, as options. */
function optionsOf(plan, start, hasGlobalBatch) {
  const options = [['plan.stages', plan.stages, start.stages], ['plan.replicas', plan.replicas, start.replicas], ['plan.group.tensor', plan.tensor, start.tensor],
    ['plan.micro_batch_size', plan.size, start.size], ['plan.recompute', plan.recompute, start.recompute], ['run.schedule', plan.schedule, start.schedule],
    ...(hasGlobalBatch ? [] : [['run.micro_batches', batchesOf(plan), batchesOf(start)]])];
  return options.filter(([, value, before]) => value !== before).map(([path, value]) => [path, String(value)]);
}
function planText(plan) {
  const degrees = [['TP', plan.tensor], ['PP', plan.stages], ['DP', plan.replicas]].map(([name, n]) => `${name}${n}`).join(' ');
  return `${degrees}, ${plan.schedule}, ${batchesOf(plan)} micro-batches of ${plan.size}${plan.recompute === 'none' ? '' : `, recompute ${plan.recompute}`}`;
}

/** Asks evaluate(plan) for {seconds, bytes} of plans, or null of those that cannot run; told(best, tried, left) hears of each. */
async function searchPlans(start, canSplitLayers, evaluate, told, isOver) {
  const seen = new Set([JSON.stringify(start)]), found = [], open = [start];
  let tried = 0;
  while (open.length > 0 && !isOver()) {
    const plan = open.shift(), result = await evaluate(plan);
    ++tried;
    if (result) {
      found.push({ plan, ...result });
      found.sort((a, b) => a.seconds - b.seconds);
      const next = neighbours(plan, canSplitLayers).filter(p => !seen.has(JSON.stringify(p)));
      next.forEach(p => seen.add(JSON.stringify(p)));
      open[found[0].plan === plan ? 'unshift' : 'push'](...next);
    }
    told(found.slice(0, BEST_SHOWN), tried, open.length);
  }
  return { found, tried, isComplete: open.length === 0 };
}
