/** The button that switches between light and dark. theme.js reads the choice before the page is drawn. */

import { byId } from "./dom.js";
import { keep } from "./storage.js";

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

export function watch() {
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    keep("theme", root.dataset.theme);
    draw();
  });
  system.addEventListener("change", draw);
  draw();
}

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
}

function draw() {
  byId("theme").textContent = isDark() ? "Light theme" : "Dark theme";
}
