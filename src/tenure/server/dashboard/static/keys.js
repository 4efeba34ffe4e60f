// Keyboard shortcuts: `g` and a letter open a page, `/` searches, j and k move between rows, and
// x, r and p act on a row.
let going = -Infinity;

function rows() { return [...document.querySelectorAll("#live [data-row-link]")]; }

function step(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement);
  all[Math.min(Math.max(at + by, 0), all.length - 1)].focus();
}

function action(name) {
  const near = document.activeElement?.closest("[data-entry]") ?? document;
  const at = `[data-action="${name}"] :is(summary, a, button)`;
  const control = near.querySelector(at) ?? document.querySelector(`#live ${at}`);
  if (!control) return false;
  control.click();
  if (control.matches("summary")) control.parentElement.querySelector("form input:not([type=hidden]), form button")?.focus();
  return true;
}

const ACTS = {
  "/": () => { document.querySelector("#live input[name=filter], .search input")?.focus(); return true; },
  "?": () => { document.getElementById("keys")?.showModal(); return true; },
  j: () => { step(1); return true; },
  k: () => { step(-1); return true; },
  x: () => { const box = document.activeElement?.closest("[data-entry]")?.querySelector("input[data-row]"); box?.click(); return Boolean(box); },
  r: () => action("retry"),
  p: () => action("pause"),
};

export const keys = {
  start() {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("input, textarea, select, dialog")) {
        if (event.key === "Escape") event.target.blur();
        return;
      }
      if (performance.now() - going < 1200) {
        going = -Infinity;
        const place = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
        if (place) { event.preventDefault(); place.click(); return; }
      }
      if (event.key === "g") { going = performance.now(); return; }
      if (ACTS[event.key]?.()) event.preventDefault();
    });
  },
};
