// The points that are shown, as a file (RFC 4180), with the columns of `sweep --format csv`.

function csvCell(text) { return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; }

function csvOf(sweep, points) {
  const head = ['number', ...sweep.axes.map(a => a.path), 'status', ...sweep.figures.map(f => f.name), 'code', 'message'];
  const lines = points.map(i => {
    const { status, code, message } = endOf(sweep, i);
    return [sweep.number[i], ...sweep.axes.map(a => (a.of[i] < 0 ? '' : a.texts[a.of[i]])), status,
      ...sweep.figures.map(f => (Number.isNaN(f.values[i]) ? '' : f.values[i])), code, message];
  });
  return [head, ...lines].map(cells => cells.map(c => csvCell(String(c))).join(',') + '\n').join('');
}
