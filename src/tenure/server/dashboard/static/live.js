// Keeps the page as the server would show it now: news come by one event stream per tab, and the
// page asks for itself again and is morphed, so that focus and what is open stay.
const SLOWEST = 30_000;
const state = { source: null, asking: false, again: false, next: 0, failed: 0, timer: 0 };
let after = () => {};

function say(name, words) {
  const shown = document.getElementById("live-state");
  if (!shown || shown.dataset.state === name && shown.lastElementChild.textContent === words) return;
  shown.dataset.state = name;
  shown.lastElementChild.textContent = words;
}

// A page is not changed under somebody's hands: not while it is hidden, rows are chosen, a form is
// open, or text is marked.
function busy() {
  if (document.hidden) return "paused: hidden";
  if (document.querySelector("#live input[data-row]:checked")) return "paused: rows chosen";
  if (document.querySelector("#live details.action[open]")) return "paused: a form is open";
  if (!window.getSelection().isCollapsed) return "paused: text marked";
  return "";
}

function changed() {
  const why = busy();
  if (why) { state.again = true; say("paused", why); return; }
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
    // A page that is dear is asked for less often: a fifth of the time at the most.
    const pause = Math.min(Math.max(500, took * 4), SLOWEST);
    state.next = performance.now() + pause;
    say("live", pause > 2000 ? `live · ${Math.round(pause / 1000)} s` : "live");
    if (state.again) changed();
  }
}

function listen() {
  state.source?.close();
  state.source = new EventSource(`${document.body.dataset.root}/events`);
  state.source.addEventListener("open", () => { state.failed = 0; say("live", "live"); });
  state.source.addEventListener("changed", changed);
  state.source.addEventListener("error", () => {
    state.failed += 1;
    say("away", "reconnecting");
    if (state.source.readyState === EventSource.CLOSED) setTimeout(listen, Math.min(1000 * state.failed, 10_000));
    // Without a stream, by asking now and then.
    if (state.failed > 3) changed();
  });
}

export const live = {
  start(then) {
    if (!document.querySelector("#live[data-live]")) return;
    after = then;
    document.addEventListener("htmx:after:swap", () => after());
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) { state.source?.close(); say("paused", "paused: hidden"); }
      else { listen(); changed(); }
    });
    // What was held back comes when hands are off.
    for (const name of ["change", "toggle", "selectionchange"]) {
      document.addEventListener(name, () => { if (state.again && !busy()) changed(); else { const why = busy(); if (why) say("paused", why); } }, true);
    }
    addEventListener("pagehide", () => state.source?.close());
    listen();
  },
};
