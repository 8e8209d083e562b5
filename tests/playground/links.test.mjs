// What the pages link in the playground, with the native program: links.test.mjs STAGECRAFT, from the root of the project.
// engine.test.mjs runs the same in the module of WebAssembly.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { linksOfPages } from './links.mjs';

const stagecraft = process.argv[2], folder = mkdtempSync(join(tmpdir(), 'links-')), file = join(folder, 'linked.yaml');
after(() => rmSync(folder, { recursive: true, force: true }));
const MOST_INSTRUCTIONS = 500_000;  // Of the page.

/** What the program prints for what a link shows. */
function run({ yaml, sets, backend }, more = []) {
  writeFileSync(file, yaml);
  const options = [...Object.entries(sets).map(([path, value]) => `${path}=${value}`), ...more].flatMap(set => ['--set', set]);
  const done = spawnSync(stagecraft, ['run', file, '--backend', backend, ...options], { encoding: 'utf8', env: { ...process.env, STAGECRAFT_PATH: process.cwd() } });
  assert.equal(done.status, 0, done.stderr);
  return done.stdout;
}
for (const { page, text, shown } of await linksOfPages())
  test(`${page} links a scenario that loads, and prints its iteration time`, () => {
    assert.ok(shown, 'it has no link into the playground');
    assert.equal(shown.problem, undefined);
    const printed = run(shown), [, instructions] = /(\d+) instructions/.exec(printed), [, time] = /^ *iteration time +([\d.]+ \w+)/m.exec(printed);
    assert.ok(Number(instructions) <= MOST_INSTRUCTIONS, `${instructions} instructions`);
    assert.ok(text.includes(time), `the page does not say ${time}`);
    if (shown.second) run(shown, [`run.schedule=${shown.second}`]);
  });
