// The link to what the page shows: the scenario, its options and the second schedule, compressed, after the # of the
// address. Nothing of it is sent to a server.

const LINK_VERSION = '#1', EXAMPLE = '#example=', LONGEST_LINK = 60_000, LARGEST_LINKED = 200_000;

async function through(stream, bytes, most = Infinity) {
  const chunks = [], reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  let size = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    chunks.push(next.value);
    if ((size += next.value.length) > most) throw new RangeError('too long');
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
async function linkOf(shown) {
  const bytes = await through(new CompressionStream('deflate'), new TextEncoder().encode(JSON.stringify(shown)));
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return LINK_VERSION + btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
/** What a link shows, or the {example} that "#example=name" names, or {problem} where it is not one; null without a link. */
async function readLink(hash) {
  if (hash.length < 2) return null;
  if (hash.startsWith(EXAMPLE)) return { example: hash.slice(EXAMPLE.length).replace(/%([0-9a-f]{2})/gi, (_, digits) => String.fromCharCode(parseInt(digits, 16))) };
  const damaged = { problem: 'The link is damaged or was cut, so this is an example instead.' };
  if (!hash.startsWith(LINK_VERSION)) return damaged;
  if (hash.length > LONGEST_LINK) return { problem: 'The link is too long to be one of this page, so this is an example instead.' };
  try {
    const bytes = Uint8Array.from(atob(hash.slice(LINK_VERSION.length).replaceAll('-', '+').replaceAll('_', '/')), c => c.charCodeAt(0));
    const given = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(await through(new DecompressionStream('deflate'), bytes, LARGEST_LINKED)));
    if (typeof given?.yaml !== 'string') return damaged;
    const text = value => (typeof value === 'string' ? value : ''), sets = Object.entries(given.sets ?? {}).filter(([, value]) => typeof value === 'string');
    return { yaml: given.yaml, sets: Object.fromEntries(sets), second: text(given.second), backend: text(given.backend) || 'fluid' };
  } catch {
    return damaged;
  }
}
