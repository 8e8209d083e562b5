// Light and dark. The page follows the system until its button is pressed; paper is always light.

const THEME = { chosen: null, paper: false, system: matchMedia('(prefers-color-scheme: dark)') };

function isDark() { return !THEME.paper && (THEME.chosen ?? (THEME.system.matches ? 'dark' : 'light')) === 'dark'; }
function applyTheme() {
  document.documentElement.classList.toggle('dark', isDark());
  $('theme').textContent = isDark() ? 'Light' : 'Dark';
  $('theme').setAttribute('aria-label', `Switch to ${isDark() ? 'light' : 'dark'} colors`);
}
/** `changed()` redraws what sets its colors itself; `print()` draws at once, because no frame comes before the paper. */
function listenToTheme(changed, print) {
  $('theme').addEventListener('click', () => {
    THEME.chosen = isDark() ? 'light' : 'dark';
    applyTheme();
    changed();
  });
  THEME.system.addEventListener('change', () => {
    applyTheme();
    changed();
  });
  for (const [event, paper] of [['beforeprint', true], ['afterprint', false]])
    addEventListener(event, () => {
      THEME.paper = paper;
      applyTheme();
      print(paper);
    });
}
applyTheme();
