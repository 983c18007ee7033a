// Which conversation the page shows, in the address bar and in the sidebar.

const PATTERN = /^\/c\/([0-9a-f-]{36})\/?$/;

export function conversationInUrl() {
  return PATTERN.exec(location.pathname)?.[1] ?? null;
}

export function pageUrl(conversation) {
  return conversation ? `/c/${conversation}/` : "/";
}

export function setUrl(conversation, { replace = false } = {}) {
  const url = pageUrl(conversation);
  if (location.pathname === url) return;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
}

export class SidebarLinks {
  constructor(list) {
    this.list = list;
    this.active = conversationInUrl();
    // The list is swapped by search and paging: the mark is set again.
    new MutationObserver(() => this.mark(this.active)).observe(list, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-current"] });
  }

  mark(conversation) {
    this.active = conversation;
    for (const link of this.list.querySelectorAll(".conversation-link")) {
      const isActive = conversation !== null && link.closest("[data-conversation-row]")?.dataset.conversationRow === conversation;
      if (isActive === (link.getAttribute("aria-current") === "page")) continue;
      if (isActive) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  setTitle(conversation, title) {
    const link = this.list.querySelector(`[data-conversation-row="${CSS.escape(conversation)}"] .conversation-link`);
    if (link && title) {
      link.textContent = title;
      link.title = title;
    }
    return link !== null;
  }

  /** A new conversation belongs at the top; the server renders the list. */
  reload() {
    const url = this.list.dataset.url;
    if (url) window.htmx?.ajax("GET", url, { target: "#conversations", swap: "innerHTML" });
  }
}
