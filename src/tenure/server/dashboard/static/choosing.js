// Count selected rows. One box selects all rows of the page.
function boxes() { return [...document.querySelectorAll("#live input[data-row]")]; }

function show() {
  const all = boxes(), chosen = all.filter((box) => box.checked).length;
  for (const label of document.querySelectorAll("[data-chosen]")) label.textContent = `${chosen} selected`;
  const every = document.querySelector("#live input[data-every-row]");
  if (every) { every.checked = chosen > 0 && chosen === all.length; every.indeterminate = chosen > 0 && chosen < all.length; }
}

export const choosing = {
  show,
  start() {
    document.addEventListener("change", (event) => {
      if (event.target.matches?.("input[data-every-row]")) for (const box of boxes()) box.checked = event.target.checked;
      if (event.target.matches?.("input[data-row], input[data-every-row]")) show();
    });
    show();
  },
};
