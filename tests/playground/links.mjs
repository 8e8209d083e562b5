// The links of the pages into the playground: playground.md#HASH, where HASH is what the playground has after the # of its
// address. The site of the documentation opens them there.
import { readFileSync } from 'node:fs';

const folder = new URL('../../', import.meta.url), read = path => readFileSync(new URL(path, folder), 'utf8');
const { readLink, STORIES } = new Function(`${['link.js', 'stories.js'].map(name => read(`tools/playground/${name}`)).join('')}; return { readLink, STORIES };`)();

/** Pages that answer tasks with a scenario which runs in the playground. */
const PAGES = [...['coming-from-megatron', 'plan-a-70b', 'plan-an-moe', 'short-and-long', 'schedule-to-figure', 'validate-on-a-network'].map(name => `tools/docs/${name}.md`), 'scenarios/guide/edge/README.md'];

/** What the playground shows for a hash, with the text of the story or the example that it names. */
async function shownBy(hash) {
  const linked = await readLink(hash);
  if (linked.example === undefined) return linked;
  const story = STORIES.find(s => s.name === linked.example), shown = { sets: {}, second: story?.second ?? '', backend: 'fluid' };
  try {
    return { ...shown, yaml: story?.yaml ?? read(`scenarios/examples/${linked.example}.yaml`) };
  } catch {
    return { problem: `there is no example '${linked.example}'` };
  }
}
/** {page, text, hash, shown} of each link; a page without one has {page, text}. */
export async function linksOfPages() {
  const links = [];
  for (const page of PAGES) {
    const text = read(page), hashes = [...text.matchAll(/\]\([^()\s]*playground\.md(#(?:1[\w-]+|example=[^()\s]+))\)/g)].map(match => match[1]);
    if (hashes.length === 0) links.push({ page, text });
    for (const hash of hashes) links.push({ page, text, hash, shown: await shownBy(hash) });
  }
  return links;
}
