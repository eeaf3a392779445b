/**
 * The text and the marks on it. A transparent textarea lies exactly over a copy of its text, and the copy carries the
 * marks: so the text stays editable while it is explained. Knows nothing of labels or of the server.
 */

import { byId, count, make } from "./dom.js";

const field = byId("text");
const marked = byId("marked");
const LARGEST = 10_000_000; // bytes of a dropped file; the server has its own limit and says so

export function text() {
  return field.value;
}

export function setText(value) {
  field.value = value;
  byId("scroll").scrollTop = 0;
  refresh();
}

export function focus() {
  field.focus();
}

/** Calls `changed(origin)` when the text changes: "typed" by hand, "file" from a file that was dropped or opened. */
export function watch(changed, refused) {
  field.addEventListener("input", () => {
    refresh();
    changed("typed");
  });
  const take = async (file) => {
    try {
      setText(await readFile(file));
      changed("file");
    } catch (error) {
      refused(error.message);
    }
  };
  byId("open-file").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", (event) => {
    if (event.target.files[0]) take(event.target.files[0]);
    event.target.value = "";
  });
  watchDrops(take);
  refresh();
}

/** Marks spans [start, end, weight] that count code points, as the server does; weak ones are left out. */
export function mark(spans) {
  const strongest = Math.max(...spans.map(([, , weight]) => Math.abs(weight)), 0);
  const drawn = spans
    .map(([start, end, weight]) => ({ start, end, weight, strength: strengthOf(Math.abs(weight) / strongest) }))
    .filter(({ strength }) => strength > 0)
    .sort((a, b) => a.start - b.start);
  const value = field.value;
  const offset = utf16Offsets(value);
  const parts = [];
  let from = 0;
  for (const span of drawn) {
    const [start, end] = [offset(span.start), offset(span.end)];
    const side = span.weight > 0 ? "up" : "down";
    parts.push(value.slice(from, start));
    parts.push(make("mark", { className: `mark ${side} strength-${span.strength}` }, value.slice(start, end)));
    from = end;
  }
  marked.replaceChildren(...parts, value.slice(from), "\u200b");
  byId("legend").hidden = drawn.length === 0;
  showStrongest();
}

export function unmark() {
  marked.replaceChildren(field.value, "\u200b"); // the last line counts even when it is empty
  byId("legend").hidden = true;
}

/** Scrolls to the first mark on a word and lets all marks on it glow once. */
export function showWord(word) {
  const hits = [...marked.querySelectorAll("mark")].filter((node) => node.textContent.toLowerCase() === word);
  for (const node of hits) {
    node.classList.remove("glow");
    void node.offsetWidth; // starts the animation anew
    node.classList.add("glow");
  }
  hits[0]?.scrollIntoView({ block: "center" });
}

/** A function that gives the text behind a span, for lists of words. */
export function slicer() {
  const value = field.value;
  const offset = utf16Offsets(value);
  return (start, end) => value.slice(offset(start), offset(end));
}

/** Turns growing code point positions into UTF-16 ones, in one walk over the text: "🍋" is one of the first, two of the second. */
function utf16Offsets(value) {
  let [points, units] = [0, 0];
  return (position) => {
    if (position < points) [points, units] = [0, 0];
    for (; points < position && units < value.length; points++) units += value.codePointAt(units) > 0xffff ? 2 : 1;
    return units;
  };
}

function strengthOf(share) {
  return [0.1, 0.22, 0.42, 0.66].filter((least) => share >= least).length;
}

function refresh() {
  unmark();
  byId("size").textContent = count(field.value.match(/\S+/g)?.length ?? 0, "word");
}

/** Brings the strongest mark into the visible part of the text, without moving the page. */
function showStrongest() {
  const scroll = byId("scroll");
  const best = [4, 3].map((strength) => marked.querySelector(`.up.strength-${strength}`)).find(Boolean);
  if (!best) return;
  const [box, view] = [best.getBoundingClientRect(), scroll.getBoundingClientRect()];
  if (box.top < view.top || box.bottom > view.bottom) scroll.scrollTop += box.top - view.top - view.height / 3;
}

async function readFile(file) {
  if (file.size > LARGEST) throw new Error(`${file.name} is larger than ${LARGEST / 1e6} MB.`);
  try {
    const value = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (value.includes("\0")) throw new TypeError("binary");
    return value;
  } catch {
    throw new Error(`${file.name} is not a text in UTF-8. Save it as plain text and drop it again.`);
  }
}

function watchDrops(take) {
  let depth = 0; // dragenter and dragleave also fire for every child
  const within = (change) => {
    depth = Math.max(0, depth + change);
    document.body.classList.toggle("dropping", depth > 0);
  };
  const carriesFile = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragenter", (event) => carriesFile(event) && within(1));
  document.addEventListener("dragleave", (event) => carriesFile(event) && within(-1));
  document.addEventListener("dragover", (event) => carriesFile(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!carriesFile(event)) return; // dropped words go into the field as always
    event.preventDefault();
    within(-depth);
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
}
