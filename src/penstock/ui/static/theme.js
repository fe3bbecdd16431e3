// Runs before anything is drawn: the theme somebody chose, else the system's.
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const set = () => { root.dataset.theme = localStorage.getItem("theme") || (dark.matches ? "dark" : "light"); };
  set();
  dark.addEventListener("change", set);
})();
