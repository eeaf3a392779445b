/**
 * The page's flow: a text and settings go to the server, its labels come back into the list, and an opened label is
 * explained in the text. A newer question always cancels the older one.
 */

import { Problem, listModels, suggest } from "./api.js";
import { copy } from "./clipboard.js";
import * as detail from "./detail.js";
import { byId, count, make } from "./dom.js";
import * as editor from "./editor.js";
import * as filters from "./filters.js";
import * as history from "./history.js";
import * as notices from "./notices.js";
import * as ranked from "./ranked.js";
import { keep, load } from "./storage.js";
import * as themes from "./themes.js";

const PAUSE = 300; // milliseconds between the last key and a ranking; slow models are given more
const LONGEST_PAUSE = 2000;
const WELCOME = "Your labels appear here.";

let models = [];
let shown = null; // {model, text, settings, labels} that the list shows
let reasons = new Map(); // label id → explanation, of what is shown
let ranking = null; // AbortController of the question under way
let explaining = null;
let pause = PAUSE;
let timer = 0;

start();

async function start() {
  themes.watch();
  byId("k").value = load("k", "10") || "10";
  notices.say(WELCOME);
  notices.watch(() => (models.length ? rankNow() : loadModels()));
  editor.watch(textChanged, notices.say);
  ranked.watch(explainLabel);
  filters.watch(() => model()?.name, rankNow);
  history.watch(returnTo);
  watchControls();
  await loadModels();
}

async function loadModels() {
  notices.hideProblem();
  try {
    models = await listModels();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    return notices.showProblem(problem, loadModels);
  }
  byId("model").replaceChildren(...models.map(({ name }) => make("option", { value: name }, name)));
  chooseModel(load("model", ""));
  notices.say(models.length ? WELCOME : "This server has no model.");
  if (editor.text().trim()) await rankNow();
}

function model() {
  return models.find(({ name }) => name === byId("model").value);
}

// ---- ranking

function rankSoon() {
  clearTimeout(timer);
  timer = setTimeout(rankNow, pause);
}

async function rankNow() {
  clearTimeout(timer);
  ranking?.abort();
  const text = editor.text();
  const current = model();
  if (!text.trim()) return showNothing();
  if (!current) return;
  const mine = (ranking = new AbortController());
  const settings = readSettings(current);
  const begin = performance.now();
  setBusy(true);
  try {
    const labels = await suggest(current.name, text, settings, mine.signal);
    if (mine.signal.aborted) return;
    const took = performance.now() - begin;
    pause = Math.min(LONGEST_PAUSE, Math.max(PAUSE, 1.5 * took));
    showLabels({ model: current, text, settings, labels }, took);
  } catch (problem) {
    if (mine.signal.aborted) return;
    if (!(problem instanceof Problem)) throw problem;
    emptyList();
    notices.showProblem(problem, rankNow);
  } finally {
    if (mine === ranking) setBusy(false);
  }
}

function readSettings(current) {
  const settings = { k: Math.max(1, Math.round(Number(byId("k").value)) || 10), ...filters.settings() };
  const least = byId("least").valueAsNumber;
  if (Number.isNaN(least)) return settings;
  const share = Math.min(100, Math.max(0, least)) / 100;
  return { ...settings, ...(current.calibrated ? { threshold: share } : { min_score: least }) };
}

function showLabels(answer, took) {
  notices.hideProblem();
  notices.forgetRetries();
  shown = answer;
  reasons = new Map();
  const meaning = ranked.show(answer.labels);
  const some = answer.labels.length > 0;
  byId("meaning").textContent = some ? meaning : "";
  byId("empty").hidden = true;
  byId("copy").disabled = false;
  if (some) {
    notices.say(`${answer.labels.length} of ${count(answer.model.n_labels, "label")}.`, {
      unheard: `${Math.max(1, Math.round(took))} ms`,
      unseen: ` Best: ${answer.labels[0].name}`,
    });
    history.remember(answer.text, answer.model.name, answer.labels.map(({ name }) => name));
  } else {
    notices.say(byId("least").value ? "No label reaches your minimum. Lower it to see more." : "No label fits this text.");
  }
  explainLabel(ranked.openLabel());
}

function showNothing() {
  clearTimeout(timer);
  ranking?.abort();
  setBusy(false);
  notices.hideProblem();
  emptyList();
  notices.say(WELCOME);
}

function emptyList() {
  shown = null;
  ranked.show([]);
  byId("meaning").textContent = "";
  byId("empty").hidden = false;
  byId("copy").disabled = true;
  explainLabel(null);
}

function setBusy(busy) {
  byId("labels").setAttribute("aria-busy", String(busy));
}

// ---- explaining

async function explainLabel(id) {
  explaining?.abort();
  editor.unmark();
  document.body.classList.toggle("reading", id !== null);
  if (id === null || !shown) return;
  const { model: used, text, settings, labels } = shown;
  const label = labels.find((one) => one.label === id);
  const place = ranked.detailOf(id);
  detail.describe(place, label, { explains: used.explains, onExclude: () => filters.add(id, label.name, false) });
  if (!used.explains) return;
  const { signal } = (explaining = new AbortController());
  try {
    if (!reasons.has(id)) {
      const answer = await suggest(used.name, text, { ...settings, explain: [id] }, signal);
      reasons.set(id, answer.find((one) => one.label === id)?.explanation ?? {});
    }
    if (signal.aborted || text !== editor.text()) return;
    const reason = reasons.get(id);
    detail.explain(place, id, reason, editor.slicer(), editor.showWord);
    editor.mark(reason.spans ?? []);
  } catch (problem) {
    if (signal.aborted) return;
    if (!(problem instanceof Problem)) throw problem;
    detail.explainFailed(place, problem.detail || problem.title);
  }
}

// ---- what a person does

function watchControls() {
  byId("desk").addEventListener("submit", (event) => {
    event.preventDefault();
    askNow();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      askNow();
    } else if (event.key === "Escape" && ranked.openLabel() !== null) {
      ranked.close();
    }
  });
  byId("clear").addEventListener("click", () => {
    editor.setText("");
    showNothing();
    editor.focus();
  });
  byId("model").addEventListener("change", () => {
    keep("model", byId("model").value);
    chooseModel(byId("model").value);
    rankNow();
  });
  for (const id of ["k", "least"]) byId(id).addEventListener("input", rankSoon);
  byId("k").addEventListener("change", () => keep("k", byId("k").value));
  byId("copy").addEventListener("click", copyLabels);
}

function textChanged(origin) {
  if (!editor.text().trim()) showNothing();
  else if (origin === "file") rankNow();
  else rankSoon();
}

function askNow() {
  if (editor.text().trim()) return rankNow();
  showNothing();
  notices.say("Write or paste a text first.");
  editor.focus();
}

function returnTo(entry) {
  if (entry.model !== byId("model").value) chooseModel(entry.model);
  editor.setText(entry.text);
  rankNow();
  editor.focus();
  window.scrollTo({ top: 0 });
}

/** Switches to a model, if the server has it. Filters and minimum go: another model has other labels and scores. */
function chooseModel(name) {
  if (models.some((one) => one.name === name)) byId("model").value = name;
  byId("least").value = "";
  filters.clear();
  const current = model();
  byId("least-name").textContent = current?.calibrated === false ? "Score at least" : "At least, %";
  if (!current) return;
  const facts = [`Method ${current.method}`, count(current.n_labels, "label"), count(current.n_documents, "training document")];
  byId("facts").textContent = [...facts, current.calibrated ? "gives probabilities" : "gives scores"].join(" · ");
}

async function copyLabels() {
  const { model: used, text, labels } = shown;
  const done = await copy(JSON.stringify({ model: used.name, text, labels }, null, 2));
  const button = byId("copy");
  button.textContent = done ? "Copied" : "Copying is not allowed here";
  setTimeout(() => (button.textContent = "Copy as JSON"), 1600);
}
