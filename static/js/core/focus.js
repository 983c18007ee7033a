// Where the reader goes on when what they pressed is gone: the next row of a list, else what the part of the page names in
// data-focus-next (selectors, the first that is there), never the top of the page.
const ROWS = "li, tr, article, details";
const USEFUL = 'a[href], button, input:not([type="hidden"]), textarea, select, summary';
const touch = window.matchMedia("(pointer: coarse)");

let last = null; // what had the focus
let around = []; // its ancestors, from within, each with its neighbours at that time
let due = null;
let leaving = false; // whether it was left on purpose is known a moment later

export function startFocus() {
  // A page that came of something the reader did begins with what is wrong, or with what was done.
  const said = document.querySelector('#main [aria-invalid="true"]') ?? document.querySelector("#flash .notice");
  if (said && isLost()) go(said);
  document.addEventListener("focusin", ({ target }) => remember(target));
  // Whoever clicks beside everything wants the focus nowhere; what is being taken away is not there a moment later.
  document.addEventListener("focusout", ({ target, relatedTarget }) => {
    // What is disabled while a request runs may well be useful again by the time that a busy page looks.
    if (relatedTarget || !isUseful(target)) return;
    leaving = true;
    setTimeout(() => {
      leaving = false;
      if (last === target && document.hasFocus() && isLost() && isUseful(target)) last = null;
    });
  });
  new MutationObserver(() => {
    due ??= setTimeout(keep, 60);
  }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["hidden", "disabled", "open", "class"] });
}

function remember(element) {
  if (element.closest("dialog")) return; // what is asked in between
  last = element;
  around = [];
  for (let node = element; node && node !== document.body; node = node.parentElement) {
    around.push({ node, next: node.nextElementSibling, previous: node.previousElementSibling });
  }
}

function isLost() {
  return document.activeElement === document.body || document.activeElement === null;
}

function isUseful(element) {
  return element.isConnected && !element.disabled && !element.closest("[inert]") && element.checkVisibility({ visibilityProperty: true });
}

/** Where the focus was lost since what had it has gone, it is put where the next action is. */
function keep() {
  due = leaving ? setTimeout(keep) : null;
  if (leaving) return;
  // A part of the page that is at work knows itself where to go on.
  if (!isLost() || !last || last.closest('[aria-busy="true"]') || document.querySelector("dialog[open], .htmx-request")) return;
  const target = isUseful(last) ? last : (nextPlace() ?? document.getElementById("main"));
  last = null;
  if (target) go(target);
}

function go(target) {
  if (!target.matches(USEFUL)) target.tabIndex = -1;
  target.focus({ preventScroll: target.id === "main" });
}

function nextPlace() {
  for (const { node, next, previous } of around) {
    if (!node.isConnected && node.matches(ROWS)) {
      const row = [next, previous].find((other) => other?.isConnected && other.matches(ROWS));
      const within = row && first(row, USEFUL);
      if (within) return within;
    }
    if (!node.isConnected) continue;
    if (node.popover && !node.matches(":popover-open")) return first(document, `[popovertarget="${CSS.escape(node.id)}"]`) ?? null;
    if (!node.dataset.focusNext) continue;
    for (const selector of node.dataset.focusNext.split("; ")) {
      const found = first(document, selector);
      // A field would bring up the keyboard of a phone.
      if (found) return touch.matches && found.matches("textarea, input") ? null : found;
    }
  }
  return null;
}

function first(root, selector) {
  return [...root.querySelectorAll(selector)].find(isUseful);
}
