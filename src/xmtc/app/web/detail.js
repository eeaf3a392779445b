/** What is said about one label: parents, training count, words, path, similar documents. Draws what it is given. */

import { count, make } from "./dom.js";

const WORDS = 10; // of each direction
const LEAST = 0.1; // share of the strongest word's weight that is worth a word
const NEIGHBOURS = 5;

/** Fills a label's place with what the ranking knows already; the explanation follows in `explain`. */
export function describe(place, label, { explains, onExclude }) {
  place.replaceChildren(
    ...trails(label),
    make("p", { className: "seen" }, seen(label.count)),
    make("div", { className: "why" }, explains ? make("p", { className: "muted waiting" }, "Looking for the reasons …") : none()),
    make("p", { className: "more" }, make("button", { type: "button", className: "quiet", onclick: onExclude }, "Never suggest this label")),
  );
}

/** Adds the explanation of a label (its id): words of the text with their weights, and whatever else the method has. */
export function explain(place, label, explanation, slice, showWord) {
  const words = weighWords(explanation.spans ?? [], slice);
  const parts = [
    wordList("Words that pushed it up", words.filter(([, weight]) => weight > 0), "+", showWord),
    wordList("Words that held it back", words.filter(([, weight]) => weight < 0), "−", showWord),
    pathList(explanation.path ?? []),
    scopeList(explanation.scope ?? []),
    neighbourList(explanation.neighbours ?? [], label),
  ].filter(Boolean);
  place.querySelector(".why").replaceChildren(...(parts.length ? parts : [none()]));
}

export function explainFailed(place, message) {
  place.querySelector(".why").replaceChildren(make("p", { className: "muted" }, message));
}

/** Each word once, its weights added up, strongest first, without those that hardly matter. */
function weighWords(spans, slice) {
  const total = new Map();
  for (const [start, end, weight] of spans) {
    const word = slice(start, end).toLowerCase();
    total.set(word, (total.get(word) ?? 0) + weight);
  }
  const words = [...total].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  return words.filter(([, weight]) => weight !== 0 && Math.abs(weight) >= LEAST * Math.abs(words[0][1]));
}

function none() {
  return make("p", { className: "muted" }, "This model does not say which words led to a label.");
}

function seen(n) {
  return n ? `Given to ${count(n, "training document")}` : "Given to no training document";
}

/** One line a parent: parent › label. */
function trails(label) {
  return label.parents.map((parent) =>
    make("ol", { className: "trail", "aria-label": "Broader label" }, make("li", {}, parent.name), make("li", {}, label.name)),
  );
}

function wordList(title, words, sign, showWord) {
  if (!words.length) return null;
  const side = sign === "+" ? "up" : "down";
  const items = words.slice(0, WORDS).map(([word, weight]) =>
    make(
      "li",
      {},
      make(
        "button",
        { type: "button", className: `word ${side}`, title: "Show it in the text", onclick: () => showWord(word) },
        word,
        make("span", { className: "weight" }, `${sign}${format(Math.abs(weight))}`),
      ),
    ),
  );
  return group(title, make("ul", { className: "words" }, ...items));
}

function pathList(path) {
  if (!path.length) return null;
  const items = path.map(([name, score]) => make("li", {}, name, " ", make("span", { className: "weight" }, format(score))));
  return folded("Path through the label tree", make("ol", { className: "path" }, ...items));
}

function scopeList(scope) {
  if (!scope.length) return null;
  const items = scope.slice(0, WORDS).map(([name]) => make("li", {}, name));
  return folded("Labels the text was read with", make("ul", { className: "names" }, ...items));
}

/** Training documents with their labels; the label that is explained stands out among them. */
function neighbourList(neighbours, explained) {
  if (!neighbours.length) return null;
  const items = neighbours.slice(0, NEIGHBOURS).map(({ id, similarity, labels }) =>
    make(
      "li",
      {},
      make("span", { className: "document" }, id),
      make("span", { className: "weight" }, ` similarity ${format(similarity)}`),
      make("ul", { className: "names-line" }, ...labels.map(({ label, name }) => make("li", { className: label === explained ? "same" : "" }, name))),
    ),
  );
  return group("Similar training documents", make("ul", { className: "neighbours" }, ...items));
}

function group(title, content) {
  return make("section", { className: "reason" }, make("h3", {}, title), content);
}

function folded(title, content) {
  return make("details", { className: "reason" }, make("summary", {}, title), content);
}

function format(number) {
  return number.toFixed(Math.abs(number) < 10 ? 2 : 1);
}
