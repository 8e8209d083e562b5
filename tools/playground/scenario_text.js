// Changes of a scenario's text. `places` says where the text has its values and maps: {path, line, column, text, is_map},
// with lines and columns from 1 and the text of values alone, as answers.cpp writes them.

/** The text and its places with another value at a path; null where the text has no place for it. */
function withValue({ text, places }, path, value) {
  for (const at of [path, `${path}.name`, `${path}.base`]) {
    const place = places.find(p => p.path === at && !p.is_map && p.text !== null);
    if (place) return withReplaced(text, places, place, value);
  }
  return path.includes('[') ? null : withEntry(text, places, path, value);
}

/** The value at a path, as the text has it; undefined without one. */
function valueInText(places, path) {
  const at = [path, `${path}.name`, `${path}.base`].map(p => places.find(place => place.path === p && !place.is_map && place.text !== null));
  return at.find(place => place)?.text;
}

/** The characters that a value takes in its line, with its quotes; 0 where the line no longer has it. */
function lengthInLine(line, { column, text }) {
  const from = column - 1, quote = line[from];
  if (line.startsWith(text, from) && text !== '') return text.length;
  if (quote !== '"' && quote !== "'") return 0;
  const end = line.indexOf(quote, from + 1);
  return end < 0 ? 0 : end + 1 - from;
}

function withReplaced(text, places, place, value) {
  const lines = text.split('\n'), line = lines[place.line - 1] ?? '', length = lengthInLine(line, place), from = place.column - 1;
  if (length === 0) return null;
  lines[place.line - 1] = line.slice(0, from) + value + line.slice(from + length);
  return { text: lines.join('\n'), places: shifted(places, place.line, place.column, value.length - length).map(p => (p.path === place.path ? { ...p, text: value } : p)) };
}
/** Places after a column of a line are further right. */
function shifted(places, line, column, by) {
  return places.map(p => (p.line === line && p.column > column ? { ...p, column: p.column + by } : p));
}

/** A new entry in the nearest map that the text has. */
function withEntry(text, places, path, value) {
  const keys = path.split('.');
  for (let depth = keys.length - 1; depth >= 0; --depth) {
    const map = places.find(p => p.path === keys.slice(0, depth).join('.'));
    if (map) return map.is_map ? withInserted(text, places, map, entryOf(keys, depth, value)) : null;
  }
  return null;
}
/** "group: {tensor: 2}" of the keys from `depth` on, and what it has where, as places without a line whose column counts from 0. */
function entryOf(keys, depth, value) {
  const parts = [];
  let text = `${keys[depth]}: `;
  for (let k = depth + 1; k < keys.length; ++k) {
    parts.push({ path: keys.slice(0, k).join('.'), column: text.length, text: null, is_map: true });
    text += `{${keys[k]}: `;
  }
  parts.push({ path: keys.join('.'), column: text.length, text: value, is_map: false });
  return { text: text + value + '}'.repeat(keys.length - 1 - depth), parts };
}
function placedAt({ parts }, line, column) { return parts.map(part => ({ ...part, line, column: column + part.column })); }

function withInserted(text, places, map, entry) {
  const lines = text.split('\n'), line = lines[map.line - 1] ?? '', indent = map.column - 1;
  if (line[indent] === '{') return withInsertedInBraces(text, places, map, entry);
  if (line.slice(0, indent).trim() !== '') return null;
  const at = map.path === '' ? endOfText(lines) : map.line - 1;
  lines.splice(at, 0, ' '.repeat(indent) + entry.text);
  const moved = places.map(p => (p.line > at && p.path !== map.path && !isAncestor(p.path, map.path) ? { ...p, line: p.line + 1 } : p));
  return { text: lines.join('\n'), places: [...moved, ...placedAt(entry, at + 1, indent + 1)] };
}
function isAncestor(path, of) { return path === '' || of.startsWith(`${path}.`); }
/** Before the empty lines at the end. */
function endOfText(lines) {
  let end = lines.length;
  while (end > 0 && lines[end - 1].trim() === '') --end;
  return end;
}
function withInsertedInBraces(text, places, map, entry) {
  const open = text.split('\n').slice(0, map.line - 1).reduce((sum, line) => sum + line.length + 1, 0) + map.column - 1, close = closingBrace(text, open);
  if (close < 0) return null;
  const kept = text.slice(0, close).trimEnd(), between = text.slice(kept.length, close), comma = kept.endsWith('{') ? '' : kept.endsWith(',') ? ' ' : ', ';
  const line = kept.split('\n').length, column = kept.length - kept.lastIndexOf('\n');  // Of the first character after what is kept.
  const isInLine = !between.includes('\n'), added = comma + entry.text;
  const moved = isInLine ? shifted(places, line, column - 1, added.length - between.length) : places;
  return { text: kept + added + (isInLine ? '' : between) + text.slice(close), places: [...moved, ...placedAt(entry, line, column + comma.length)] };
}
/** The place of the brace that closes the one at `open`, past quotes and comments; -1 without one. */
function closingBrace(text, open) {
  let depth = 0, quote = '';
  for (let i = open; i < text.length; ++i) {
    const c = text[i];
    if (quote) quote = c === quote ? '' : quote;
    else if (c === '"' || c === "'") quote = c;
    else if (c === '#' && /\s/.test(text[i - 1])) i = (text.indexOf('\n', i) + text.length) % text.length;
    else if (c === '{' || c === '[') ++depth;
    else if ((c === '}' || c === ']') && --depth === 0) return i;
  }
  return -1;
}
