// The scripts of the playground that need no page: changes of a scenario's text, undo, links, options in a help, plans.
import { readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import test from 'node:test';

const folder = new URL('../../tools/playground/', import.meta.url);
const text = ['scenario_text.js', 'history.js', 'link.js', 'editor.js', 'plans.js', 'engine.js', 'stories.js'].map(name => readFileSync(new URL(name, folder), 'utf8')).join('');
const names = [...text.matchAll(/^(?:async )?(?:function|const|class) (\w+)/gm)].map(match => match[1]);
const page = new Function(`${text}; return { ${names.join(', ')} };`)();

/** Places of a text in flow and block style, found by their own words: path to [word, is_map]. */
function placesOf(yaml, words) {
  return Object.entries(words).map(([path, [word, isMap = false]]) => {
    const at = yaml.indexOf(word), line = yaml.slice(0, at).split('\n').length;
    assert.notEqual(at, -1, word);
    return { path, line, column: at - yaml.lastIndexOf('\n', at - 1), text: isMap ? null : word.replaceAll("'", ''), is_map: isMap };
  });
}
const YAML = "model: 'gpt2-small'\nplan: {planner: balanced, stages: 4}  # {\nrun:\n  schedule: 1f1b\n  micro_batches: 8\n";
const PLACES = placesOf(YAML, { '': ['model', true], model: ["'gpt2-small'"], plan: ['{planner', true], 'plan.planner': ['balanced'], 'plan.stages': ['4'], run: ['schedule', true], 'run.schedule': ['1f1b'], 'run.micro_batches': ['8'] });
const changed = (path, value, from = { text: YAML, places: PLACES }) => page.withValue(from, path, value);

test('a value is replaced where the text has it, with its quotes', () => {
  assert.match(changed('run.micro_batches', '16').text, /micro_batches: 16\n$/);
  assert.match(changed('model', 'gpt2-xl').text, /^model: gpt2-xl\nplan/);
});
test('places on the same line move with a longer value, so that a second change is right', () => {
  const once = changed('plan.planner', 'pipedream');
  assert.match(changed('plan.stages', '12', once).text, /^plan: \{planner: pipedream, stages: 12\} {2}# \{$/m);
});
test('a missing value goes into the nearest map: in braces at its end, in a block before its first line', () => {
  const tensor = changed('plan.group.tensor', '2');
  assert.match(tensor.text, /^plan: \{planner: balanced, stages: 4, group: \{tensor: 2\}\} {2}# \{$/m);
  assert.match(changed('plan.group.tensor', '4', tensor).text, /group: \{tensor: 4\}\}/);
  assert.match(changed('plan.group.context', '2', tensor).text, /group: \{tensor: 2, context: 2\}\}/);
  assert.match(changed('plan.group.context', '2', changed('run.x.y', '1', tensor)).text, /group: \{tensor: 2, context: 2\}\}/);
  assert.match(changed('run.iterations', '3').text, /^run:\n {2}iterations: 3\n {2}schedule: 1f1b$/m);
  const software = changed('software', 'none');
  assert.ok(software.text.endsWith('micro_batches: 8\nsoftware: none\n'));
  assert.match(changed('run.micro_batches', '4', changed('run.iterations', '3')).text, /micro_batches: 4/);
});
test('a text that has become another is left alone', () => {
  assert.equal(changed('plan.stages', '8', { text: 'plan: [', places: PLACES }), null);
  assert.equal(changed('model.layers', '8'), null);  // Its model is a name.
});
test('a map that goes over several lines keeps its lines', () => {
  const yaml = 'plan: {\n  stages: 4\n}\n', places = placesOf(yaml, { '': ['plan', true], plan: ['{', true], 'plan.stages': ['4'] });
  assert.equal(page.withValue({ text: yaml, places }, 'plan.shard', 'optimizer').text, 'plan: {\n  stages: 4, shard: optimizer\n}\n');
});

test('undo goes back change by change, typing without a pause is one, and a change forgets what was undone', () => {
  let now = 0;
  const history = new page.UndoHistory(() => now);
  history.add('a');
  for (const state of ['b', 'bc', 'bcd']) history.add(state, true);
  now += 5000;
  history.add('e', true);
  assert.deepEqual([history.undo(), history.undo(), history.undo()], ['bcd', 'a', null]);
  assert.equal(history.redo(), 'bcd');
  history.add('f');
  assert.equal(history.redo(), null);
  assert.deepEqual([history.undo(), history.undo()], ['bcd', 'a']);
});

test('a link reads back, in few characters', async () => {
  const shown = { yaml: YAML.repeat(3) + 'ä€', sets: { 'run.iterations': '3' }, second: 'zb-h1', backend: 'ideal' };
  const link = await page.linkOf(shown);
  assert.match(link, /^#1[\w-]+$/);
  assert.ok(link.length < 400, `${link.length} characters`);
  assert.deepEqual(await page.readLink(link), shown);
});
test('a damaged, a cut, a strange and a huge link are told apart from none', async () => {
  const link = await page.linkOf({ yaml: YAML, sets: {}, second: '', backend: 'fluid' });
  assert.equal(await page.readLink(''), null);
  assert.deepEqual(await page.readLink('#example=Why%20zero%20bubble%3F'), { example: 'Why zero bubble?' });
  for (const bad of [link.slice(0, -9), link.slice(0, 9), '#1', '#2abc', '#1!!!', await page.linkOf({ yaml: 7 }), await page.linkOf(null)])
    assert.match((await page.readLink(bad)).problem, /damaged/, bad);
  assert.match((await page.readLink('#1' + 'A'.repeat(100_000))).problem, /too long/);
  assert.match((await page.readLink(await page.linkOf({ yaml: 'x'.repeat(5_000_000) }))).problem, /damaged/);  // It is small, and would become large.
});

test('options in a help become buttons: those next to each other one', () => {
  assert.deepEqual(page.optionsIn('this fits: --set plan.recompute=layers (60.84 GiB), or --set plan.stages=8 --set plan.replicas=1.'),
    [[['plan.recompute', 'layers']], [['plan.stages', '8'], ['plan.replicas', '1']]]);
  assert.deepEqual(page.optionsIn("--set 'cluster.links[0].bandwidth=100 Gbit/s'"), [[['cluster.links[0].bandwidth', '100 Gbit/s']]]);
  assert.deepEqual(page.optionsIn('write two stages'), []);
});

const START = { stages: 4, tensor: 2, replicas: 2, size: 1, recompute: 'none', schedule: '1f1b', samples: 16 };
test('neighbors of a plan keep its devices and samples', () => {
  const list = page.neighbours(START, true), devices = p => p.stages * p.tensor * p.replicas;
  assert.ok(list.length >= 8);
  for (const plan of list) {
    assert.equal(devices(plan), devices(START));
    assert.ok(Number.isInteger(page.batchesOf(plan)) && page.batchesOf(plan) >= 1, JSON.stringify(plan));
  }
  assert.ok(page.neighbours(START, false).every(plan => plan.tensor === START.tensor));
  assert.deepEqual(page.optionsOf({ ...START, stages: 2, replicas: 4 }, START, false), [['plan.stages', '2'], ['plan.replicas', '4'], ['run.micro_batches', '4']]);
});
test('a search keeps the best plans first, tries none twice, and ends when it is told to', async () => {
  const asked = [], cost = p => 10 * p.replicas + p.size + (p.schedule === 'zb-h1' ? 0 : 1);
  const evaluate = async plan => { asked.push(JSON.stringify(plan)); return plan.size > 2 ? null : { seconds: cost(plan), bytes: 0 }; };
  const whole = await page.searchPlans(START, true, evaluate, () => {}, () => false);
  assert.equal(new Set(asked).size, asked.length);
  assert.ok(whole.isComplete);
  assert.deepEqual([whole.found[0].plan.replicas, whole.found[0].plan.schedule, whole.found[0].plan.size], [1, 'zb-h1', 1]);
  let left = 3;
  assert.equal((await page.searchPlans(START, true, evaluate, () => {}, () => left-- === 0)).tried, 3);
});

test('the newest request counts, and one that takes long is ended for it', async () => {
  const ends = [], log = [];
  const engine = { ask: request => new Promise(done => ends.push(() => done({ for: request }))), cancel: () => log.push('cancel') };
  const newest = new page.NewestFirst(engine), take = answer => log.push(answer.for);
  for (const request of ['a', 'b', 'c']) newest.ask(request, take);
  ends[0]();
  await new Promise(setImmediate);
  assert.equal(ends.length, 2);  // b gave way to c.
  newest.since -= 60_000;
  newest.ask('d', take);
  ends[1]();
  await new Promise(setImmediate);
  ends[2]();
  await new Promise(setImmediate);
  assert.deepEqual(log, ['cancel', 'd']);
});
