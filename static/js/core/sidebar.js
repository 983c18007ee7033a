// The conversation list: renaming in place, pinning, archiving. Searching and deleting are htmx's.
import { api, csrfToken } from "./api.js";
import { h } from "./dom.js";
import { relist } from "./news.js";
import { toast, toastError } from "./toasts.js";

const DONE = { pinned: ["Unpinned", "Pinned"], archived: ["Brought back", "Archived"] };

export function startSidebar() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-rename], [data-mark]");
    if (!button) return;
    const menu = button.closest("[popover]");
    menu?.hidePopover();
    if (button.dataset.mark) mark(menu, button.dataset.mark, button.dataset.value === "true");
    else startRename(button.closest("[data-conversation-row]"), button.dataset.rename);
  });
}

/** Pins, archives or takes that back; what leaves the list can be brought back at once. */
async function mark(menu, field, value) {
  const { conversation, title } = menu.dataset;
  const set = async (wanted) => {
    await api("PATCH", `/api/v1/conversations/${conversation}/`, { [field]: wanted });
    document.dispatchEvent(new CustomEvent("izzy:marked", { detail: { conversation, field, value: wanted } }));
    await relist();
    // A row that went elsewhere in the list takes the focus along.
    if (document.activeElement === document.body) document.querySelector(`[popovertarget="${CSS.escape(menu.id)}"]`)?.focus();
  };
  try {
    await set(value);
    const undo = field === "archived" ? { action: "Undo", onaction: () => set(!value).catch(toastError) } : {};
    toast(`${DONE[field][Number(value)]} “${title}”`, undo);
  } catch (error) {
    toastError(error);
  }
}

function startRename(row, url) {
  const link = row.querySelector(".conversation-link");
  const input = h("input", { class: "input", value: link.textContent.trim(), maxlength: "200", "aria-label": "Title" });
  const form = h("form", {}, input);
  let over = false;
  const close = () => {
    over = true;
    form.replaceWith(link);
    row.classList.remove("renaming");
  };
  const save = async () => {
    if (over) return;
    const title = input.value.trim();
    const before = link.textContent;
    close();
    if (!title || title === before.trim()) return;
    link.textContent = title;
    if (await rename(url, title)) document.dispatchEvent(new CustomEvent("izzy:renamed", { detail: { conversation: row.dataset.conversationRow, title } }));
    else link.textContent = before;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save().then(() => link.focus());
  });
  input.addEventListener("blur", save);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
    link.focus();
  });
  row.classList.add("renaming");
  link.replaceWith(form);
  input.focus();
  input.select();
}

async function rename(url, title) {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "X-CSRFToken": csrfToken(), "HX-Request": "true" },
      body: new URLSearchParams({ title }),
      credentials: "same-origin",
    });
    if (response.ok) return true;
  } catch {
    // Falls through to the toast: the reader need not know which way it failed.
  }
  toast("The title could not be saved.", { kind: "danger" });
  return false;
}
