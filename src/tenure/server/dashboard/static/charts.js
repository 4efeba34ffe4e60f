// Draw the tables that are marked as charts, with a shared crosshair. The table stays on the page,
// for screen readers.
const drawn = new Map();
const SYNC = "tenure";

function read(table) {
  const lines = [...table.tBodies[0].rows];
  const xs = lines.map((row) => Number(row.cells[0].dataset.at));
  const names = [...table.tHead.rows[0].cells].slice(1);
  const ys = names.map((_, n) => lines.map((row) => row.cells[n + 1].dataset.value === "" ? null : Number(row.cells[n + 1].dataset.value)));
  return { data: [xs, ...ys], names: names.map((cell) => ({ label: cell.textContent, colour: cell.dataset.colour })) };
}

// Resolve a color of the style sheet for the canvas.
const probe = document.createElement("i");
function shade(name) {
  if (!probe.isConnected) { probe.hidden = true; document.body.append(probe); }
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
const two = (n) => String(n).padStart(2, "0");
function hour(v) {
  const at = new Date(v * 1000);
  return localStorage.getItem("tenure-zone") === "local" ? `${two(at.getHours())}:${two(at.getMinutes())}` : at.toISOString().slice(11, 16);
}
const seconds = (v) => v == null ? "–" : v < 1 ? `${(v * 1000).toPrecision(3)} ms` : v < 120 ? `${v.toPrecision(3)} s` : `${(v / 60).toPrecision(3)} min`;

// Round the range of the axis to powers of ten.
function decades(_, min, max) {
  const low = 10 ** Math.floor(Math.log10(Math.max(min || 0.001, 0.001)));
  return [low, Math.max(10 ** Math.ceil(Math.log10(Math.max(max || 1, 0.001))), low * 10)];
}

function options(table, names, width) {
  const log = table.dataset.scale === "log";
  const value = table.dataset.unit === "s" ? (_, v) => seconds(v) : (_, v) => v == null ? "–" : v.toLocaleString("en");
  const axis = { stroke: shade("faint"), grid: { stroke: shade("line"), width: 1 }, ticks: { stroke: shade("line"), width: 1 }, font: "11px system-ui" };
  return {
    width, height: 180, legend: { live: true }, cursor: { sync: { key: SYNC }, y: false },
    scales: { y: log ? { distr: 3, range: decades } : { range: (_, _min, max) => [0, Math.max(max || 0, 1) * 1.08] } },
    axes: [{ ...axis, values: (_, all) => all.map(hour) }, { ...axis, size: 62, values: (u, all) => all.map((v) => v == null ? "" : value(u, v)), filter: log ? (_, all) => all.map((v) => Number.isInteger(Math.log10(v).toFixed(6) * 1) ? v : null) : undefined }],
    series: [{ label: "Time", value: (_, v) => v == null ? "–" : hour(v) },
      ...names.map(({ label, colour }, n) => ({
        label, stroke: shade(colour), width: 1.5, points: { show: false }, value, spanGaps: true,
        fill: table.dataset.fill === "yes" && n === 0 ? shade(`${colour}-soft`) : undefined,
      }))],
    hooks: { draw: [(u) => {
      // Hatch the last step: it is not complete yet.
      const from = Number(table.dataset.wholeTo);
      if (!from || from >= u.data[0].at(-1)) return;
      const left = u.valToPos(from, "x", true), right = u.bbox.left + u.bbox.width;
      u.ctx.save();
      u.ctx.strokeStyle = shade("line");
      u.ctx.beginPath();
      u.ctx.rect(left, u.bbox.top, right - left, u.bbox.height);
      u.ctx.clip();
      for (let x = left - u.bbox.height; x < right; x += 8) { u.ctx.moveTo(x, u.bbox.top + u.bbox.height); u.ctx.lineTo(x + u.bbox.height, u.bbox.top); }
      u.ctx.stroke();
      u.ctx.restore();
    }] },
  };
}

function redraw() {
  for (const table of document.querySelectorAll("table[data-chart]")) {
    const place = document.getElementById(`plot-${table.dataset.chart}`);
    if (!place || place.clientWidth === 0) continue;
    const { data, names } = read(table);
    const empty = data.slice(1).every((line) => line.every((v) => v === null || v === 0));
    place.classList.toggle("empty", empty);
    if (empty) { drawn.get(place)?.plot.destroy(); drawn.delete(place); continue; }
    const theme = `${document.documentElement.dataset.theme}${matchMedia("(prefers-color-scheme: dark)").matches}`;
    const key = JSON.stringify([names, place.clientWidth, theme, table.dataset.scale]);
    const before = drawn.get(place);
    if (before?.key === key) { before.plot.setData(data); continue; }
    before?.plot.destroy();
    drawn.set(place, { key, plot: new uPlot(options(table, names, place.clientWidth), data, place) });
  }
}

export const charts = { redraw };
addEventListener("resize", () => redraw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
