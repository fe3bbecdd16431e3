// @ts-check
// A sheet, or the menu of a phone, lies over the page: Tab stays within it until it is closed. Esc closes it, which the browser does.
const STOPS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";

export function sheets() {
  /** @type {HTMLElement | null} */ (document.querySelector("form[popover][data-open]"))?.showPopover(); // it was refused
  document.addEventListener("keydown", (event) => {
    const sheet = event.key === "Tab" ? document.querySelector("[popover]:popover-open") : null;
    if (!sheet) return;
    const stops = [.../** @type {NodeListOf<HTMLElement>} */ (sheet.querySelectorAll(STOPS))].filter((stop) => stop.checkVisibility());
    const [first, last] = [stops[0], stops[stops.length - 1]];
    const within = sheet.contains(document.activeElement);
    if (within && document.activeElement !== (event.shiftKey ? first : last)) return;
    event.preventDefault();
    (event.shiftKey ? last : first)?.focus();
  });
}
