// @ts-check
// Completion of a filter: names of fields, then their values.
import { names } from "./names.js";

/** @param {string} text */
async function offers(text) {
  const { fields } = await names();
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
  list.id = `offers-${input.id}`;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Completions");
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id })) input.setAttribute(name, value);
  document.body.append(list);
  /** @type {string[]} */
  let shown = [];
  let at = -1;
  const draw = () => {
    list.hidden = shown.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    input.setAttribute("aria-activedescendant", at >= 0 ? `${list.id}-${at}` : "");
    list.replaceChildren(...shown.map((text, index) => {
      const item = document.createElement("li");
      item.textContent = text;
      item.id = `${list.id}-${index}`;
      item.setAttribute("role", "option");
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
  const look = async () => {
    const text = input.value;
    const found = await offers(text);
    if (text !== input.value || document.activeElement !== input) return; // somebody wrote on, or left
    shown = found;
    at = -1;
    draw();
  };
  draw();
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
      event.preventDefault();
      shown = [];
      draw();
    }
  });
}

export function complete() {
  for (const input of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[data-complete]"))) attach(input);
}
