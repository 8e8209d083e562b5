// What both pages are made of. Text goes in as text, so that no name can become part of the page.

const $ = id => document.getElementById(id);

function element(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
}

/** A few lines beside the pointer; without lines, none. */
function showTip(lines, event) {
  $('tip').hidden = !lines;
  if (!lines) return;
  $('tip').textContent = lines.join('\n');
  const { offsetWidth, offsetHeight } = $('tip');
  $('tip').style.left = Math.max(0, Math.min(event.clientX + 14, innerWidth - offsetWidth - 4)) + 'px';
  $('tip').style.top = (event.clientY + 18 + offsetHeight > innerHeight ? event.clientY - offsetHeight - 8 : event.clientY + 18) + 'px';
}

/** A text, as much of it as fits. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let keep = text.length;
  while (keep > 0 && context.measureText(text.slice(0, keep) + '\u2026').width > width) --keep;
  return text.slice(0, keep) + '\u2026';
}

/** Colors of the style sheet, as they are now. */
function coloursOf(names) {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map(name => [name, style.getPropertyValue('--' + name).trim()]));
}

/** The width of pictures on paper, which the style sheet scales to the sheet; its text is read next to that of tables. */
const PAPER_WIDTH = 880;

/** A canvas of this many pixels of the page, sharp on every screen and on paper, to draw on in these pixels. */
function sizedContext(canvas, width, height, paper = false) {
  const ratio = Math.max(devicePixelRatio || 1, paper ? 3 : 1), context = canvas.getContext('2d');
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = height + 'px';
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
