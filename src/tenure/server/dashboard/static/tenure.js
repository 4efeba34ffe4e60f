// Scripts of the pages. Each part works alone, and every page works without scripts.
import { live } from "./live.js";
import { clocks } from "./clocks.js";
import { keys } from "./keys.js";
import { charts } from "./charts.js";
import { choosing } from "./choosing.js";

// A one-time code is after the '#', which a browser does not send to the server.
function signIn() {
  const form = document.getElementById("sign-in");
  const secret = location.hash.slice(1);
  if (!form || !secret.startsWith("tnc_")) return;
  history.replaceState(null, "", location.pathname + location.search);
  form.elements.token.value = secret;
  form.requestSubmit();
}

function theme() {
  const button = document.getElementById("theme");
  if (!button) return;
  button.hidden = false;
  const label = () => { button.textContent = { light: "Light", dark: "Dark" }[document.documentElement.dataset.theme] ?? "Auto"; };
  button.addEventListener("click", () => {
    const next = { undefined: "light", light: "dark", dark: undefined }[document.documentElement.dataset.theme];
    if (next) { document.documentElement.dataset.theme = next; localStorage.setItem("tenure-theme", next); }
    else { delete document.documentElement.dataset.theme; localStorage.removeItem("tenure-theme"); }
    label();
    charts.redraw();
  });
  label();
}

// On a phone the navigation is wider than the screen: scroll to the current page.
function here() {
  const open = document.querySelector("header nav [aria-current]");
  if (open) open.parentElement.scrollLeft = open.offsetLeft - open.parentElement.offsetLeft - 40;
}

signIn();
addEventListener("hashchange", signIn);
theme();
here();
clocks.start();
keys.start();
charts.redraw();
choosing.start();
live.start(() => { clocks.show(); charts.redraw(); choosing.show(); });
