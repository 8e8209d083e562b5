// A button that copies a text.

function copyButton(text) {
  const button = element('button', 'Copy', { type: 'button' });
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Copy it by hand';
    }
    setTimeout(() => (button.textContent = 'Copy'), 1500);
  });
  return button;
}
