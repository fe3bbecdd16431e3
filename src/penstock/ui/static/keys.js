// @ts-check
// Keys: / finds, g and a letter goes, j and k walk rows, Ctrl-K goes anywhere, ? tells.
import { names } from "./names.js";

const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/i;
const ACTIONS = [
  { text: "New job", hint: "action", href: "/jobs/new", scope: "enqueue" },
  { text: "New lane", hint: "action", href: "/new-lane", scope: "admin" },
];
const PAUSE_MS = 150; // whoever writes on is not done
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g; // those of rendering.py, which pages spell out
let went = 0;
let walked = "";

/** @param {Element | null} element */
const typing = (element) => element?.matches("input:not([type=checkbox]), textarea, select, [contenteditable]") ?? false;

/** The text with what would rearrange it spelled out, as pages do. @param {string} text */
const spelled = (text) => text.replace(TURNS, (turn) => `\\u${turn.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** The row that has the focus, or else the one that was walked to: a page that is merged anew forgets marks. */
const current = () => document.activeElement?.closest("main [data-row]") ?? document.getElementById(walked);

/** Mark the row that somebody walked to, again after the page was refreshed. */
export function marked() {
  for (const row of document.querySelectorAll("main [data-row].at")) row.classList.remove("at");
  if (walked) document.getElementById(walked)?.classList.add("at");
}

/** @param {number} step */
function walk(step) {
  const rows = [...document.querySelectorAll("main [data-row]")];
  const from = current();
  const next = rows[Math.max(0, Math.min(rows.length - 1, (from ? rows.indexOf(from) : -1) + step))];
  if (!next) return;
  walked = next.id;
  marked();
  /** @type {HTMLElement | null} */ (next.querySelector("a, button"))?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function pick() {
  /** @type {HTMLInputElement | null | undefined} */ (current()?.querySelector("input[data-pick]"))?.click();
}

function places() {
  const scopes = document.getElementById("palette")?.dataset.may?.split(" ") ?? [];
  const screens = [.../** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("nav a[data-go]"))];
  return [
    ...screens.map((a) => ({ text: a.textContent?.trim() ?? "", hint: "screen", href: a.href })),
    ...ACTIONS.filter((action) => scopes.includes(action.scope)),
  ];
}

/** @typedef {{text: string, hint: string, href: string}} Place */

/** @param {string} text @returns {Promise<Place[]>} */
async function found(text) {
  const word = text.trim().toLowerCase();
  if (ULID.test(word)) return [{ text: word.toUpperCase(), hint: "job", href: `/jobs/${word.toUpperCase()}` }];
  const all = [...places(), ...(await names()).lanes.map((name) => ({ text: name, hint: "lane", href: `/lanes/${encodeURIComponent(name)}` }))];
  const at = (/** @type {Place} */ place) => place.text.toLowerCase().indexOf(word);
  // What begins with the word is meant, rather than what has it somewhere: "or" is orders, not History.
  const some = all.filter((place) => at(place) >= 0).sort((one, other) => Math.min(at(one), 1) - Math.min(at(other), 1)).slice(0, 12);
  if (word) some.push({ text: `Group: ${text.trim()}`, hint: "group", href: `/groups?group=${encodeURIComponent(text.trim())}` });
  if (word) some.push({ text: `Jobs: ${text.trim()}`, hint: "find", href: `/jobs?q=${encodeURIComponent(text.trim())}` });
  return some;
}

/** The groups whose names begin like that. @param {string} text @returns {Promise<Place[]>} */
async function groups(text) {
  const begin = text.trim();
  if (begin.length < 2 || ULID.test(begin)) return [];
  const answer = await fetch(`/ui/groups?${new URLSearchParams({ begin })}`).catch(() => null);
  /** @type {{lane: string, group: string}[]} */
  const some = answer?.ok ? (await answer.json()).groups : [];
  return some.map(({ lane, group }) => ({
    text: group, hint: `group of ${lane}`, href: `/groups?${new URLSearchParams({ lane, group })}`,
  }));
}

function palette() {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("palette"));
  const input = /** @type {HTMLInputElement} */ (document.getElementById("goto"));
  const list = /** @type {HTMLElement} */ (document.getElementById("places"));
  /** @type {Place[]} */
  let shown = [];
  let at = 0;
  let asks = 0;
  const draw = () => {
    list.replaceChildren(...shown.map((place, index) => {
      const item = document.createElement("li");
      item.setAttribute("role", "option");
      item.id = `place-${index}`;
      item.setAttribute("aria-selected", String(index === at));
      const name = document.createElement("span");
      name.className = "name";
      name.title = name.textContent = spelled(place.text);
      const hint = document.createElement("span");
      hint.className = "faint";
      hint.textContent = place.hint;
      item.append(name, hint);
      item.addEventListener("click", () => { location.href = place.href; });
      return item;
    }));
    input.setAttribute("aria-activedescendant", shown.length ? `place-${at}` : "");
  };
  const look = async () => {
    const text = input.value;
    const some = await found(text);
    if (text !== input.value) return; // somebody wrote on
    shown = some;
    at = 0;
    draw();
    clearTimeout(asks);
    asks = setTimeout(() => void more(text), PAUSE_MS);
  };
  /** Add what the store has to be asked for, before what is always offered; what is chosen stays chosen. @param {string} text */
  const more = async (text) => {
    const some = await groups(text);
    if (text !== input.value || !some.length) return;
    const chosen = shown[at];
    const last = shown.findIndex((place) => place.hint === "group");
    shown = [...shown.slice(0, last), ...some, ...shown.slice(last)];
    at = at && chosen ? shown.indexOf(chosen) : 0;
    draw();
  };
  let looked = Promise.resolve();
  input.addEventListener("input", () => { looked = look(); });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length) {
      event.preventDefault();
      at = (at + step + shown.length) % shown.length;
      draw();
    } else if (event.key === "Enter") {
      event.preventDefault();
      void looked.then(() => { if (shown[at]) location.href = shown[at].href; }); // what was written last counts
    }
  });
  return () => { input.value = ""; dialog.showModal(); looked = look(); };
}

export function keys() {
  const open = palette();
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return open();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(document.activeElement)) return;
    if (document.querySelector("dialog[open], form:popover-open")) return;
    if (Date.now() - went < 1200) {
      went = 0;
      const link = /** @type {HTMLAnchorElement | null} */ (document.querySelector(`nav a[data-go="${CSS.escape(event.key)}"]`));
      if (link) { event.preventDefault(); location.href = link.href; }
      return;
    }
    if (event.key === "g") went = Date.now();
    else if (event.key === "j") walk(1);
    else if (event.key === "k") walk(-1);
    else if (event.key === "x") pick();
    else if (event.key === "?") /** @type {HTMLElement} */ (document.getElementById("help")).showPopover();
    else if (event.key === "/") {
      event.preventDefault();
      const field = /** @type {HTMLInputElement} */ (document.getElementById("q") ?? document.getElementById("find"));
      field.focus();
      field.select();
    }
  });
}
