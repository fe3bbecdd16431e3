// @ts-check
// What every page does: stays fresh, tells times in the reader's zone, draws charts, listens to keys.
import { charts } from "./charts.js";
import { complete } from "./complete.js";
import { keys, marked } from "./keys.js";
import { live } from "./live.js";
import { selection } from "./select.js";
import { sending } from "./sending.js";
import { sheets } from "./sheets.js";
import { times } from "./times.js";

document.getElementById("theme")?.addEventListener("click", () => {
  const root = document.documentElement;
  const next = root.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", next);
  root.dataset.theme = next;
  document.dispatchEvent(new Event("penstock:theme"));
});

document.addEventListener("click", async (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (target.closest("[data-close]")) target.closest(".toast")?.remove();
  const copy = target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard?.writeText(copy.parentElement?.querySelector("pre, .json")?.textContent ?? "");
    copy.textContent = "Copied";
  }
});

function refreshed() {
  times();
  charts();
  selection();
  marked();
}

// What can be taken back stays longer: somebody has to read it first.
setTimeout(() => document.querySelector(".toast:not(.bad):not(:has(form))")?.remove(), 6000);
setTimeout(() => document.querySelector(".toast:not(.bad)")?.remove(), 20000);
refreshed();
complete();
keys();
sheets();
sending();
live(refreshed);
