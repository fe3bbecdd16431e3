// @ts-check
// Charts of the last hour, by uPlot; the numbers are in the element's data-plot and change with it.
/** @type {Map<Element, {plot: any, data: string, theme: string, width: number}>} */
const drawn = new Map();
const HEIGHT = 165;

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** @param {string} unit @param {number | null} value */
function value(unit, value) {
  if (value === null || value === undefined) return "";
  if (unit === "ms") return value < 1000 ? `${Math.round(value * 10) / 10} ms` : `${Math.round(value / 100) / 10} s`;
  return `${value.toLocaleString("en-US", { maximumFractionDigits: 1 })}${unit}`;
}

/** @param {Date} at @param {boolean} local */
function clock(at, local) {
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":") + (local ? "" : " UTC");
}

/** Values with none on either side: no line goes through them, so each is drawn as a point.
 * @param {any} plot @param {number} series */
function alone(plot, series) {
  const values = plot.data[series];
  const none = (/** @type {number} */ at) => values[at] === null || values[at] === undefined;
  return values.flatMap((/** @type {number | null} */ _, /** @type {number} */ at) => !none(at) && none(at - 1) && none(at + 1) ? [at] : []);
}

/** @param {any} spec @param {number} width */
function options(spec, width) {
  const kinds = { rate: ["--s-pending", "--s-dead"], lag: ["--s-pending", "--s-held"], depth: ["--s-claimed"] };
  const colours = kinds[/** @type {"rate" | "lag" | "depth"} */ (spec.kind)];
  const axis = {
    stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false },
    font: "11px system-ui, sans-serif", size: 46,
  };
  const local = localStorage.getItem("zone") === "local";
  // @ts-ignore - the global that uPlot's file defines
  const tz = (/** @type {number} */ at) => local ? new Date(at * 1000) : uPlot.tzDate(new Date(at * 1000), "Etc/UTC");
  return {
    width, height: HEIGHT, tzDate: tz, padding: [8, 24, 0, 0],
    cursor: { points: { size: 6 }, y: false },
    legend: { live: true },
    scales: { x: { time: true }, y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ max) => [0, Math.max(max || 0, spec.unit === "ms" ? 10 : 1) * 1.1] } },
    axes: [
      { ...axis, size: 28, space: 70, values: [[3600, "{HH}:{mm}", null, null, null, null, null, null, 1], [60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] },
      { ...axis, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map((tick) => value(spec.unit, tick)) },
    ],
    series: [
      { value: (/** @type {any} */ _, /** @type {number | null} */ at) => at === null || at === undefined ? "" : clock(tz(at), local), label: "" },
      ...spec.names.map((/** @type {string} */ name, /** @type {number} */ index) => ({
        label: name, stroke: colour(colours[index]), width: 1.5, points: { show: false, filter: alone, size: 4, fill: colour(colours[index]) },
        fill: index === 0 && spec.kind !== "lag" ? `${colour(colours[0])}22` : undefined,
        value: (/** @type {any} */ _, /** @type {number | null} */ v) => value(spec.unit, v),
      })),
    ],
  };
}

export function charts() {
  const theme = `${document.documentElement.dataset.theme} ${localStorage.getItem("zone")}`;
  for (const [element, state] of drawn) {
    if (!element.isConnected) {
      state.plot.destroy();
      drawn.delete(element);
    }
  }
  for (const element of document.querySelectorAll("[data-plot]")) {
    const data = element.getAttribute("data-plot") || "";
    const state = drawn.get(element);
    const width = element.clientWidth;
    if (!width) continue;
    if (state && state.theme === theme && state.width === width) {
      if (state.data !== data) state.plot.setData(JSON.parse(data).columns);
      state.data = data;
      continue;
    }
    state?.plot.destroy();
    const spec = JSON.parse(data);
    // @ts-ignore - the global that uPlot's file defines
    const plot = new uPlot(options(spec, width), spec.columns, element);
    drawn.set(element, { plot, data, theme, width });
  }
}

document.addEventListener("penstock:theme", charts);
window.addEventListener("resize", charts);
