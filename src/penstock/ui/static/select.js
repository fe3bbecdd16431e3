// @ts-check
// Selecting rows: the boxes of a table, the bar that counts them and acts on them.
let ready = false;

function count() {
  const bar = document.getElementById("bulk");
  if (!bar) return;
  const boxes = [.../** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[data-pick]"))];
  const picked = boxes.filter((box) => box.checked);
  for (const box of boxes) box.closest("tr")?.setAttribute("aria-selected", String(box.checked));
  bar.hidden = picked.length === 0;
  const all = /** @type {HTMLInputElement | null} */ (document.getElementById("pick-all"));
  if (all) all.checked = boxes.length > 0 && picked.length === boxes.length;
  const words = bar.querySelector("[data-count]");
  if (words) words.textContent = String(picked.length);
  for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[data-ids]"))) {
    field.value = picked.map((box) => box.value).join(",");
  }
}

export function selection() {
  count();
  if (ready) return;
  ready = true;
  document.addEventListener("change", (event) => {
    const target = /** @type {HTMLInputElement} */ (event.target);
    if (target.id === "pick-all") {
      for (const box of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[data-pick]"))) box.checked = target.checked;
    }
    if (target.id === "pick-all" || target.matches("[data-pick]")) count();
  });
}
