// @ts-check
// Keeps the page fresh: one stream per tab says that something changed, the middle of the page is fetched anew and
// merged in. Without the stream the page asks by itself. What is old says so, always.
import { heard, span } from "./times.js";

const STALE_MS = 6000;
const RETRY_MS = 3000;
const ANSWER_MS = 30000; // what takes longer was lost on the way: the next question finds out
const OLD = "As it was: it no longer matches, or newer ones came before it. Reload to see what is there now.";
let last = Date.now(); // when the node was heard, merged or not
let asked = 0;
let busy = false;
let wanted = false;
let source = /** @type {EventSource | null} */ (null);
let lost = /** @type {number | null} */ (null);
let seen = ""; // the ETag of what was merged last

const pace = () => Number(localStorage.getItem("pace") ?? "1");
const chip = () => document.getElementById("live"); // the page of an error has none

const SHEET = "form:popover-open, dialog[open]";
const FIELD = "textarea:focus, main input:focus:not([type=checkbox])";

/** Whoever writes, or has a sheet open, is left alone: he still asks, to know whether the node is there. */
const occupied = () => document.querySelector(`${SHEET}, ${FIELD}`) !== null;

/** Rows are renewed beside every form; any other page waits until nobody writes in it. */
const waits = () => occupied() && document.querySelector("#main [data-keep-rows]") === null;

/** A form that was refused stays as it is, and so does the page of an error. */
const still = () => document.querySelector("#main[data-still]") !== null;

/** @param {string} state @param {string} text */
function say(state, text) {
  const element = chip();
  if (!element) return;
  if (element.dataset.state !== state) element.dataset.state = state;
  const words = element.querySelector("[data-text]");
  if (words && words.textContent !== text) words.textContent = text;
  document.body.classList.toggle("stale", state === "lost");
}

function show() {
  if (pace() === 0 || still()) return say("paused", "paused");
  if (lost !== null) return say("lost", `live updates lost ${span((Date.now() - lost) / 1000)} ago`);
  if (waits()) return say("waits", document.querySelector(SHEET) ? "paused while this is open" : "paused while you type");
  say("live", pace() === 1 ? "live" : `every ${pace()} s`);
}

/** Below the screens stands the node that answered last. @param {string | null} name */
function served(name) {
  const element = document.getElementById("served");
  if (element && name) element.textContent = decodeURIComponent(name);
}

/** @param {() => void} refreshed */
async function refresh(refreshed) {
  if (busy || document.hidden || still()) return;
  busy = true;
  asked = Date.now();
  wanted = false;
  try {
    const headers = { "HX-Request": "true", Accept: "text/html", ...(seen && { "If-None-Match": seen }) };
    const answer = await fetch(location.href, { headers, cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) });
    if (answer.status === 401 || answer.redirected) { // he was logged out, and may log in again
      if (occupied()) throw new Error("logged out"); // once he is done: the login would take what he wrote
      return location.reload();
    }
    // Of a thing that is gone, or may no longer be seen, the page says so; whatever is no page of ours is no news.
    const same = answer.status === 304;
    const page = same || answer.headers.get("content-type")?.startsWith("text/html");
    if (!page || answer.status >= 500) throw new Error(String(answer.status));
    heard(answer.headers.get("date"));
    const html = same ? "" : await answer.text();
    served(answer.headers.get("penstock-served-by"));
    if (!same && waits()) wanted = true;
    else if (!same) {
      merge(html, refreshed);
      seen = answer.headers.get("etag") ?? "";
    }
    last = Date.now();
    lost = null;
  } catch {
    lost ??= last;
  } finally {
    busy = false;
    show();
  }
}

/** @param {string} html @param {() => void} refreshed */
function merge(html, refreshed) {
  const list = document.querySelector("#main [data-keep-rows]");
  if (list) return mergeRows(html, list, refreshed);
  const main = document.getElementById("main");
  // @ts-ignore - the global that htmx's file defines
  htmx.swap({ sourceElement: main, target: main, swap: "outerMorph", text: html }).then(refreshed);
}

/**
 * Rows stay where they are: those on the page get their new words, new ones wait behind a button.
 * @param {string} html @param {Element} list @param {() => void} refreshed
 */
function mergeRows(html, list, refreshed) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  const incoming = new Map([...fresh.querySelectorAll("[data-keep-rows] tr[id]")].map((row) => [row.id, row]));
  let known = 0;
  for (const row of list.querySelectorAll("tr[id]")) {
    const next = incoming.get(row.id);
    // It left the list, and nobody tells what became of it; of what ended well nothing can become any more.
    const old = !next && row.querySelector(".state.succeeded, .state.skipped") === null;
    row.classList.toggle("old", old);
    /** @type {HTMLElement} */ (row).title = old ? OLD : "";
    if (!next) continue;
    known += 1;
    for (let index = 0; index < row.children.length; index += 1) {
      const [old, cell] = [row.children[index], next.children[index]];
      if (cell && !old.classList.contains("pick") && !old.isEqualNode(cell)) old.replaceWith(document.importNode(cell, true));
    }
  }
  for (const part of document.querySelectorAll("#main [data-fresh][id]")) {
    const next = fresh.getElementById(part.id);
    if (next && !part.isEqualNode(next)) part.replaceWith(document.importNode(next, true));
  }
  const count = incoming.size - known;
  const button = document.getElementById("fresh");
  if (button) {
    button.hidden = count === 0;
    button.textContent = `${count}${count >= 50 ? "+" : ""} new – show`;
  }
  refreshed();
}

/** @param {() => void} refreshed */
function listen(refreshed) {
  if (source || document.hidden || still() || pace() === 0 || !("EventSource" in window)) return;
  source = new EventSource("/api/events?topics=lanes,operations,audit,nodes");
  const changed = () => { wanted = true; };
  source.onmessage = changed;
  for (const topic of ["lanes", "operations", "audit", "nodes"]) source.addEventListener(topic, changed);
  source.onerror = () => {
    if (source?.readyState === EventSource.CLOSED) {
      source = null; // no stream here: asking now and then will do
      setTimeout(() => listen(refreshed), 10 * RETRY_MS);
    }
  };
}

function hush() {
  source?.close();
  source = null;
}

/** @param {() => void} refreshed */
export function live(refreshed) {
  const choice = /** @type {HTMLSelectElement | null} */ (document.getElementById("pace"));
  if (choice) {
    choice.value = String(pace());
    choice.addEventListener("change", () => {
      localStorage.setItem("pace", choice.value);
      hush();
      listen(refreshed);
      show();
      void refresh(refreshed);
    });
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return hush();
    listen(refreshed);
    void refresh(refreshed);
  });
  document.addEventListener("click", (event) => {
    if (/** @type {HTMLElement} */ (event.target).id === "fresh") location.reload();
  });
  listen(refreshed);
  show();
  setInterval(() => {
    show();
    const seconds = pace();
    if (seconds === 0) return;
    const since = Date.now() - last;
    // A stream that says nothing means that nothing changed; times and rates still do.
    const quiet = source?.readyState === EventSource.OPEN ? 5 : 2;
    const due = (wanted && !waits() && since >= seconds * 1000) || since >= Math.max(quiet, seconds) * 1000;
    // A tab that was left alone, logged out say, does not ask twice a second all night.
    if (due && (lost === null || Date.now() - asked >= RETRY_MS)) void refresh(refreshed);
    if (since > STALE_MS + seconds * 1000 && !still() && !document.hidden) lost ??= last;
  }, 500);
}
