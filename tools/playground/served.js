// The page as `stagecraft play` serves it: the text of a file, which is saved when asked, and a file that others change.

const WATCH_MS = 2000;

/** What the file had when it was read or written last. */
let savedText = '', savedHash = '';

function startServed() {
  $('examples').hidden = $('share').hidden = true;
  $('save').hidden = false;
  $('save').addEventListener('click', () => save(savedHash));
  addEventListener('beforeunload', e => hasChanges() && e.preventDefault());
  addEventListener('keydown', e => {
    if ((e.ctrlKey || e.metaKey) && e.key === 's') {
      e.preventDefault();
      save(savedHash);
    }
  });
  readAgain();
  setInterval(watch, WATCH_MS);
}
function hasChanges() { return $('yaml').value !== savedText || Object.keys(shown.sets).length > 0; }
/** Opens what the file has now. */
async function readAgain() {
  const { text, hash } = await engine.send('file', '{}');
  [savedText, savedHash] = [text, hash];
  tell('');
  openScenario(text);
}
/** Writes the file if it still is what `hash` says. */
async function save(hash) {
  const text = $('yaml').value, answer = await engine.send('save', JSON.stringify({ text, hash })).catch(() => ({ error: 'the program that serves this page has ended' }));
  if (answer.changed) return tellChanged();
  if (answer.error) return tell(`Not saved: ${answer.error}.`);
  [savedText, savedHash] = [text, answer.hash];
  tell(Object.keys(shown.sets).length > 0 ? 'Saved, without the options next to the text.' : 'Saved.');
}
async function watch() {
  const { hash } = await engine.send('file', '{"only_hash": true}').catch(() => ({}));
  if (hash === undefined || hash === savedHash) return;
  if (hasChanges()) tellChanged();
  else readAgain();
}
function tellChanged() {
  tell('The file was changed by another program.', [['Read it again', readAgain], ['Save over it', () => save('')]]);
}
function tell(text, choices = []) {
  $('link-problem').replaceChildren(text, ...choices.map(([name, act]) => tryButton(name, act)));
  $('link-problem').hidden = text === '';
}
