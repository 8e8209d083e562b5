// What was shown before, for undo and redo across the text and all controls.

const MOST_STATES = 200, TYPING_MS = 800;

class UndoHistory {
  constructor(now = () => performance.now()) {
    Object.assign(this, { now, states: [], at: -1, typed: -Infinity });
  }
  /** Notes a state. Typing without a pause is one state. */
  add(state, isTyped = false) {
    const time = this.now(), goesOn = isTyped && time - this.typed < TYPING_MS && this.at > 0;
    this.typed = isTyped ? time : -Infinity;
    if (this.at >= 0 && JSON.stringify(this.states[this.at]) === JSON.stringify(state)) return;
    this.states.length = goesOn ? this.at : this.at + 1;
    this.states.push(state);
    if (this.states.length > MOST_STATES) this.states.shift();
    this.at = this.states.length - 1;
  }
  canUndo() { return this.at > 0; }
  canRedo() { return this.at + 1 < this.states.length; }
  /** The state before, or after; null without one. */
  undo() { return this.canUndo() ? this.moved(-1) : null; }
  redo() { return this.canRedo() ? this.moved(1) : null; }
  moved(by) {
    this.typed = -Infinity;
    return this.states[(this.at += by)];
  }
}
