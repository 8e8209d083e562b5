// The page of runs: reads its data as it arrives, and fills its tables.

const page = JSON.parse($('data').textContent);
describeKinds(page.kinds);
setRuns(page.runs.map(openRun));
const parts = runs.flatMap(run => run.parts.map(part => [run, part]));
let arrived = 0;

/** Reads what has arrived of the page's data, or enough of it; true when that is all. */
function receive(enough = () => false) {
  const whole = document.readyState !== 'loading';
  for (; arrived < parts.length && (whole || $(`part${arrived + 1}`)) && !enough(); ++arrived)
    readPart(...parts[arrived], JSON.parse($(`part${arrived}`).textContent));
  return arrived === parts.length;
}
/** Until all that is in sight is drawn, which does not wait for the rest of the page. */
function paintEarly() {
  const top = scroller.scrollTop, bottom = top + heightNow();
  const inSight = layout.rows.filter(row => row.kind !== 'heading' && row.y < bottom && row.y + row.height > top);
  const there = () => inSight.every(row => (row.lane ?? row.memory).there);
  receive(there);
  paint();
  if (there()) performance.mark('drawn');
  else requestAnimationFrame(paintEarly);
}

fillSetups($('setups'), runs);
$('paired').checked = runs.length > 1;
fillHead();
arrange();
listen();
$('link-query').addEventListener('input', () => fillLinks(runs, $('link-query').value));
requestAnimationFrame(paintEarly);
document.addEventListener('DOMContentLoaded', () => {
  fillFigures($('figures'), runs, page.metrics);
  fillChanges($('changes-section'), $('changes'), runs);
  fillLimits($('limits-section'), $('limits'), runs);
  fillTimes($('times-section'), $('times'), runs);
  fillRankCharts($('bars-section'), $('time-bars'), $('memory-bars'), runs);
  fillRanks($('ranks'), runs);
  fillIdle($('idle'), runs);
  fillLinks(runs, '');
  fillOrigin($('origin'), $('scenarios'), runs);
  receive();
  redraw();
  performance.mark('whole');
});
// What a test asks; a canvas has no elements to look up.
window.report = { runs, state, hit, rows: () => layout.rows, x: time => xOf(sizedView(), time), paint, gaps: (r, device) => knownGaps(runs[r], device), causes: CAUSES, length, inks: () => KINDS.map(kind => [palette[kind], inkOn(rgbOf(palette[kind]))]) };
