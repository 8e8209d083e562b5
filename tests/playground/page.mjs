// The playground in a browser, for tests: what a user does, and until the page has its answer.
import assert from 'node:assert/strict';

export class Page {
  constructor(browser, address) { Object.assign(this, { browser, address }); }

  /** Opens the page, and waits for its first picture and its diagnosis. */
  async open(hash = '') {
    await this.browser.send('Page.navigate', { url: 'about:blank' });
    this.browser.events = [];
    await this.browser.send('Page.navigate', { url: this.address + hash });
    await this.until('window.playground?.times.length > 0', 60_000);
    await this.diagnosed();
  }
  /** Waits until an expression is true; a limit of time that only a hang reaches ends the test. */
  async until(expression, limit = 30_000) {
    for (const end = Date.now() + limit * Number(process.env.STAGECRAFT_TEST_PATIENCE ?? 1); Date.now() < end; await new Promise(done => setTimeout(done, 20)))
      if (await this.browser.evaluate(expression).catch(() => false)) return;
    assert.fail(`never: ${expression}\n${this.browser.complaints().slice(0, 3).join('\n')}`);
  }
  /** Does something, and waits for the answer to what that changed, which is a picture or, where it `fails`, not. */
  async changed(act, fails = false) {
    const count = await this.browser.evaluate('playground.times.length');
    await act();
    await this.until(`playground.times.length > ${count}`);
    const failed = await this.browser.evaluate('playground.times.at(-1).failed ?? ""');
    assert.equal(failed !== '', fails, failed);
  }
  diagnosed() { return this.until('playground.isSettled()'); }
  text(id) { return this.browser.evaluate(`document.getElementById('${id}').innerText`); }
  /** Moves a control. */
  set(name, value) {
    return this.changed(() => this.browser.evaluate(`(() => { const c = document.getElementById('set-${name}'); c.value = ${JSON.stringify(String(value))}; c.dispatchEvent(new Event('input')); })()`));
  }
  type(text, fails = false) {
    return this.changed(() => this.browser.evaluate(`(() => { const y = document.getElementById('yaml'); y.value = ${JSON.stringify(text)}; y.dispatchEvent(new Event('input')); })()`), fails);
  }
  /** Presses the first button with this text. */
  async press(selector, text) {
    const pressed = await this.browser.evaluate(`(() => { const b = [...document.querySelectorAll('${selector}')].find(b => ${text}.test(b.textContent)); b?.click(); return Boolean(b); })()`);
    assert.ok(pressed, `no button ${selector} with ${text}`);
  }
  /** Whether the timeline has the colors of forward, backward, idle, text and background at least. */
  isDrawn() {
    return this.browser.evaluate(`(() => {
      const view = document.getElementById('view');
      return new Set(new Uint32Array(view.getContext('2d').getImageData(0, 0, view.width, view.height).data.buffer)).size > 5;
    })()`);
  }
}
