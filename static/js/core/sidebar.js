// The conversation list: renaming in place. Searching and deleting are htmx's.
import { csrfToken } from "./api.js";
import { h } from "./dom.js";
import { toast } from "./toasts.js";

export function startSidebar() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-rename]");
    if (!button) return;
    button.closest("[popover]")?.hidePopover();
    startRename(button.closest("[data-conversation-row]"), button.dataset.rename);
  });
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
    if (!(await rename(url, title))) link.textContent = before;
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
    if (response.ok) {
      document.dispatchEvent(new CustomEvent("izzy:renamed", { detail: { url, title } }));
      return true;
    }
  } catch {
    // Falls through to the toast: the reader need not know which way it failed.
  }
  toast("The title could not be saved.", { kind: "danger" });
  return false;
}
