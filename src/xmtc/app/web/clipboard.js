/** Copies words to the clipboard; says whether it worked. */

export async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    return copyOldWay(words); // the modern way needs https or this very machine
  }
}

function copyOldWay(words) {
  const back = document.activeElement;
  const field = document.createElement("textarea");
  field.value = words;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  back?.focus();
  return done;
}
