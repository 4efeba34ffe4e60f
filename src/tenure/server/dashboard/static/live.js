// Keep the page up to date. One event stream per tab reports changes. The page then fetches itself
// again and is morphed, so that focus and open forms stay.
const SLOWEST = 30_000;
const state = { source: null, asking: false, again: false, next: 0, failed: 0, timer: 0 };
let after = () => {};

function show(name, text) {
  const shown = document.getElementById("live-state");
  if (!shown || shown.dataset.state === name && shown.lastElementChild.textContent === text) return;
  shown.dataset.state = name;
  shown.lastElementChild.textContent = text;
}

// Do not update a page while it is hidden, rows or text are selected, or a form is open.
function busy() {
  if (document.hidden) return "paused: hidden";
  if (document.querySelector("#live input[data-row]:checked")) return "paused: rows selected";
  if (document.querySelector("#live details.action[open]")) return "paused: form open";
  if (!window.getSelection().isCollapsed) return "paused: text selected";
  return "";
}

function changed() {
  const why = busy();
  if (why) { state.again = true; show("paused", why); return; }
  if (state.asking) { state.again = true; return; }
  const wait = state.next - performance.now();
  if (wait > 0) {
    clearTimeout(state.timer);
    state.timer = setTimeout(changed, wait);
    return;
  }
  refresh();
}

async function refresh() {
  state.asking = true;
  state.again = false;
  const began = performance.now();
  try {
    await htmx.ajax("GET", location.pathname + location.search, { target: "#live", select: "#live", swap: "outerMorph" });
  } finally {
    state.asking = false;
    const took = performance.now() - began;
    // Refresh slow pages less often: at most a fifth of the time goes into loading.
    const pause = Math.min(Math.max(500, took * 4), SLOWEST);
    state.next = performance.now() + pause;
    show("live", pause > 2000 ? `live · ${Math.round(pause / 1000)} s` : "live");
    if (state.again) changed();
  }
}

function listen() {
  state.source?.close();
  state.source = new EventSource(`${document.body.dataset.root}/events`);
  state.source.addEventListener("open", () => { state.failed = 0; show("live", "live"); });
  state.source.addEventListener("changed", changed);
  state.source.addEventListener("error", () => {
    state.failed += 1;
    show("away", "reconnecting");
    if (state.source.readyState === EventSource.CLOSED) setTimeout(listen, Math.min(1000 * state.failed, 10_000));
    // Without a stream, poll.
    if (state.failed > 3) changed();
  });
}

export const live = {
  start(then) {
    if (!document.querySelector("#live[data-live]")) return;
    after = then;
    document.addEventListener("htmx:after:swap", () => {
      // The session is over: show the page to sign in without the bar of the one before.
      if (document.getElementById("sign-in")) location.reload();
      else after();
    });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) { state.source?.close(); show("paused", "paused: hidden"); }
      else { listen(); changed(); }
    });
    // Update when the user is done.
    for (const name of ["change", "toggle", "selectionchange"]) {
      document.addEventListener(name, () => { if (state.again && !busy()) changed(); else { const why = busy(); if (why) show("paused", why); } }, true);
    }
    addEventListener("pagehide", () => state.source?.close());
    listen();
  },
};
