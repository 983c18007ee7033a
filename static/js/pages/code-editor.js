// Text areas for code (data-code): Tab indents, Shift+Tab takes back, Enter keeps the indentation. Escape gives Tab back to
// the keyboard's way through the page, once.
const STEP = "    ";

for (const area of document.querySelectorAll("textarea[data-code]")) start(area);

function start(area) {
  let leaving = false;
  area.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") leaving = true;
    else if (event.key === "Tab" && !leaving) indent(event, area);
    else if (event.key === "Enter" && !event.shiftKey) newLine(event, area);
    else if (event.key !== "Shift" && event.key !== "Tab") leaving = false;
  });
  area.addEventListener("blur", () => {
    leaving = false;
  });
}

function indent(event, area) {
  event.preventDefault();
  const { selectionStart: start, selectionEnd: end, value } = area;
  const lineStart = value.lastIndexOf("\n", start - 1) + 1;
  if (!event.shiftKey && start === end) {
    replace(area, start, end, STEP.slice((start - lineStart) % STEP.length));
    return;
  }
  const block = value.slice(lineStart, end);
  const changed = block
    .split("\n")
    .map((line) => (event.shiftKey ? line.replace(/^( {1,4}|\t)/, "") : line && STEP + line))
    .join("\n");
  replace(area, lineStart, end, changed);
  if (start !== end) area.setSelectionRange(lineStart, lineStart + changed.length);
}

function newLine(event, area) {
  const { selectionStart: start, selectionEnd: end, value } = area;
  const line = value.slice(value.lastIndexOf("\n", start - 1) + 1, start);
  const space = line.match(/^[ \t]*/)[0];
  const deeper = /[:{[(]\s*$/.test(line) ? (area.name === "main" ? STEP : "  ") : "";
  if (!space && !deeper) return;
  event.preventDefault();
  replace(area, start, end, `\n${space}${deeper}`);
}

/** Through the browser's own editing where it can be, so that undo works. */
function replace(area, start, end, text) {
  area.setSelectionRange(start, end);
  const done = text ? document.execCommand("insertText", false, text) : document.execCommand("delete");
  if (!done) {
    area.setRangeText(text, start, end, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

/** Leaving the page with changes asks first. */
