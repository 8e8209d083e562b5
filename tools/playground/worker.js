// The engine in its own thread. The first message brings its parts, or says that they are beside this file; each
// other is a request.
'use strict';

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer());
}
async function loaded(given) {
  if (given) return [await loadStagecraft({ wasmBinary: await unpacked(given.wasm) }), given.library];
  importScripts('stagecraft.js');
  return Promise.all([loadStagecraft(), fetch('library.json').then(response => response.json())]);
}
async function started(given) {
  const [engine, files] = await loaded(given), { FS } = engine;
  FS.writeFile('scenario.yaml', '');
  for (const [path, text] of Object.entries(files)) {
    FS.mkdirTree('/library/' + path.slice(0, path.lastIndexOf('/')));
    FS.writeFile('/library/' + path, text);
    if (/^scenarios\/examples\/.*\.csv$/.test(path)) FS.writeFile(path.slice(path.lastIndexOf('/') + 1), text);  // Examples name files next to them.
  }
  postMessage({ files });
  return engine;
}

/** A request and its answer are JSON text in the memory of the engine. */
function ask(engine, request) {
  const text = JSON.stringify(request), size = engine.lengthBytesUTF8(text) + 1, at = engine._malloc(size);
  engine.stringToUTF8(text, at, size);
  const answer = engine.UTF8ToString(engine._stagecraft_answer(at));
  engine._free(at);
  return JSON.parse(answer);
}

let engine = null;
onmessage = async ({ data }) => {
  if ('given' in data) {
    engine = started(data.given);
    return engine.catch(e => setTimeout(() => { throw e; }));  // The page hears of errors, not of promises.
  }
  try {
    postMessage({ answer: ask(await engine, data.request) });
  } catch (e) {
    postMessage({ answer: { error: 'broken', text: `The engine could not do it and was started again: ${e.message ?? e}`, problems: [], runs: [] } });
  }
};
