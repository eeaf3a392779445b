// Runs before the page is drawn, so that a chosen theme never flashes. Without a choice the system's theme holds.
(() => {
  let chosen = null;
  try {
    chosen = JSON.parse(localStorage.getItem("xmtc.theme"));
  } catch {
    // the browser keeps nothing: the system's theme holds
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
