// The module of WebAssembly against the native program: engine.test.mjs STAGECRAFT WASM_BUILD, from the root of the project.
// Every number and sentence of results.json has to be the same, to the last bit; what one refuses, the other refuses with
// the same words. 77 where there is no module. Names after the two limit the examples.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import test from 'node:test';
import { brotliCompressSync } from 'node:zlib';
import { linksOfPages } from './links.mjs';

const [stagecraft, build, ...names] = process.argv.slice(2), site = resolve(build, 'playground/site');
if (!existsSync(`${site}/stagecraft.wasm`)) {
  console.log(`SKIPPED: there is no ${site}/stagecraft.wasm; tools/setup wasm, then cmake --preset wasm and cmake --build --preset wasm`);
  process.exit(77);
}
const files = JSON.parse(readFileSync(`${site}/library.json`, 'utf8'));
const load = createRequire(import.meta.url)(`${site}/stagecraft.js`);

/** A fresh engine in memory of its own. */
async function engineHere() {
  const engine = await load({ wasmBinary: readFileSync(`${site}/stagecraft.wasm`) });
  engine.FS.writeFile('scenario.yaml', '');
  for (const [path, text] of Object.entries(files)) {
    engine.FS.mkdirTree('/library/' + path.slice(0, path.lastIndexOf('/')));
    engine.FS.writeFile('/library/' + path, text);
    if (path.endsWith('.csv')) engine.FS.writeFile(basename(path), text);  // Next to the scenario, as scenarios have it.
  }
  return request => {
    const text = JSON.stringify(request), size = engine.lengthBytesUTF8(text) + 1, at = engine._malloc(size);
    engine.stringToUTF8(text, at, size);
    const answer = JSON.parse(engine.UTF8ToString(engine._stagecraft_answer(at)));
    engine._free(at);
    return answer;
  };
}
const ask = await engineHere();
const here = (yaml, backend, sets = []) => ask({ method: 'run', yaml, sets, runs: [{ backend, diagnose: true }] }).runs[0];

/** results.json of the native program, or its first line of errors. */
function native(file, backend, sets = []) {
  const words = ['run', file, '--backend', backend, '--format', 'json', ...sets.flatMap(set => ['--set', set])];
  return new Promise(done => execFile(stagecraft, words, { maxBuffer: 1 << 30 }, (error, out, problems) => done(error ? { refused: problems } : { results: JSON.parse(out) })));
}
const WRITTEN_ELSEWHERE = new Set(['provenance', 'scenario_file']);
/** What differs, as paths with both values; `counts.numbers` counts what was compared. */
function differences(a, b, path, counts) {
  if (typeof a === 'number' && typeof b === 'number') {
    ++counts.numbers;
    return Object.is(a, b) ? [] : [`${path}: ${a} here, ${b} natively`];
  }
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return a === b ? [] : [`${path}: ${JSON.stringify(a)} here, ${JSON.stringify(b)} natively`];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter(key => !WRITTEN_ELSEWHERE.has(key)).flatMap(key => differences(a[key], b[key], `${path}.${key}`, counts));
}
/** Compares one run; returns how many numbers, 0 where both refuse. */
async function compare(what, file, yaml, backend, sets = []) {
  const counts = { numbers: 0 }, [run, other] = [here(yaml, backend, sets), await native(file, backend, sets)];
  if (run.error || other.refused) {
    assert.ok(run.error && other.refused, `${what}: ${run.text ?? 'runs'} here; ${other.refused ?? 'runs'} natively`);
    if (run.problems[0]?.code !== 'page-size') assert.ok(other.refused.replace(/\s+/g, ' ').includes(run.problems[0].message.replace(/\s+/g, ' ').slice(0, 60)), `${what}: ${run.text}\n${other.refused}`);
    return 0;
  }
  const found = differences(run.results, other.results, '', counts);
  assert.deepEqual(found.slice(0, 5), [], `${what}: ${found.length} of ${counts.numbers}`);
  return counts.numbers;
}

const examples = Object.keys(files).filter(path => /^scenarios\/examples\/[^/]*\.yaml$/.test(path) && (names.length === 0 || names.includes(basename(path, '.yaml'))));
test('every example has the same results to the last bit, on ideal and on fluid', async () => {
  let ran = 0, refused = 0, numbers = 0;
  for (const file of examples)
    for (const backend of ['ideal', 'fluid']) {
      const compared = await compare(`${file} on ${backend}`, file, files[file], backend);
      if (compared > 0) ++ran;
      else ++refused;
      numbers += compared;
    }
  console.log(`# ${examples.length} examples: ${ran} runs with ${numbers} equal numbers, ${refused} refused by both`);
  assert.ok(numbers > 1000 && (names.length > 0 || ran > 30));
});

const all = names.length === 0 ? ask({ method: 'lists' }) : { schedules: [], planners: [] };
for (const [kind, field] of [['schedules', 'run.schedule'], ['planners', 'plan.planner']])
  test(`the quickstart with each of the ${kind} has the same results`, async () => {
    const file = 'scenarios/examples/quickstart.yaml';
    for (const { name } of all[kind]) await compare(`${field}=${name}`, file, files[file], 'ideal', [`${field}=${name}`]);
  });

test('what the pages link has the same results', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'links-')), file = join(folder, 'linked.yaml');
  for (const { page, shown } of await linksOfPages()) {
    writeFileSync(file, shown.yaml);
    for (const more of shown.second ? [[], [`run.schedule=${shown.second}`]] : [[]])
      assert.ok(await compare(`${page} ${more}`, file, shown.yaml, shown.backend, [...Object.entries(shown.sets).map(([path, value]) => `${path}=${value}`), ...more]) > 0, `${page}: it is refused`);
  }
  rmSync(folder, { recursive: true });
});

const STORIES = new Function(`${readFileSync('tools/playground/stories.js', 'utf8')}; return STORIES;`)();
for (const story of STORIES)
  test(`the story "${story.name}" is true`, () => {
    const perSample = options => {
      const run = here(story.yaml, 'fluid', options.filter(([path]) => path !== 'second').map(([path, value]) => `${path}=${value}`));
      assert.equal(run.error, undefined, run.text);
      assert.notEqual(run.results.fits, false);
      return 1 / run.results.throughput_samples_per_s;
    };
    const first = perSample([]);
    if (story.second) perSample([['run.schedule', story.second]]);
    for (const step of story.steps) {
      const now = perSample(step.options);
      if (step.makes) assert.ok(step.makes === 'faster' ? now < 0.97 * first : now > 1.03 * first, `${step.press}: ${now} after ${first}`);
    }
  });

test('mistakes have their places and their help, and leave the engine as it was', () => {
  const yaml = files['scenarios/examples/quickstart.yaml'], wrong = here(yaml.replace('gpt2-medium', 'gpt2-medum').replace('planner:', 'planer:'), 'ideal');
  assert.deepEqual(wrong.problems.map(p => [p.file, p.line, p.column]), [['scenario.yaml', 4, 8], ['scenario.yaml', 7, 3]]);
  assert.match(wrong.problems[0].help, /did you mean 'gpt2-medium'/);
  assert.equal(here('a: [', 'ideal').error, 'input');
  assert.equal(here('', 'ideal').error, 'input');
  assert.equal(here(yaml, 'simgrid').error, 'backend');
  assert.equal(here(yaml, 'ideal').error, undefined);
});

const MOST_BYTES = 1_300_000;
test(`the whole site is at most ${MOST_BYTES} bytes in brotli`, () => {
  let sum = 0;
  for (const name of readdirSync(site)) {
    const size = brotliCompressSync(readFileSync(`${site}/${name}`)).length;
    console.log(`# ${name}: ${size}`);
    sum += size;
  }
  console.log(`# ${sum} bytes in brotli`);
  assert.ok(sum <= MOST_BYTES, `${sum} bytes`);
});
