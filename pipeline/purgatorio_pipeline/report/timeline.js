"use strict";
// Fields of an event on hover, tap and focus; arrow keys, Home and End go from row to row. Without this script the same
// fields are tooltips, and a table. Text goes into the page as text only.
for (const drawing of document.querySelectorAll("svg.timeline")) {
  const rows = [...drawing.querySelectorAll("rect.hit")];
  const fields = drawing.closest("article").querySelector("output.fields");
  const bars = new Map([...drawing.querySelectorAll("[data-bar]")].map((bar) => [bar.dataset.bar, bar]));
  let chosen = null;
  fields.textContent = "To see the fields of an event, point at its row, tap the row, or use Tab and the arrow keys.";
  const show = (row) => {
    if (chosen) {
      chosen.classList.remove("chosen");
      chosen.tabIndex = -1;
      bars.get(chosen.dataset.call)?.classList.remove("chosen");
    }
    chosen = row;
    row.classList.add("chosen");
    row.tabIndex = 0;
    bars.get(row.dataset.call)?.classList.add("chosen");
    fields.textContent = row.querySelector("title").textContent;
  };
  // Shown at once: a window that is not the active one gets no focus event.
  const go = (row) => {
    row.focus();
    show(row);
  };
  rows.forEach((row, at) => {
    row.addEventListener("pointerenter", () => show(row));
    row.addEventListener("focus", () => show(row));
    row.addEventListener("click", () => go(row));
    row.addEventListener("keydown", (event) => {
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
      if (rows[to]) {
        event.preventDefault();
        go(rows[to]);
        rows[to].scrollIntoView({ block: "nearest", inline: "nearest" });
      }
    });
  });
}
