// @ts-check
// Times: how long ago, ticking; and exact ones in UTC or in the reader's own zone.
const local = () => localStorage.getItem("zone") === "local";
let started = false;
// Server and browser may disagree on what time it is: the server's word counts.
let offset = 0;

/** @param {number} seconds */
export function span(seconds) {
  const s = Math.abs(seconds);
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 10) return `${Math.round(s * 10) / 10} s`;
  if (s < 60) return `${Math.round(s)} s`;
  if (s >= 86400 * 1.5) return `${Math.round(s / 86400)} d`;
  if (s >= 3600 * 1.5) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 60)} min`;
}

/** @param {string | null} date */
export function heard(date) {
  if (date) offset = Date.parse(date) - Date.now();
  if (Math.abs(offset) < 2000) offset = 0; // the header has no more than seconds
}

/** @param {number} n */
const two = (n) => String(n).padStart(2, "0");

/** @param {Date} d */
function clock(d) {
  if (!local()) return d.toISOString().slice(0, 19).replace("T", " ");
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** @param {Element} element @param {string} text */
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function tell() {
  const now = Date.now() + offset;
  for (const element of document.querySelectorAll("time[data-ago]")) {
    const seconds = (Date.parse(element.getAttribute("datetime") || "") - now) / 1000;
    const over = seconds < 1 && element.hasAttribute("data-ends"); // what has ended is gone with the next refresh
    const text = over || Math.abs(seconds) < 1 ? "now" : seconds > 0 ? `in ${span(seconds)}` : `${span(seconds)} ago`;
    put(element, text);
  }
  for (const element of document.querySelectorAll("time[data-clock]")) {
    put(element, clock(new Date(element.getAttribute("datetime") || "")));
  }
  for (const element of document.querySelectorAll("time[data-short]")) {
    put(element, clock(new Date(element.getAttribute("datetime") || "")).slice(11));
  }
  const zone = document.getElementById("zone");
  if (zone) put(zone, local() ? "local" : "UTC");
}

export function times() {
  tell();
  if (started) return;
  started = true;
  setInterval(tell, 1000);
  document.getElementById("zone")?.addEventListener("click", () => {
    localStorage.setItem("zone", local() ? "utc" : "local");
    tell();
    document.dispatchEvent(new Event("penstock:theme"));
  });
}
