// The timeline on paper: a strip for each device, so that a page ends between devices and not in front of all of them.

/** Browsers have no canvas of more pixels; rows below that are not on paper. */
const MOST_PAPER = 10000;

/** Strips from top to bottom, {from, to, rows}: the rows of a device, after the headings over it. The first has the axis. */
function stripsOf(layout) {
  const strips = [];
  let last = null;
  for (const row of layout.rows) {
    const joins = last && (last.kind === 'heading' || (row.kind !== 'heading' && row.run === last.run && row.device === last.device));
    if (row.y + row.height > MOST_PAPER) break;
    if (!joins) strips.push({ from: strips.length ? row.y - GAP / 2 : 0, to: 0, rows: [] });
    strips.at(-1).rows.push(row);
    last = row;
  }
  strips.forEach((strip, k) => (strip.to = strips[k + 1]?.from ?? last.y + last.height + GAP));
  return strips;
}

/** Draws each strip on its own canvas; `scene` is the scene of the whole timeline. */
function fillStrips(list, layout, scene) {
  list.replaceChildren(...stripsOf(layout).map(({ from, to, rows }) => {
    const canvas = document.createElement('canvas'), context = sizedContext(canvas, scene.view.width, to - from, true);
    context.translate(0, -from);
    draw(context, { ...scene, rows, top: 0, height: to });
    return canvas;
  }));
}
