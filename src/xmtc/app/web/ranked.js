/**
 * The ranked labels: one row a label, with a bar and a place for its explanation. Rows are kept by label from one
 * ranking to the next, so that focus stays and bars grow instead of jumping. Asks nobody: `opened(label)` tells that a
 * person wants to know more.
 */

import { byId, make } from "./dom.js";

const list = byId("ranked");
const rows = new Map(); // label id → its <li>
let opened = () => {};
let open = null; // label id of the open row
let nextNumber = 0;

/** Calls `whenOpened(label or null)` with the label whose row a person opens, or null when it is closed. */
export function watch(whenOpened) {
  opened = whenOpened;
  list.addEventListener("keydown", moveByKeys);
}

/** Shows labels, best first, and says what their bars mean: {text, values}. */
export function show(labels) {
  const scale = scaleOf(labels);
  const before = new Map([...rows].map(([id, row]) => [id, row.offsetTop]));
  const wanted = new Set(labels.map((label) => label.label));
  const focused = list.contains(document.activeElement) ? document.activeElement.closest("li").dataset.label : null;
  for (const [id, row] of rows) {
    if (wanted.has(id)) continue;
    rows.delete(id);
    row.remove();
  }
  labels.forEach((label, place) => {
    const row = rows.get(label.label) ?? newRow(label);
    rows.set(label.label, row);
    fill(row, label, place, scale);
    if (list.children[place] !== row) list.insertBefore(row, list.children[place] ?? null);
  });
  if (open !== null && !wanted.has(open)) open = null;
  setTabStop(rows.get(focused) ?? rows.get(open) ?? list.firstElementChild);
  if (focused !== null && !list.contains(document.activeElement)) focusRow(rows.get(focused) ?? list.firstElementChild);
  for (const [id, row] of rows) slide(row, before.get(id));
  return scale.meaning;
}

export function openLabel() {
  return open;
}

/** The element that holds what is said about a label. */
export function detailOf(label) {
  return rows.get(label)?.querySelector(".detail");
}

/** Closes the open row; whoever was inside it is back on the row itself. */
export function close() {
  const row = rows.get(open);
  if (row.contains(document.activeElement)) row.querySelector(".row").focus();
  toggle(open);
}

function toggle(label) {
  const button = rows.get(label).querySelector(".row");
  const before = button.getBoundingClientRect().top;
  const previous = open;
  open = label === previous ? null : label;
  for (const id of [previous, open]) {
    const row = rows.get(id);
    if (!row) continue;
    row.querySelector(".row").setAttribute("aria-expanded", String(id === open));
    row.querySelector(".detail").hidden = id !== open;
    row.classList.toggle("open", id === open);
  }
  opened(open);
  window.scrollBy(0, button.getBoundingClientRect().top - before); // what closed above must not move it away
  button.scrollIntoView({ block: "nearest" });
}

function newRow(label) {
  const detail = make("div", { className: "detail", id: `detail-${nextNumber++}`, hidden: true });
  const button = make(
    "button",
    { type: "button", className: "row", "aria-expanded": "false", "aria-controls": detail.id, tabIndex: -1 },
    make("span", { className: "place" }),
    make("span", { className: "name" }),
    make("span", { className: "value" }),
    make("span", { className: "bar", "aria-hidden": "true" }, make("span", { className: "fill" })),
  );
  button.addEventListener("click", () => {
    setTabStop(row);
    toggle(label.label);
  });
  const row = make("li", { "data-label": label.label }, button, detail);
  return row;
}

function fill(row, label, place, scale) {
  row.querySelector(".place").textContent = place + 1;
  row.querySelector(".name").textContent = label.name;
  row.querySelector(".value").textContent = scale.words(label);
  row.querySelector(".fill").style.setProperty("--share", scale.share(label).toFixed(4));
}

/** What bars and values mean: probabilities where the model is calibrated, else its scores. */
function scaleOf(labels) {
  if (labels.length && labels.every(({ probability }) => probability != null)) {
    return {
      meaning: "In the order of the model’s scores. Bars show the probability that the label is right.",
      share: (label) => Math.min(1, Math.max(0, label.probability)),
      words: (label) => (label.probability < 0.01 ? "< 1 %" : `${Math.round(label.probability * 100)} %`),
    };
  }
  const scores = labels.map((label) => label.score);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const words = (label) => label.score.toFixed(Math.abs(label.score) < 10 ? 3 : 1);
  if (low >= 0 && high <= 1) {
    return { meaning: "Bars show the model’s score from 0 to 1. It is not a probability.", share: (label) => label.score, words };
  }
  const bottom = Math.min(0, low); // the worst label keeps a stub of a bar
  return {
    meaning: "Bars show the model’s score relative to the best label. It is not a probability.",
    share: (label) => 0.04 + (0.96 * (label.score - bottom)) / (high - bottom || 1),
    words,
  };
}

/** Arrow keys, Home and End move between rows; Tab reaches the list once and then the open row's details. */
function moveByKeys(event) {
  const row = event.target.closest("li");
  if (!event.target.classList.contains("row")) return;
  const target = {
    ArrowDown: row.nextElementSibling,
    ArrowUp: row.previousElementSibling,
    Home: list.firstElementChild,
    End: list.lastElementChild,
  }[event.key];
  if (target === undefined) return;
  event.preventDefault();
  if (target) focusRow(target);
}

function focusRow(row) {
  setTabStop(row);
  row?.querySelector(".row").focus();
}

function setTabStop(row) {
  for (const other of rows.values()) other.querySelector(".row").tabIndex = other === row ? 0 : -1;
}

/** Lets a row glide from where it was to where it is. */
function slide(row, from) {
  if (from === undefined || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const distance = from - row.offsetTop;
  if (distance) row.animate([{ transform: `translateY(${distance}px)` }, {}], { duration: 220, easing: "ease-out" });
}
