// @ts-check
// Keys: / finds, g and a letter goes, j and k walk rows, Ctrl-K goes anywhere, ? tells.
const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/i;
const ACTIONS = [
  { text: "New job", hint: "action", href: "/jobs/new", scope: "enqueue" },
  { text: "New lane", hint: "action", href: "/lanes/new", scope: "admin" },
];
let went = 0;

/** @param {Element | null} element */
const typing = (element) => element?.matches("input:not([type=checkbox]), textarea, select, [contenteditable]") ?? false;

/** @param {number} step */
function walk(step) {
  const rows = [...document.querySelectorAll("main [data-row]")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("at"));
  const next = rows[Math.max(0, Math.min(rows.length - 1, at + step))];
  rows[at]?.classList.remove("at");
  next.classList.add("at");
  /** @type {HTMLElement | null} */ (next.querySelector("a"))?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function pick() {
  const box = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-row].at input[data-pick]"));
  box?.click();
}

function places() {
  const scopes = document.getElementById("palette")?.dataset.may?.split(" ") ?? [];
  const screens = [.../** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("nav a[data-go]"))];
  return [
    ...screens.map((a) => ({ text: a.textContent?.trim() ?? "", hint: "screen", href: a.href })),
    ...ACTIONS.filter((action) => scopes.includes(action.scope)),
  ];
}

/** @type {string[] | null} */
let lanes = null;

async function known() {
  if (lanes === null) {
    lanes = [];
    const answer = await fetch("/ui/names").catch(() => null);
    if (answer?.ok) lanes = (await answer.json()).lanes;
  }
  return lanes ?? [];
}

/** @param {string} text */
async function found(text) {
  const word = text.trim().toLowerCase();
  if (ULID.test(word)) return [{ text: word.toUpperCase(), hint: "job", href: `/jobs/${word.toUpperCase()}` }];
  const all = [...places(), ...(await known()).map((name) => ({ text: name, hint: "lane", href: `/lanes/${encodeURIComponent(name)}` }))];
  const some = all.filter((place) => place.text.toLowerCase().includes(word)).slice(0, 12);
  if (word) some.push({ text: `Jobs: ${text.trim()}`, hint: "find", href: `/jobs?q=${encodeURIComponent(text.trim())}` });
  return some;
}

function palette() {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("palette"));
  const input = /** @type {HTMLInputElement} */ (document.getElementById("goto"));
  const list = /** @type {HTMLElement} */ (document.getElementById("places"));
  /** @type {{text: string, hint: string, href: string}[]} */
  let shown = [];
  let at = 0;
  const draw = () => {
    list.replaceChildren(...shown.map((place, index) => {
      const item = document.createElement("li");
      item.setAttribute("role", "option");
      item.id = `place-${index}`;
      item.setAttribute("aria-selected", String(index === at));
      const hint = document.createElement("span");
      hint.className = "faint";
      hint.textContent = place.hint;
      item.append(place.text, hint);
      item.addEventListener("click", () => { location.href = place.href; });
      return item;
    }));
    input.setAttribute("aria-activedescendant", shown.length ? `place-${at}` : "");
  };
  const look = async () => { shown = await found(input.value); at = 0; draw(); };
  input.addEventListener("input", look);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length) {
      event.preventDefault();
      at = (at + step + shown.length) % shown.length;
      draw();
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (shown[at]) location.href = shown[at].href;
    }
  });
  return () => { input.value = ""; dialog.showModal(); void look(); };
}

export function keys() {
  const open = palette();
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return open();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(document.activeElement)) return;
    if (document.querySelector("dialog[open]")) return;
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
