// Panes of one row scroll together, in proportion to their length, as long as the box is ticked.

const together = document.getElementById("together");
let leading = null;

for (const row of document.querySelectorAll(".abreast")) {
  const panes = [...row.querySelectorAll(".text")];
  for (const pane of panes) {
    pane.addEventListener("scroll", () => {
      if (!together.checked || (leading && leading !== pane)) return;
      leading = pane;
      const share = pane.scrollTop / Math.max(1, pane.scrollHeight - pane.clientHeight);
      for (const other of panes) {
        if (other !== pane) other.scrollTop = share * (other.scrollHeight - other.clientHeight);
      }
      requestAnimationFrame(() => requestAnimationFrame(() => (leading = null)));
    });
  }
}
