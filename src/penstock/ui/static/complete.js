// @ts-check
// Completion of a filter: names of fields, then their values.
/** @type {{fields: Record<string, string[]>} | null} */
let words = null;

async function known() {
  if (words === null) {
    const answer = await fetch("/ui/names").catch(() => null);
    words = answer?.ok ? await answer.json() : { fields: {} };
  }
  return /** @type {{fields: Record<string, string[]>}} */ (words).fields;
}

/** @param {string} text */
async function offers(text) {
  const fields = await known();
  const word = text.slice(text.lastIndexOf(" ") + 1);
  const colon = word.indexOf(":");
  if (colon < 0) return Object.keys(fields).filter((name) => word && name.startsWith(word)).slice(0, 10);
  const [name, begun] = [`${word.slice(0, colon)}:`, word.slice(colon + 1).toLowerCase()];
  return (fields[name] ?? []).filter((value) => value.toLowerCase().includes(begun) && value !== begun).slice(0, 10).map((value) => name + value);
}

/** @param {HTMLInputElement} input */
function attach(input) {
  const list = document.createElement("ul");
  list.className = "suggest";
  list.hidden = true;
  list.setAttribute("hx-morph-skip", "");
  document.body.append(list);
  /** @type {string[]} */
  let shown = [];
  let at = -1;
  const draw = () => {
    list.hidden = shown.length === 0;
    list.replaceChildren(...shown.map((text, index) => {
      const item = document.createElement("li");
      item.textContent = text;
      item.setAttribute("aria-selected", String(index === at));
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(index); });
      return item;
    }));
    const place = input.getBoundingClientRect();
    list.style.left = `${place.left + window.scrollX}px`;
    list.style.top = `${place.bottom + window.scrollY + 4}px`;
  };
  /** @param {number} index */
  const take = (index) => {
    const start = input.value.lastIndexOf(" ") + 1;
    const text = shown[index];
    input.value = input.value.slice(0, start) + text + (text.endsWith(":") ? "" : " ");
    void look();
  };
  const look = async () => { shown = await offers(input.value); at = -1; draw(); };
  input.addEventListener("input", look);
  input.addEventListener("blur", () => { shown = []; draw(); });
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      at = (at + step + shown.length) % shown.length;
      draw();
    } else if (event.key === "Tab" || (event.key === "Enter" && at >= 0)) {
      event.preventDefault();
      take(Math.max(0, at));
    } else if (event.key === "Escape") {
      shown = [];
      draw();
    }
  });
}

export function complete() {
  for (const input of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[data-complete]"))) attach(input);
}
