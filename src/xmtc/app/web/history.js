/** Recent texts with their best labels, newest first, in this browser only. */

import { byId, make } from "./dom.js";
import { keep, load } from "./storage.js";

const MOST = 20; // texts
const LONGEST = 100_000; // characters of a text that is kept
const SAME = 24; // first characters that a text and its edited version share

/** Calls `whenChosen({text, model})` when a person goes back to a text. */
export function watch(whenChosen) {
  byId("recent").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) whenChosen(read()[Number(button.dataset.place)]);
  });
  byId("forget").addEventListener("click", () => {
    keep("history", []);
    draw();
    byId("text").focus();
  });
  draw();
}

/** Keeps a text; an edited version takes the place of the one before it. */
export function remember(text, model, names) {
  if (text.length > LONGEST) return;
  const entry = { text, model, labels: names.slice(0, 3), time: Date.now() };
  let entries = read().filter((old, place) => old.text !== text && !(place === 0 && isEdit(old.text, text)));
  entries = [entry, ...entries].slice(0, MOST);
  while (!keep("history", entries) && entries.length) entries.pop(); // full: the oldest go
  draw();
}

function read() {
  const kept = load("history", []);
  return Array.isArray(kept) ? kept : [];
}

function isEdit(before, after) {
  const n = Math.min(SAME, before.length, after.length);
  return before.slice(0, n) === after.slice(0, n);
}

function draw() {
  const entries = read();
  byId("history").hidden = entries.length === 0;
  byId("recent").replaceChildren(
    ...entries.map((entry, place) =>
      make(
        "li",
        {},
        make(
          "button",
          { type: "button", "data-place": place },
          make("span", { className: "excerpt" }, entry.text.trim().slice(0, 160)),
          make("span", { className: "muted" }, entry.labels.join(" · ")),
          make("span", { className: "muted when" }, `${entry.model}, ${ago(entry.time)}`),
        ),
      ),
    ),
  );
}

function ago(time) {
  const minutes = Math.round((time - Date.now()) / 60_000);
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  if (minutes > -1) return "just now";
  if (minutes > -60) return words.format(minutes, "minute");
  if (minutes > -60 * 24) return words.format(Math.round(minutes / 60), "hour");
  return words.format(Math.round(minutes / 60 / 24), "day");
}
