/** Talks to the server. Answers are its JSON; everything that goes wrong is a Problem with words for a person. */

const TOKEN = "xmtc.token";
const TITLES = {
  404: "The server does not have this",
  413: "The text is too long",
  422: "The server cannot use this",
  500: "The server failed",
  503: "The server is busy",
  504: "The server took too long",
};

export class Problem extends Error {
  constructor(status, title, detail = "", retryAfter = null) {
    super(title);
    Object.assign(this, { status, title, detail, retryAfter });
  }
}

export async function listModels() {
  return (await call("v1/models")).models;
}

/** Ranks one text; the answer is its list of labels. */
export async function suggest(model, text, settings, signal) {
  const body = { texts: [text.toWellFormed?.() ?? text], ...settings };
  const answer = await call(`v1/models/${encodeURIComponent(model)}/suggest`, { body, signal });
  return answer.results[0].labels;
}

export async function findLabels(model, words, limit, signal) {
  const query = new URLSearchParams({ q: words, limit });
  return (await call(`v1/models/${encodeURIComponent(model)}/labels?${query}`, { signal })).labels;
}

/** Keeps the server's token until the tab is closed. */
export function useToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

export function hasToken() {
  return Boolean(sessionStorage.getItem(TOKEN));
}

async function call(path, { body, signal } = {}) {
  const headers = { Accept: "application/json" };
  if (hasToken()) headers.Authorization = `Bearer ${sessionStorage.getItem(TOKEN)}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), {
      method: body ? "POST" : "GET",
      headers,
      body: body && JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The server does not answer", "Check that it still runs and that you are online.");
  }
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return null;
  });
  if (response.ok && answer !== null) return answer;
  throw new Problem(
    response.status,
    TITLES[response.status] ?? (response.ok ? "The answer is not JSON" : `The server answered ${response.status}`),
    sentence(answer?.detail),
    Number(response.headers.get("Retry-After")) || null,
  );
}

/** A problem's detail as a sentence; a name of a field that it begins with ("k: …") stays as it is. */
function sentence(words) {
  if (typeof words !== "string") return "";
  return /^[a-z]+ /.test(words) ? words[0].toUpperCase() + words.slice(1) : words;
}
