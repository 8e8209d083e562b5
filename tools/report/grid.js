// The table of all points, of which only the rows in sight exist.

const ROW = 24, PRINTED = 400;

/** [{key, title, unit, text: point => text, kind}] */
function gridColumns(sweep, every) {
  const metrics = every ? sweep.metrics : sweep.metrics.filter(m => m.isMain);
  return [
    { key: 'number', title: 'point', kind: 'number', text: i => String(sweep.number[i]) },
    ...sweep.axes.filter(a => every || variesIn(a)).map(a => ({ key: a.path, title: a.name, note: a.path, kind: a.sizes ? 'number' : 'text', text: i => settingText(a, i) })),
    ...metrics.map(m => ({ key: m.name, title: m.title, note: m.name, kind: 'number', text: i => (sweep.ran[i] ? metricText(m, m.values[i]) + otherDevicesMark(sweep, m, i) : '') })),
    { key: 'end', title: 'status', kind: 'text', text: i => endText(sweep, i) },
  ];
}
/** Marks a point that ran on another number of devices than most do, of those with the same cluster. */
function otherDevicesMark(sweep, metric, i) {
  if (metric.name !== 'devices') return '';
  sweep.onOthers ??= likePoints(sweep, sweep.number.map((_, k) => k), { onAnyDevices: false }, sweep.axes.filter(a => !a.follows)).instead;
  return sweep.onOthers.has(i) ? `, not ${sweep.onOthers.get(i)}` : '';
}
function endText(sweep, i) {
  const { status, message } = endOf(sweep, i);
  return message ? `${status}: ${message}` : status;
}

function fillGridHead(table, columns, sort) {
  const row = element('tr');
  for (const { key, title, note, kind } of columns) {
    const way = sort === key ? 'ascending' : sort === '-' + key ? 'descending' : 'none';
    const head = element('th', undefined, { scope: 'col', 'aria-sort': way, class: kind });
    const button = element('button', title + { ascending: ' \u25b4', descending: ' \u25be', none: '' }[way], { type: 'button', 'data-key': key, ...(note ? { title: note } : {}) });
    head.append(button);
    row.append(head);
  }
  table.tHead.replaceChildren(row);
}

function gap(height, columns) {
  const row = element('tr', undefined, { 'aria-hidden': 'true' }), cell = element('td', undefined, { colspan: columns });
  cell.style.height = height + 'px';
  cell.style.padding = 0;
  row.append(cell);
  return row;
}

/** The rows in sight and some more; on paper the first few hundred. */
function fillGridRows(scroller, table, columns, sweep, points, chosen, paper) {
  const first = paper ? 0 : Math.max(0, Math.floor(scroller.scrollTop / ROW) - 10);
  const last = Math.min(points.length, paper ? PRINTED : first + Math.ceil(scroller.clientHeight / ROW) + 20);
  const rows = [];
  for (let k = Math.min(first, points.length); k < last; ++k) {
    const i = points[k];
    const row = element('tr', undefined, { id: `row-${i}`, 'data-point': i, 'aria-rowindex': k + 2, 'aria-selected': i === chosen });
    row.className = sweep.ran[i] ? '' : 'failed';
    for (const { kind, text } of columns) {
      const words = text(i);
      row.append(element('td', words, { class: kind, ...(words.length > 40 ? { title: words } : {}) }));
    }
    rows.push(row);
  }
  if (!paper) {
    rows.unshift(gap(first * ROW, columns.length));
    rows.push(gap((points.length - last) * ROW, columns.length));
  } else if (last < points.length) rows.push(element('tr', `and ${points.length - last} more points, which the CSV file has`));
  table.tBodies[0].replaceChildren(...rows);
  table.setAttribute('aria-rowcount', points.length + 1);
}

/** Scrolls a row into sight, below the head. */
function revealRow(scroller, table, place) {
  const head = table.tHead.offsetHeight, top = place * ROW, seen = scroller.clientHeight - head;
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  else if (top + ROW > scroller.scrollTop + seen) scroller.scrollTop = top + ROW - seen;
}
