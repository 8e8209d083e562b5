// The engine behind the page: WebAssembly in a worker, or the program that serves the page. It answers one request at a
// time, and one that takes too long is ended.

const LIMIT_MS = 20_000, PATIENCE_MS = 1500;

/** An answer in place of one that does not come. */
function noAnswer(text) { return { error: 'ended', text, problems: [], runs: [] }; }
function tooLong() { return noAnswer(`Stopped after ${LIMIT_MS / 1000} s, and the engine was started again. Planners and schedules that search may take much longer: run them with the program, or choose another.`); }

/** The module in a worker, which is ended and started again where it does not answer. */
class WorkerEngine {
  constructor(given) {
    this.given = given;
    this.start();
  }
  start() {
    let isReady;
    this.ready = new Promise(done => (isReady = done));
    this.failure = '';
    this.worker = new Worker(this.given.worker);
    this.worker.onmessage = ({ data: { files, answer } }) => {
      if (files) isReady(files);
      else if (answer.error === 'broken') this.restart(answer);
      else this.finish(answer);
    };
    this.worker.onerror = event => {
      event.preventDefault();
      this.failure = `The engine cannot be loaded: ${event.message ?? 'this browser does not start workers'}.`;
      isReady({});
    };
    this.worker.postMessage({ given: this.given.parts });
  }
  restart(answer) {
    this.worker.terminate();
    this.start();
    this.finish(answer);
  }
  finish(answer) {
    clearTimeout(this.timer);
    this.done?.(answer);
    this.done = null;
  }
  async ask(request, limit = LIMIT_MS) {
    await this.ready;
    if (this.failure) return noAnswer(this.failure);
    return new Promise(done => {
      this.done = done;
      this.timer = setTimeout(() => this.restart(tooLong()), limit);
      this.worker.postMessage({ request });
    });
  }
  /** Ends what it does now; its answer is of no interest. */
  cancel() {
    if (this.done) this.restart(noAnswer(''));
  }
  close() { this.worker.terminate(); }
}

/** The program that serves the page: each request has its own process there, which ends with it. */
class ServedEngine {
  constructor(given) {
    this.given = given;
    this.ready = Promise.resolve({});
  }
  async send(path, body, signal) {
    const response = await fetch(`${path}?token=${this.given.token}`, { method: 'POST', body, signal });
    return response.json();
  }
  async ask(request, limit = LIMIT_MS) {
    this.abort = new AbortController();
    const timer = setTimeout(() => this.abort.abort(tooLong()), limit), { signal } = this.abort;
    try {
      return await this.send('answer', JSON.stringify(request), signal);
    } catch {
      return signal.reason?.error ? signal.reason : noAnswer('The program that serves this page does not answer: it was ended, or this machine is busy. Start stagecraft play again.');
    } finally {
      clearTimeout(timer);
    }
  }
  cancel() { this.abort?.abort(noAnswer('')); }
  close() { this.cancel(); }
}

function openEngine(given) { return given.token ? new ServedEngine(given) : new WorkerEngine(given); }

/** The newest request counts: one that waits gives way to the next, and one that is under way for long is ended for it. */
class NewestFirst {
  constructor(engine) {
    Object.assign(this, { engine, next: null, since: 0, busy: false });
  }
  /** Calls take(answer) unless a newer request comes before the answer. */
  ask(request, take) {
    this.next = { request, take };
    if (!this.busy) this.run();
    else if (performance.now() - this.since > PATIENCE_MS) this.engine.cancel();
  }
  async run() {
    this.busy = true;
    while (this.next) {
      const { request, take } = this.next;
      this.next = null;
      this.since = performance.now();
      const answer = await this.engine.ask(request), ms = performance.now() - this.since;
      if (!this.next) take(answer, ms);
    }
    this.busy = false;
  }
}
