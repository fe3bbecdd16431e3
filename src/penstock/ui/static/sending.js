// @ts-check
// A form that is refused stays where it is, with all that was written, and says why. Without this script the next page tells.
const NO_ANSWER = "No answer came: it may have been done, or not. Look, then send it again.";

/** @param {HTMLFormElement} form @param {string} text */
function say(form, text) {
  const told = form.querySelector(":scope > [role=alert]") ?? document.createElement("p");
  told.className = "notice bad";
  told.setAttribute("role", "alert");
  told.textContent = text;
  form.querySelector("label, .row.end")?.closest("form > *")?.before(told);
  const main = document.getElementById("main");
  if (main && !form.popover) main.dataset.still = ""; // a sheet keeps the page as it is while it is open
}

/** @param {HTMLFormElement} form @param {HTMLElement | null} by */
async function send(form, by) {
  const body = new URLSearchParams(/** @type {any} */ (new FormData(form, by)));
  const headers = { "HX-Request": "true", Accept: "text/html" };
  const answer = await fetch(String(form.getAttribute("action")), { method: "POST", headers, body });
  if (answer.redirected) return location.assign(answer.url); // it is done, or somebody was logged out: that page tells
  if (answer.headers.get("content-type")?.startsWith("text/plain")) return say(form, await answer.text());
  if (answer.status >= 500) return say(form, NO_ANSWER);
  delete form.dataset.stays; // who may not do this, or no longer: there is a page that says so
  form.requestSubmit(by);
}

export function sending() {
  document.addEventListener("submit", (event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (form.dataset.stays === undefined) return;
    event.preventDefault();
    if (form.ariaBusy) return; // it is on its way
    form.ariaBusy = "true";
    send(form, event.submitter).catch(() => say(form, NO_ANSWER)).finally(() => { form.ariaBusy = null; });
  });
}
