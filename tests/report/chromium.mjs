// A browser for tests, spoken to over a pipe in the DevTools protocol, so that no package is needed.
import { spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The browser of this machine; without one, the test says so and ends. */
export function chromiumHere() {
  const runs = file => { try { accessSync(file, constants.X_OK); return true; } catch { return false; } };
  const found = process.env.STAGECRAFT_CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(runs);
  if (found) return found;
  console.log('SKIPPED: no Chromium; apt install chromium, or name one in STAGECRAFT_CHROMIUM');
  process.exit(77);
}

export class Chromium {
  static async start(binary, { width = 1280, height = 900 } = {}) {
    const browser = new Chromium(binary, width, height);
    const { targetId } = await browser.send('Target.createTarget', { url: 'about:blank' });
    browser.session = (await browser.send('Target.attachToTarget', { targetId, flatten: true })).sessionId;
    for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await browser.send(`${domain}.enable`);
    return browser;
  }

  constructor(binary, width, height) {
    this.folder = mkdtempSync(join(tmpdir(), 'chromium-'));
    this.child = spawn(binary, ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
      '--disable-background-networking', '--disable-component-update', `--user-data-dir=${this.folder}`, `--window-size=${width},${height}`,
      '--remote-debugging-pipe'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    this.waiting = new Map();
    this.events = [];
    this.last = 0;
    let text = '';
    this.child.stdio[4].on('data', chunk => {
      const messages = (text += chunk).split('\0');
      text = messages.pop();
      messages.forEach(m => this.receive(JSON.parse(m)));
    });
  }

  receive(message) {
    if (message.id === undefined) return this.events.push(message);
    const { resolve, reject } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) reject(new Error(message.error.message));
    else resolve(message.result);
  }

  send(method, params = {}) {
    const message = { id: ++this.last, method, params };
    if (this.session) message.sessionId = this.session;
    this.child.stdio[3].write(JSON.stringify(message) + '\0');
    return new Promise((resolve, reject) => this.waiting.set(message.id, { resolve, reject }));
  }

  async open(file) {
    this.events = [];
    await this.send('Page.navigate', { url: 'file://' + file });
    while (!this.events.some(e => e.method === 'Page.loadEventFired')) await new Promise(done => setTimeout(done, 20));
    await this.frame();
  }

  /** The value of an expression on the page. */
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
  frame() { return this.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))'); }

  async key(key) {
    const text = key.length === 1 ? { text: key } : key === 'Enter' ? { text: '\r' } : {};
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', key, ...text });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', key });
    await this.frame();
  }
  async mouse(type, x, y, more = {}) {
    await this.send('Input.dispatchMouseEvent', { type, x, y, ...more });
    await this.frame();
  }

  /** Everything that a page which needs nothing else never does: requests, errors, messages of the console. */
  complaints() {
    return this.events.flatMap(({ method, params }) => {
      if (method === 'Network.requestWillBeSent' && !params.request.url.startsWith('file:')) return [`asks for ${params.request.url}`];
      if (method === 'Runtime.exceptionThrown') return [params.exceptionDetails.exception?.description ?? params.exceptionDetails.text];
      if (method === 'Runtime.consoleAPICalled' || method === 'Log.entryAdded') return [JSON.stringify(params)];
      return [];
    });
  }

  async screenshot() { return Buffer.from((await this.send('Page.captureScreenshot', { format: 'png' })).data, 'base64'); }

  async stop() {
    const ended = new Promise(done => this.child.once('exit', done));
    this.session = undefined;
    this.send('Browser.close').catch(() => {});
    await ended;
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
