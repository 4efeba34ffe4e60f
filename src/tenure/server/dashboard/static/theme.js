// Runs before the page is drawn, so that the theme does not flash.
const chosen = localStorage.getItem("tenure-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
