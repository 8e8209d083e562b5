// The words of a search: what a choice is, how it compares, and what is known about all that were not simulated.

function countText(count, word) { return `${count} ${word}${count === 1 ? '' : 's'}`; }
/** The period with contention where it is known. */
function periodOf(choice) { return choice.replayed?.ran ? choice.replayed.period_s : choice.period_s; }
/** An amount of another objective than time: "$0.52 for 10^9 tokens" is 0.52 and the unit "dollars for 10^9 tokens". */
function amountText(search, value) { return `${Number(value.toPrecision(4))} ${search.objective.unit}`; }
/** The amount of a choice in the unit of the objective; undefined for time. */
function amountOf(search, choice) {
  if (!search.objective) return undefined;
  return ['dollars_per_billion_tokens', 'dollars_per_billion_samples', 'energy_per_token_J', 'energy_per_sample_J'].map(key => choice[key]).find(value => value !== undefined);
}
function orderText({ schedule, weights }) { return weights === 'flush' ? schedule : `${schedule}, ${weights}`; }
/** The choice in one sentence: what to configure. */
function choiceText(c, deviceTypes) {
  const recompute = c.recompute === 'none' ? 'no recomputation' : `recomputation ${c.recompute}`;
  return [`${orderText(c)} on ${countText(c.devices, 'device')}${deviceTypes ? ` (${deviceTypes})` : ''}`, c.plan, recompute].join(', ');
}

/** Sentences of the answer; without a choice, why there is none. */
function answerSentences(search, deviceTypes) {
  const [best] = search.choices, own = search.own_replayed?.ran ? search.own_replayed.period_s : search.own_period_s;
  if (!best) {
    const large = search.too_large > 0 ? ` The weights, gradients and optimizer state of ${countText(search.too_large, 'plan')} alone exceed the memory of a device.` : '';
    return ['No plan fits in memory.', `${countText(search.simulated, 'simulation')} of ${countText(search.plans, 'plan')}; ${search.unfit} of them exceed the memory of a device.${large}`];
  }
  const sentences = [`${!search.objective ? 'Fastest' : search.objective.name === 'cost' ? 'Cheapest' : 'Least energy'}: ${choiceText(best, deviceTypes)}.`];
  if (search.objective) {
    const written = search.objective.own;
    if (written > 0) {
      const saved = 1 - amountOf(search, best) / written;
      sentences.push(`The scenario as it is written takes ${amountText(search, written)}: the first is ${percentText(Math.abs(saved))} ${saved >= 0 ? 'less' : 'more'}.`);
    }
    return sentences;
  }
  const ahead = own > 0 ? 1 - periodOf(best) / own : undefined;
  if (ahead !== undefined)
    sentences.push(`The scenario as it is written takes ${secondsText(own)}: the first is ${percentText(Math.abs(ahead))} ${ahead >= 0 ? 'shorter' : 'longer'}.`);
  return sentences;
}

function proofCard(search) {
  if (search.gap === null) return ['Gap to the bound', '\u2013', '', 'no bound is known'];
  return ['Gap to the bound', `\u2264 ${Number((100 * search.gap).toPrecision(2))} %`, '', search.objective ? `no plan here takes less than ${amountText(search, search.objective.bound)}` : `no plan here is shorter than ${secondsText(search.bound_s)}`];
}

/** Label, value, unit and remark of each card. */
function searchCards(search) {
  const [best] = search.choices;
  if (!best) return [];
  const within = search.interval ? halfWidthText(search.interval) : '', unit = word => `${word}${within ? ' ' + within : ''}`;
  const contended = best.replayed?.ran ? 'with network contention' : 'without network contention';
  return [
    ...(search.objective ? [[search.objective.name === 'cost' ? 'Cost' : 'Energy', numberText(amountOf(search, best)), unit(search.objective.unit), contended]] : []),
    ['Iteration time', secondsText(periodOf(best)), within, contended],
    ['Throughput', numberText(search.samples / periodOf(best)), unit('samples/s'), `${search.samples} in an iteration`],
    ['Peak memory', sizeText(best.peak_memory_bytes), '', 'on the fullest device'],
    ['Devices', String(best.devices), '', best.plan],
    ...(best.training_s > 0 ? [['Training', daysText(best.training_s), within, best.training_dollars > 0 ? `$${shortNumber(best.training_dollars).trim()} for all tokens` : 'for all tokens']] : []),
    ['Limited by', best.limited_by || 'not diagnosed', '', ''],
    proofCard(search),
  ];
}

/** Sentences about what was not simulated. */
function proofSentences(search) {
  const list = [];
  if (search.choices.length > 0) list.push(`${search.proved[0].toUpperCase()}${search.proved.slice(1)}.`);
  if (search.gap !== null && search.objective) list.push(`No order of work makes any of these plans take less than ${amountText(search, search.objective.bound)}, so the first is at most ${Number((100 * search.gap).toPrecision(2))} % above that.`);
  else if (search.gap !== null) list.push(`No order of work makes any of these plans shorter than ${secondsText(search.bound_s)}, so the first is at most ${Number((100 * search.gap).toPrecision(2))} % above the shortest possible period.`);
  if (search.stopped) list.push(`The search ended early: ${search.stopped}.`);
  return [...list, ...search.reasons.map(line => `${line[0].toUpperCase()}${line.slice(1)}.`)];
}

/** Name, number and meaning of each count. */
function searchCounts(search) {
  return [
    ['plans', search.plans, 'partitions, placements and devices that were considered'],
    ['simulations', search.simulated, 'plans with a schedule, micro-batches, recomputation and weights'],
    ['dropped by a bound', search.dropped_by_bound, 'skipped, because a lower bound shows that another choice is no worse'],
    ['dropped by memory', search.too_large + search.unfit, `${search.too_large} before a simulation, ${search.unfit} by it`],
    ['not tried, could be shorter', search.untried, 'no bound rules them out'],
    ['not tried, could be smaller', search.untried_smaller, 'could need less memory or fewer devices, but no shorter period'],
  ];
}

/** What a choice takes of the scenario's budget: head and text of each column that some row has. The price is a column already where it is the objective. */
function budgetColumns({ choices = [], objective }) {
  const price = ['dollars_per_billion_tokens', 'dollars_per_billion_samples'].find(key => choices[0]?.[key] !== undefined);
  const columns = [
    ...(price && objective?.name !== 'cost' ? [[price, `$ for 10^9 ${price.endsWith('tokens') ? 'tokens' : 'samples'}`, v => `$${numberText(v)}`]] : []),
    ['training_s', 'training', daysText], ['training_dollars', '$ for the training', v => `$${shortNumber(v).trim()}`], ['goodput', 'goodput', percentText],
  ];
  return columns.filter(([key]) => choices.some(c => c[key] !== undefined));
}

/** The cells of budgetColumns() of a choice. */
function budgetCells(search, choice) { return budgetColumns(search).map(([key, , text]) => text(choice[key])); }

/** Cells of a row of the table: the text, and whether it is words. */
function choiceCells(c, search = {}) {
  return [[secondsText(periodOf(c))], [sizeText(c.peak_memory_bytes)], [String(c.devices)], [c.behind || 'the first', 'text reason'], [c.plan, 'text reason'],
    [orderText(c), 'text'], [c.recompute, 'text'],
    [c.limited_by || '-', 'text'], ...(search.objective ? [[numberText(amountOf(search, c))]] : [])];
}
function choiceHeads(search = {}) {
  return ['row', 'period', 'memory', 'devices', 'behind the first', 'plan', 'schedule', 'recompute', 'limited by', ...(search.objective ? [search.objective.unit] : [])];
}
