// Files beside a message: chips and small pictures, and a dialog that shows what was read of one.
import { h, icon, iconButton } from "../core/dom.js";
import { api } from "../core/api.js";
import { confirmDialog } from "../core/dialogs.js";
import { toast, toastError } from "../core/toasts.js";

const url = (file, rest = "") => `/api/v1/attachments/${file.id}/${rest}`;

export function fileSize(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1).replace(".0", "")} MB`;
}

/** What a file is, in a few words. */
export function fileWords(file) {
  if (file.kind === "pdf") return `PDF, ${file.pages} ${file.pages === 1 ? "page" : "pages"}`;
  return `${file.kind === "image" ? "Image" : "Text"}, ${fileSize(file.size)}`;
}

/** The list under a message; null where there is none. */
export function attachedList(files) {
  if (!files?.length) return null;
  return h("ul", { class: "attached", "aria-label": "Attachments" }, files.map((file) => h("li", {}, file.kind === "image" ? picture(file) : chip(file))));
}

function picture(file) {
  const image = h("img", { src: url(file, "content/?shown=true"), alt: "", loading: "lazy", width: file.width, height: file.height });
  return h("button", { type: "button", class: "attached-picture", "aria-label": `Open ${file.name}`, title: file.name, onclick: () => open(file) }, image);
}

function chip(file) {
  return h("button", { type: "button", class: "attached-chip", onclick: () => open(file) },
    h("span", { class: "attached-thumb" }, icon("file")),
    h("span", { class: "attached-words" }, h("bdi", { class: "attached-name" }, file.name), h("span", { class: "attached-about" }, fileWords(file))));
}

function open(file) {
  const body = h("div", { class: "dialog-body" });
  const dialog = h("dialog", { class: "dialog attached-dialog", "aria-labelledby": "attached-title" });
  const close = () => dialog.close();
  const keep = file.characters > 0 ? h("button", { type: "button", class: "btn", onclick: () => keepFile(file, keep) }, icon("memory"), "Put under /memories") : null;
  const remove = h("button", { type: "button", class: "btn btn-quiet", onclick: () => deleteFile(file, dialog) }, icon("trash"), "Delete");
  const get = h("a", { class: "btn", href: url(file, "content/"), download: file.name }, icon("download"), "Download");
  dialog.append(
    h("div", { class: "dialog-header" }, h("div", { class: "grow" }, h("h2", { id: "attached-title" }, h("bdi", {}, file.name)), h("p", { class: "attached-about" }, `${fileWords(file)}${file.whole ? "" : "; not all of it could be read"}`)), iconButton("close", "Close", close)),
    body,
    h("div", { class: "dialog-footer" }, remove, h("span", { class: "grow" }), keep, get),
  );
  dialog.addEventListener("close", () => dialog.remove(), { once: true });
  document.body.append(dialog);
  dialog.showModal();
  if (file.kind === "image") body.append(h("img", { class: "attached-shown", src: url(file, "content/?shown=true"), alt: file.name }));
  else if (!file.characters) body.append(h("p", {}, "No text could be read from this PDF: its pages may be pictures. Download it to look at it."));
  else showText(file, body);
}

/** The text, part by part; it is set as text whatever it contains. */
function showText(file, body) {
  const text = h("pre", { class: "attached-text", tabindex: "0", dir: "auto", "aria-label": `Text of ${file.name}` });
  const more = h("button", { type: "button", class: "btn btn-small" }, "Show more");
  let offset = 0;
  const load = async () => {
    more.disabled = true;
    try {
      const part = await api("GET", url(file, `text/?offset=${offset}`));
      text.append(part.text);
      offset = part.next;
      more.hidden = part.next === null;
    } catch (error) {
      toastError(error);
    }
    more.disabled = false;
  };
  more.addEventListener("click", load);
  body.append(text, more);
  load();
}

async function keepFile(file, button) {
  try {
    const kept = await api("POST", url(file, "keep/"), {});
    button.disabled = true;
    toast(`It is now ${kept.path}.`);
  } catch (error) {
    toastError(error);
  }
}

async function deleteFile(file, dialog) {
  if (!(await confirmDialog(`“${file.name}” is deleted for good. Izzy cannot read it any more; what was said about it stays.`, { title: "Delete this file?" }))) return;
  try {
    await api("DELETE", url(file));
    dialog.close();
    document.dispatchEvent(new CustomEvent("izzy:attachment-deleted", { detail: { id: file.id } }));
  } catch (error) {
    toastError(error);
  }
}
