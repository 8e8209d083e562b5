// When a page shows its first picture, and when it has everything: page_paint.mjs PAGE, milliseconds from its opening.
import { Chromium, chromiumHere } from '../report/chromium.mjs';

const browser = await Chromium.start(chromiumHere());
await browser.open(process.argv[2]);
const marks = `JSON.stringify(Object.fromEntries(performance.getEntriesByType('mark').map(m => [m.name, m.startTime])))`;
let found = {};
for (const end = Date.now() + 60000; !found.whole && Date.now() < end;) {
  found = JSON.parse(await browser.evaluate(marks));
  await new Promise(done => setTimeout(done, 50));
}
await browser.stop();
console.log(JSON.stringify(found));
