/** Makes and finds elements. Text is always set as text, never parsed as HTML. */

export function byId(id) {
  return document.getElementById(id);
}

/** Makes an element: `make("button", { type: "button", onclick }, "Copy")`; `aria-*`, `data-*` and `role` are attributes. */
export function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (/^(aria-|data-|role$)/.test(key)) node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}
