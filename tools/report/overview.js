// The whole run in a strip above the timeline: what devices do, and which part of it is in view.

const OVERVIEW_HEIGHT = 26;

/** Shares of device time by kind of work in equal parts of the run, as sim/output/page_window.cpp writes them. */
function readOverview(overview) {
  if (!overview) return null;
  const { kinds, shares } = overview;
  return { kinds, shares: Float64Array.from(shares, digit => DIGITS[digit.charCodeAt(0)] / 63), parts: kinds.length > 0 ? shares.length / kinds.length : 0 };
}

/** Until when the first view lasts: the pipeline is full, and a few micro-batches are through; at most one iteration. */
function firstViewEnd(runs) {
  const ends = runs.map(run => {
    const first = run.iterationEnds[0] ?? run.length, { setup, ranks, period_s: period } = run.results;
    const depth = new Set((ranks ?? []).map(r => r.stages.join())).size || run.groups.length;
    const end = setup?.micro_batches > 0 ? ((depth + 6) * period * 1e12) / setup.micro_batches : first;
    return end < 0.6 * first ? end : first;
  });
  return Math.min(Math.max(...ends), Math.max(...runs.map(run => run.length)));
}

/** Strips of all runs below each other, work from below in the colors of its kinds, and the view as a window. */
function drawOverview(canvas, runs, view, palette, wholeLength) {
  const width = canvas.parentElement.clientWidth, context = sizedContext(canvas, width, OVERVIEW_HEIGHT * runs.length);
  const x = time => (time / wholeLength) * width;
  context.fillStyle = palette.background;
  context.fillRect(0, 0, width, OVERVIEW_HEIGHT * runs.length);
  runs.forEach((run, r) => {
    const top = r * OVERVIEW_HEIGHT, tall = OVERVIEW_HEIGHT - 2, { kinds, shares, parts } = run.overview;
    context.fillStyle = palette.idle;
    context.fillRect(0, top, x(run.wholeLength), tall);
    for (let p = 0; p < parts; ++p) {
      const left = x((p * run.wholeLength) / parts), right = x(((p + 1) * run.wholeLength) / parts);
      let bottom = top + tall;
      kinds.forEach((kind, k) => {
        const high = tall * shares[p * kinds.length + k];
        context.fillStyle = palette[KINDS.includes(kind) ? kind : 'all_reduce'];
        context.fillRect(left, (bottom -= high), right - left + 0.5, high);
      });
    }
  });
  const from = x(view.from), to = Math.max(x(view.to), from + 3);
  context.fillStyle = palette.background;
  context.globalAlpha = 0.55;
  context.fillRect(0, 0, from, OVERVIEW_HEIGHT * runs.length);
  context.fillRect(to, 0, width - to, OVERVIEW_HEIGHT * runs.length);
  context.globalAlpha = 1;
  context.strokeStyle = palette.accent;
  context.lineWidth = 2;
  context.strokeRect(from + 1, 1, Math.max(to - from - 2, 1), OVERVIEW_HEIGHT * runs.length - 2);
}

/** A press or a drag moves the view there. */
function listenToOverview(canvas, moveTo) {
  const at = e => e.offsetX / canvas.clientWidth;
  canvas.addEventListener('pointerdown', e => {
    canvas.setPointerCapture(e.pointerId);
    moveTo(at(e));
  });
  canvas.addEventListener('pointermove', e => e.buttons & 1 && moveTo(at(e)));
}

/** What of a large run is not drawn; empty where all is. */
function drawnNote(runs) {
  const replicas = runs.some(run => run.standsFor?.some(n => n > 1)), cut = runs.filter(run => run.length < run.wholeLength);
  if (!replicas && cut.length === 0) return '';
  const parts = [...(replicas ? ['one replica of each pipeline rank'] : []), ...(cut.length > 0 ? [`the first ${timeText(cut[0].length)} of ${timeText(cut[0].wholeLength)}`] : [])];
  return `A large run: the timeline has ${parts.join(' and ')}. The strip above it and all numbers are of the whole run.`;
}
