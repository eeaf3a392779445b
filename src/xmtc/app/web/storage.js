/** What the browser keeps: settings and recent texts in localStorage. A browser that keeps nothing is no error. */

export function load(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`xmtc.${key}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Says whether the value was kept: the browser may be full, or forbid it. */
export function keep(key, value) {
  try {
    localStorage.setItem(`xmtc.${key}`, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
