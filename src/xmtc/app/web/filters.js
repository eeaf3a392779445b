/** Label filters: a search for labels by name, and a chip for each label that is wanted alone or never wanted. */

import { findLabels } from "./api.js";
import { byId, count, make } from "./dom.js";

const field = byId("find");
const found = byId("found");
const chips = byId("chips");
const FOUND = 8;
const PAUSE = 180; // milliseconds between the last key and the search

let chosen = []; // {label, name, only}
let current = -1; // option that the arrow keys are on
let asking = null;
let timer = 0;
let model = () => null;
let changed = () => {};

export function watch(currentModel, whenChanged) {
  [model, changed] = [currentModel, whenChanged];
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
  });
  field.addEventListener("keydown", byKeys);
  field.addEventListener("blur", close);
  byId("filter").addEventListener("click", () => {
    const opens = byId("finder").hidden;
    showFinder(opens);
    if (opens) field.focus();
  });
}

/** The filters as the server takes them. */
export function settings() {
  const ids = (only) => chosen.filter((chip) => chip.only === only).map((chip) => chip.label);
  const [include, exclude] = [ids(true), ids(false)];
  return { ...(include.length && { include }), ...(exclude.length && { exclude }) };
}

export function add(label, name, only) {
  chosen = [...chosen.filter((chip) => chip.label !== label), { label, name, only }];
  draw();
  changed();
}

/** Forgets all filters: another model has other labels. */
export function clear() {
  chosen = [];
  field.value = "";
  close();
  showFinder(false);
  draw();
}

function showFinder(visible) {
  byId("finder").hidden = !visible;
  byId("filter").setAttribute("aria-expanded", String(visible));
}

function draw() {
  chips.hidden = chosen.length === 0;
  chips.replaceChildren(
    ...chosen.map((chip) =>
      make(
        "li",
        { className: chip.only ? "chip only" : "chip never" },
        make(
          "button",
          { type: "button", title: "Switch between only and never", onclick: () => add(chip.label, chip.name, !chip.only) },
          make("b", {}, chip.only ? "only" : "never"),
          ` ${chip.name}`,
        ),
        make("button", { type: "button", "aria-label": `Remove the filter on ${chip.name}`, onclick: () => remove(chip) }, "×"),
      ),
    ),
  );
}

function remove(chip) {
  chosen = chosen.filter((other) => other !== chip);
  draw();
  (byId("finder").hidden ? byId("filter") : field).focus();
  changed();
}

async function search() {
  asking?.abort();
  const words = field.value.trim();
  if (!words || !model()) return close();
  asking = new AbortController();
  const { signal } = asking;
  try {
    const labels = await findLabels(model(), words, FOUND, signal);
    if (!signal.aborted && document.activeElement === field) offer(labels);
  } catch (error) {
    if (error.name !== "AbortError") note(error.detail || error.title);
  }
}

function offer(labels) {
  if (!labels.length) return note("No label has this in its name.");
  found.replaceChildren(
    ...labels.map((label, i) => {
      const option = make(
        "li",
        { role: "option", id: `found-${i}`, "aria-selected": "false" },
        make("span", { className: "name" }, label.name),
        make("span", { className: "muted" }, count(label.count, "document")),
      );
      // before the field loses focus, which closes the list
      option.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        choose(label);
      });
      option.choose = () => choose(label);
      return option;
    }),
  );
  show();
  point(0);
}

function choose(label) {
  field.value = "";
  close();
  add(label.label, label.name, true);
}

function note(words) {
  found.replaceChildren(make("li", { role: "option", "aria-disabled": "true", className: "muted" }, words));
  show();
}

function show() {
  found.hidden = false;
  field.setAttribute("aria-expanded", "true");
  current = -1;
}

function close() {
  clearTimeout(timer);
  asking?.abort();
  found.hidden = true;
  found.replaceChildren();
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
  current = -1;
}

function point(place) {
  const options = [...found.querySelectorAll("[aria-selected]")];
  if (!options.length) return;
  current = (place + options.length) % options.length;
  options.forEach((option, i) => option.setAttribute("aria-selected", String(i === current)));
  field.setAttribute("aria-activedescendant", options[current].id);
  options[current].scrollIntoView({ block: "nearest" });
}

function byKeys(event) {
  if (event.key === "Enter" && !(event.ctrlKey || event.metaKey)) {
    event.preventDefault(); // Enter chooses; it never sends the form from here
    found.children[current]?.choose?.();
  } else if (event.key === "Escape" && !found.hidden) {
    event.stopPropagation();
    close();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    if (found.hidden) search();
    else point(current + (event.key === "ArrowDown" ? 1 : -1));
  }
}
