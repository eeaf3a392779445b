/** What the page says besides labels: how a ranking went, what went wrong and how to go on, that a token is needed. */

import { hasToken, useToken } from "./api.js";
import { byId, count, make } from "./dom.js";

const RETRIES = 3; // by itself, while the server is busy
let retries = 0;
let timer = 0;
let afterToken = () => {};

/** Calls `again` when a person has given a token. */
export function watch(again) {
  afterToken = again;
  byId("token-use").addEventListener("click", sendToken);
  byId("token").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // it is not the text's form that is sent
    sendToken();
  });
}

/** Says a sentence to everybody; `unheard` is shown beside it and not read out, `unseen` is read out and not shown. */
export function say(words, { unheard = "", unseen = "" } = {}) {
  byId("board").hidden = false;
  byId("took").textContent = unheard;
  const status = byId("status");
  if (status.textContent !== words + unseen) status.replaceChildren(words, make("span", { className: "unseen" }, unseen));
}

export function hideProblem() {
  clearTimeout(timer);
  byId("problem").hidden = true;
  byId("token-form").hidden = true;
}

/** All is well: the next busy server is waited for as long as the first. */
export function forgetRetries() {
  retries = 0;
}

/** Shows a Problem in place of the labels; `again` is what failed. A busy server is asked again without a word. */
export function showProblem(problem, again) {
  hideProblem();
  byId("board").hidden = true;
  if (problem.status === 401) return askToken();
  const waits = problem.status === 503 && retries < RETRIES;
  const seconds = problem.retryAfter ?? 1;
  const parts = [make("p", {}, make("strong", {}, problem.title)), make("p", {}, problem.detail)];
  if (waits) parts.push(make("p", { className: "muted" }, `Trying again in ${count(seconds, "second")}.`));
  if (problem.status === 0 || problem.status >= 500) {
    parts.push(make("button", { type: "button", onclick: again }, "Try again"));
  }
  byId("problem").replaceChildren(...parts);
  byId("problem").hidden = false;
  if (!waits) return;
  retries += 1;
  timer = setTimeout(again, seconds * 1000);
}

function askToken() {
  byId("token-note").textContent = hasToken() ? "The server refused the last one." : "It is kept until this tab is closed.";
  byId("token-form").hidden = false;
  byId("token").focus();
}

function sendToken() {
  const token = byId("token").value.trim();
  if (!token) return byId("token").focus();
  useToken(token);
  byId("token").value = "";
  byId("token-form").hidden = true;
  byId("text").focus();
  afterToken();
}
