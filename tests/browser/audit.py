"""Checks that any page can be put to by itself: names for everything that is pressed or filled in, one heading, ids that
are there, colours that can be read, nothing wider than the window."""

from playwright.sync_api import Page

_SHARED = r"""  const visible = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && element.getClientRects().length > 0;
  const where = (element) => {
    const id = element.id ? `#${element.id}` : element.classList.length ? `.${[...element.classList].join(".")}` : "";
    return `<${element.tagName.toLowerCase()}${id}> ${(element.textContent || element.getAttribute("placeholder") || "").trim().slice(0, 40)}`;
  };
"""
_WIDTHS = r"""  const wide = document.documentElement.scrollWidth - window.innerWidth;
  if (wide > 0) problems.push(`${wide} px wider than the window`);
  for (const box of document.querySelectorAll(".main-scroll, .chat-scroll, .sidebar-scroll")) {
    if (box.scrollWidth > box.clientWidth) problems.push(`${box.scrollWidth - box.clientWidth} px too wide: ${where(box).slice(0, 30)}`);
  }
"""
_NAMES = r"""  if (!document.title.trim()) problems.push("no title");
  if (!document.documentElement.lang) problems.push("no language");
  const headings = [...document.querySelectorAll("h1")].filter((element) => element.checkVisibility());
  if (headings.length !== 1) problems.push(`${headings.length} first headings`);

  const named = (element) => (element.getAttribute("aria-label") || element.getAttribute("title") || element.textContent || element.querySelector("img[alt]")?.alt || "").trim();
  for (const element of document.querySelectorAll("a[href], button, summary, [role=button]")) if (element.checkVisibility() && !named(element)) problems.push(`no name: ${where(element)}`);
  for (const element of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    const labels = [...(element.labels ?? [])].some((label) => label.textContent.trim());
    if (!labels && !element.getAttribute("aria-label") && !element.getAttribute("aria-labelledby")) problems.push(`no label: ${where(element)} ${element.name}`);
  }
  for (const element of document.querySelectorAll("img:not([alt]), svg[role=img]:not([aria-label], [aria-labelledby])")) problems.push(`no words for the picture: ${where(element)}`);
  for (const element of document.querySelectorAll("[tabindex]")) if (element.tabIndex > 0) problems.push(`out of order: ${where(element)}`);
  for (const element of document.querySelectorAll("th:empty")) problems.push(`empty heading of a column: ${where(element)}`);

  const ids = new Map();
  for (const element of document.querySelectorAll("[id]")) ids.set(element.id, (ids.get(element.id) ?? 0) + 1);
  for (const [id, count] of ids) if (count > 1) problems.push(`${count} times #${id}`);
  for (const name of ["for", "aria-labelledby", "aria-describedby", "aria-controls", "list", "form", "popovertarget"]) {
    for (const element of document.querySelectorAll(`[${name}]`)) {
      for (const id of element.getAttribute(name).split(/\s+/)) if (id && !ids.has(id)) problems.push(`${name} leads nowhere: #${id}`);
    }
  }
"""
_CONTRASTS = r"""  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colours = new Map();
  const rgba = (text) => {
    if (!colours.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      colours.set(text, [r, g, b, a / 255]);
    }
    return colours.get(text);
  };
  const over = (top, below) => top.slice(0, 3).map((value, index) => value * top[3] + below[index] * (1 - top[3])).concat(1);
  const ground = (element) => {
    const layers = [];
    for (let node = element; node; node = node.parentElement) layers.push(rgba(getComputedStyle(node).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element) || !visible(element) || element.closest("[disabled], [aria-disabled=true], option, svg, .visually-hidden")) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const size = Number.parseFloat(style.fontSize);
    const below = ground(element);
    const pair = [light(over(rgba(style.color), below)), light(below)].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    const enough = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (ratio < enough - 0.02) problems.push(`contrast ${ratio.toFixed(2)}: ${where(element)}`);
  }
"""
_MEDIA = r"""  if (matchMedia("(pointer: coarse)").matches) {
    for (const element of document.querySelectorAll(".btn, button, select, summary, .tabs a, .pills a, .nav-item")) {
      if (!visible(element) || element.closest(".visually-hidden")) continue;
      const { width, height } = element.getBoundingClientRect();
      if (width < 24 || height < 24) problems.push(`too small for a finger, ${Math.round(width)} by ${Math.round(height)}: ${where(element)}`);
    }
  }

  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    for (const element of document.querySelectorAll("body, body *")) {
      const { animationName, animationDuration, transitionDuration } = getComputedStyle(element);
      const moving = animationName === "none" ? transitionDuration : `${transitionDuration}, ${animationDuration}`;
      if (moving.split(",").some((time) => Number.parseFloat(time) > 0.01)) problems.push(`moves, though no motion is wanted: ${where(element)}`);
    }
  }
"""


def _problems(page: Page, *parts: str) -> list[str]:
    page.wait_for_load_state()
    looks = "\n".join(parts)
    found: list[str] = page.evaluate(
        f"() => {{\n  const problems = [];\n{_SHARED}{looks}  return [...new Set(problems)];\n}}"
    )
    return found


def audit(page: Page) -> list[str]:
    """Returns what is wrong with the page, once it is loaded: one line each."""
    return _problems(page, _WIDTHS, _NAMES, _CONTRASTS, _MEDIA)


def widths(page: Page) -> list[str]:
    """Returns what of the page is wider than its place."""
    return _problems(page, _WIDTHS)


def contrasts(page: Page) -> list[str]:
    """Returns what of the page is hard to read in its colours: every text is looked at, which takes long."""
    return _problems(page, _CONTRASTS)


_UNFOLD = """() => {
  const folded = [...document.querySelectorAll("main details:not([open])")].filter((each) => each.checkVisibility());
  for (const each of folded) each.open = true;
  return folded.length > 0;
}"""
_QUIET = """() => !document.querySelector(".htmx-request") && ![...document.querySelectorAll("details[open] [aria-busy=true]")].length"""


def settle(page: Page) -> None:
    """Returns once nothing is fetched for a part of the page."""
    page.wait_for_function(_QUIET)


def unfold(page: Page) -> bool:
    """Opens what the page keeps folded; whether there was any."""
    unfolded: bool = page.evaluate(_UNFOLD)
    settle(page)
    return unfolded
