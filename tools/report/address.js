// The view in the address: what differs from the first view, after #.

/** state: {name: text}; fixed settings are an object within. */
function addressOf(state, first) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) if (name !== 'fixed' && value !== first[name]) words.set(name, value);
  for (const [path, value] of Object.entries(state.fixed)) words.set('fix.' + path, value);
  const text = words.toString();
  return text ? '#' + text : '';
}

/** The state that an address says, of what there is to choose from: {name: [texts]}, null where anything goes. */
function stateOf(address, first, choices) {
  const state = { ...first, fixed: {} };
  for (const [name, value] of new URLSearchParams(address.replace(/^#/, ''))) {
    const known = Object.hasOwn(choices, name), allowed = known && (choices[name] === null || choices[name].includes(value));
    if (allowed && name.startsWith('fix.')) state.fixed[name.slice(4)] = value;
    else if (allowed && Object.hasOwn(first, name)) state[name] = value;
  }
  return state;
}
