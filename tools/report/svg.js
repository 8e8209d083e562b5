// A canvas context that writes what is drawn as SVG, so that each picture can be saved for a paper.

const SVG_ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
function svgText(text) { return String(text).replace(/[&<>"]/g, c => SVG_ENTITIES[c]); }
function svgNumber(n) { return String(Math.round(n * 100) / 100); }

const ANCHORS = { left: 'start', center: 'middle', right: 'end' };

/** The part of CanvasRenderingContext2D that the pictures use. `measure` is a context that knows the widths of text. */
class SvgContext {
  constructor(measure, width, height) {
    Object.assign(this, { measure, width, height, parts: [], path: '', dash: [], stack: [], clips: 0, open: 0, matrix: '' });
    Object.assign(this, { fillStyle: '#000', strokeStyle: '#000', lineWidth: 1, globalAlpha: 1, font: '11px sans-serif', textAlign: 'left', textBaseline: 'middle' });
  }
  put(text) { this.parts.push(text); }
  attributes() { return `${this.globalAlpha < 1 ? ` opacity="${svgNumber(this.globalAlpha)}"` : ''}${this.matrix ? ` transform="${this.matrix}"` : ''}`; }
  stroked() { return `fill="none" stroke="${this.strokeStyle}" stroke-width="${svgNumber(this.lineWidth)}"${this.dash.length ? ` stroke-dasharray="${this.dash.join(' ')}"` : ''}`; }
  box(x, y, width, height) { return `x="${svgNumber(Math.min(x, x + width))}" y="${svgNumber(Math.min(y, y + height))}" width="${svgNumber(Math.abs(width))}" height="${svgNumber(Math.abs(height))}"`; }
  fillRect(x, y, width, height) { this.put(`<rect ${this.box(x, y, width, height)} fill="${this.fillStyle}"${this.attributes()}/>`); }
  strokeRect(x, y, width, height) { this.put(`<rect ${this.box(x, y, width, height)} ${this.stroked()}${this.attributes()}/>`); }
  beginPath() { this.path = ''; }
  moveTo(x, y) { this.path += `M${svgNumber(x)} ${svgNumber(y)}`; }
  lineTo(x, y) { this.path += `${this.path ? 'L' : 'M'}${svgNumber(x)} ${svgNumber(y)}`; }
  closePath() { this.path += 'Z'; }
  rect(x, y, width, height) { this.path += `M${svgNumber(x)} ${svgNumber(y)}h${svgNumber(width)}v${svgNumber(height)}h${svgNumber(-width)}Z`; }
  /** Whole circles only. */
  arc(x, y, r) { this.path += `M${svgNumber(x - r)} ${svgNumber(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`; }
  fill() { if (this.path) this.put(`<path d="${this.path}" fill="${this.fillStyle}"${this.attributes()}/>`); }
  stroke() { if (this.path) this.put(`<path d="${this.path}" ${this.stroked()}${this.attributes()}/>`); }
  setLineDash(dash) { this.dash = dash; }
  clip() {
    this.put(`<clipPath id="clip${++this.clips}"><path d="${this.path}"/></clipPath><g clip-path="url(#clip${this.clips})">`);
    ++this.open;
  }
  text(text, x, y, paint) {
    const [, bold, size] = /^(bold )?(\d+)px/.exec(this.font), shift = this.textBaseline === 'middle' ? 0.35 * size : 0;
    this.put(`<text x="${svgNumber(x)}" y="${svgNumber(y + shift)}" font-size="${size}"${bold ? ' font-weight="bold"' : ''} text-anchor="${ANCHORS[this.textAlign]}" ${paint}${this.attributes()}>${svgText(text)}</text>`);
  }
  fillText(text, x, y) { this.text(text, x, y, `fill="${this.fillStyle}"`); }
  strokeText(text, x, y) { this.text(text, x, y, this.stroked()); }
  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }
  translate(x, y) { this.matrix += `translate(${svgNumber(x)} ${svgNumber(y)}) `; }
  rotate(angle) { this.matrix += `rotate(${svgNumber((angle * 180) / Math.PI)}) `; }
  save() {
    const { matrix, open, dash, fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline } = this;
    this.stack.push({ matrix, open, dash, fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline });
  }
  restore() {
    const saved = this.stack.pop();
    for (; this.open > saved.open; --this.open) this.put('</g>');
    Object.assign(this, saved);
  }
  setTransform() {}
  document() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}" font-family="Helvetica, Arial, sans-serif">\n${this.parts.join('\n')}\n</svg>\n`;
  }
}

function saveFile(name, text, type) {
  const file = URL.createObjectURL(new Blob([text], { type }));
  element('a', '', { href: file, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(file), 60000);
}
/** Colors of paper for what `use` draws, whatever the page shows. */
function inLight(use) {
  const dark = document.documentElement.classList.contains('dark');
  document.documentElement.classList.remove('dark');
  try {
    return use();
  } finally {
    document.documentElement.classList.toggle('dark', dark);
  }
}
