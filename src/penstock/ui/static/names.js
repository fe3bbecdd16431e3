// @ts-check
// What can be named: lanes, and the fields of a filter with their values. Asked for once, when somebody writes.
/** @typedef {{lanes: string[], fields: Record<string, string[]>}} Names */
/** @type {Promise<Names> | null} */
let asked = null;

/** @returns {Promise<Names>} */
async function ask() {
  const answer = await fetch("/ui/names").catch(() => null);
  if (answer?.ok) return answer.json();
  asked = null; // the next key asks again
  return { lanes: [], fields: {} };
}

export function names() {
  asked ??= ask();
  return asked;
}
