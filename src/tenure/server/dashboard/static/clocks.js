// Update relative times and lease countdowns, by the clock of the server.
const UNITS = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
let skew = 0;
let local = localStorage.getItem("tenure-zone") === "local";

export function span(seconds) {
  if (seconds < 1) return "0 s";
  if (seconds < 10) return `${seconds.toFixed(0)} s`;
  let whole = Math.floor(seconds);
  const parts = [];
  for (const [size, mark] of UNITS) {
    if (whole >= size || parts.length) { parts.push([Math.floor(whole / size), mark]); whole %= size; }
  }
  return parts.slice(0, 2).filter(([n]) => n).map(([n, mark]) => `${n} ${mark}`).join(" ");
}

const two = (n) => String(n).padStart(2, "0");
function exact(instant) {
  if (!local) return `${instant.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  return `${instant.getFullYear()}-${two(instant.getMonth() + 1)}-${two(instant.getDate())} ${two(instant.getHours())}:${two(instant.getMinutes())}:${two(instant.getSeconds())}`;
}

function now() { return Date.now() + skew; }

function show() {
  const marked = document.querySelector("[data-now]");
  if (marked && marked.dataset.now !== show.last) {
    show.last = marked.dataset.now;
    skew = Date.parse(marked.dataset.now) - Date.now();
  }
  for (const one of document.querySelectorAll("time[data-relative]")) {
    const instant = new Date(one.dateTime);
    const seconds = (now() - instant.getTime()) / 1000;
    const words = seconds >= 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
    if (one.textContent !== words) one.textContent = words;
    one.title = `${instant.toISOString().slice(0, 19).replace("T", " ")} UTC · ${instant.toLocaleString()}`;
  }
  for (const one of document.querySelectorAll("time[data-exact]")) {
    const words = exact(new Date(one.dateTime));
    if (one.textContent !== words) one.textContent = words;
  }
  for (const ring of document.querySelectorAll("[data-lease-until]")) {
    const until = Date.parse(ring.dataset.leaseUntil), whole = Number(ring.dataset.leaseSeconds) * 1000;
    const left = Math.max(0, until - now());
    ring.querySelector(".left")?.setAttribute("stroke-dasharray", `${(100 * left / whole).toFixed(1)} 100`);
    const words = ring.querySelector(".words");
    if (words) words.textContent = left > 0 ? `expires in ${span(left / 1000)}` : "expired, waiting for another worker";
  }
}

export const clocks = {
  show,
  start() {
    const button = document.getElementById("zone");
    if (button) {
      button.hidden = false;
      const label = () => { button.textContent = local ? "Local" : "UTC"; };
      button.addEventListener("click", () => { local = !local; localStorage.setItem("tenure-zone", local ? "local" : "utc"); label(); show(); });
      label();
    }
    show();
    setInterval(() => { if (!document.hidden) show(); }, 1000);
  },
};
