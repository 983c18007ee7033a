// The files that go with the message being written: picked, dropped or pasted, sent to the server at once, shown as chips.
import { h, icon, iconButton } from "../core/dom.js";
import { api, ApiError, csrfToken } from "../core/api.js";
import { fileSize, fileWords } from "./attached-view.js";

const MOST = 10;
const AGAIN_AFTER = 3000;

export class AttachmentTray {
  #items = [];
  #next = 1;
  #place = null;
  #elsewhere = new Map(); // by place: what the server does not have yet of files picked there

  /** options: {announce(text), changed(), arrived(place, file)}: a file got to the server after its place was left */
  constructor(form, { announce, changed, arrived }) {
    this.form = form;
    this.list = form.querySelector("[data-attached]");
    this.input = form.querySelector("[data-attach-input]");
    this.limit = Number(form.dataset.attachmentLimit) || Infinity;
    this.announce = announce;
    this.changed = changed;
    this.arrived = arrived;
    form.querySelector("[data-attach]").addEventListener("click", () => this.input.click());
    this.input.addEventListener("change", () => {
      this.add([...this.input.files]);
      this.input.value = "";
    });
    form.querySelector("textarea").addEventListener("paste", (event) => this.#onPaste(event));
    this.#listenForDrops();
    window.addEventListener("beforeunload", (event) => this.#isSending && event.preventDefault());
  }

  /** What the server has of them, as messages have it. */
  get files() {
    return this.#items.filter((item) => item.file).map((item) => item.file);
  }

  get isEmpty() {
    return this.#items.length === 0;
  }

  /** Not yet: one is still on its way. */
  get isReady() {
    return this.#items.every((item) => item.file);
  }

  /** One was refused: the message waits until it is taken away. */
  get hasFailed() {
    return this.#items.some((item) => item.error);
  }

  /** A file is on its way, here or to where it was picked: it is lost with the page. */
  get #isSending() {
    return [this.#items, ...this.#elsewhere.values()].flat().some((item) => !item.file && !item.error);
  }

  /** Shows what goes with another draft: these, which the server has, and what is still on its way there. What was picked for the
   * draft that is left goes on. */
  open(place, files) {
    const unsent = this.#items.filter((item) => !item.file);
    if (unsent.length > 0) this.#elsewhere.set(this.#place, unsent);
    this.#place = place;
    this.#items = [...files.map((file) => this.#sent(file)), ...(this.#elsewhere.get(place) ?? [])];
    this.#elsewhere.delete(place);
    this.#draw();
  }

  /** The same draft goes by another name from now on. */
  moved(place) {
    this.#place = place;
  }

  /** Shows these, which the server has, before what is still on its way there. */
  set(files) {
    this.#items = [...files.map((file) => this.#sent(file)), ...this.#items.filter((item) => !item.file)];
    this.#draw();
  }

  clear() {
    for (const item of this.#items) item.abort?.abort();
    this.#items = [];
    this.#draw();
  }

  /** Takes all away for good, as nothing of it is to be sent. */
  discard() {
    this.#items.forEach(forget);
    this.clear();
  }

  #sent(file) {
    return { key: this.#next++, name: file.name, file };
  }

  add(files) {
    for (const file of files) {
      const item = { key: this.#next++, name: file.name, size: file.size };
      if (this.#items.length >= MOST) {
        this.announce(`A message can have ${MOST} attachments.`, true);
        break;
      }
      this.#items.push(item);
      if (file.size > this.limit) {
        item.error = `It has ${fileSize(file.size)}; at most ${fileSize(this.limit)} can be attached.`;
        this.announce(item.error, true);
      } else this.#send(item, file);
    }
    this.#draw();
    this.changed();
  }

  async #send(item, file) {
    item.abort = new AbortController();
    const body = new FormData();
    body.append("file", file, file.name);
    try {
      item.file = await this.#untilSent(item, file, body);
      item.name = item.file.name;
      this.announce(`${item.name} is attached.`);
    } catch (error) {
      if (error.name === "AbortError") return;
      item.error = error instanceof ApiError ? error.message : "It could not be sent.";
      this.announce(item.error, true);
    }
    const [place, others] = [...this.#elsewhere].find(([, items]) => items.includes(item)) ?? [];
    if (others && item.file) {
      this.#elsewhere.set(place, others.filter((other) => other !== item));
      this.arrived(place, item.file);
    }
    this.#draw();
    this.changed();
  }

  /** Without a connection it waits for one, until the file is taken away or cannot be read any more. */
  async #untilSent(item, file, body) {
    for (;;) {
      try {
        return await upload(body, item.abort.signal);
      } catch (error) {
        if (error.code !== "unreachable") throw error;
      }
      item.waits = true;
      this.#draw();
      await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER));
      item.abort.signal.throwIfAborted();
      await file.slice(0, 1).arrayBuffer();
    }
  }

  #remove(item) {
    item.abort?.abort();
    forget(item);
    const at = this.#items.indexOf(item);
    this.#items = this.#items.filter((other) => other !== item);
    this.#draw();
    const next = this.list.querySelectorAll("button")[Math.min(at, this.#items.length - 1)];
    (next ?? this.form.querySelector("textarea")).focus();
    this.changed();
  }

  #draw() {
    this.list.hidden = this.#items.length === 0;
    this.list.replaceChildren(...this.#items.map((item) => this.#chip(item)));
  }

  #chip(item) {
    const state = item.error ? "failed" : item.file ? "ready" : "sending";
    const words = item.error ? `${item.error} Take it away to send the message without it.` : (item.file ? fileWords(item.file) : item.waits ? "Waiting for the connection…" : "Reading it…");
    const thumb = item.file?.kind === "image" ? h("img", { src: `/api/v1/attachments/${item.file.id}/content/?shown=true`, alt: "" }) : state === "sending" ? h("span", { class: "spinner", "aria-hidden": "true" }) : icon(item.error ? "alert" : "file");
    return h("li", { class: "attached-chip", dataset: { state } },
      h("span", { class: "attached-thumb" }, thumb),
      h("span", { class: "attached-words" }, h("bdi", { class: "attached-name", title: item.name }, item.name), h("span", { class: "attached-about" }, words)),
      iconButton("close", `Take ${item.name} away`, () => this.#remove(item)));
  }

  #onPaste(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0 || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    this.add(files);
  }

  /** Files can be dropped anywhere on the page; the field says so meanwhile. */
  #listenForDrops() {
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    const show = (on) => this.form.toggleAttribute("data-drop", on);
    document.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      show(true);
    });
    document.addEventListener("dragleave", (event) => event.relatedTarget === null && show(false));
    document.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      show(false);
      this.add([...event.dataTransfer.files]);
      this.form.querySelector("textarea").focus();
    });
  }
}

/** What was brought and will not be sent goes from the server, unless another tab has sent it; else it takes the place of other files
 * there for a day. */
function forget({ file }) {
  if (file?.conversation === null) api("DELETE", `/api/v1/attachments/${file.id}/?unsent=true`).catch(() => {});
}

async function upload(body, signal) {
  const headers = { Accept: "application/json", "X-CSRFToken": csrfToken() };
  const response = await fetch("/api/v1/attachments/", { method: "POST", headers, credentials: "same-origin", body, signal }).catch(unreachable);
  const data = await response.json().catch(() => null);
  if (response.ok && data) return data;
  if (!data && (response.ok || response.status >= 502)) unreachable(null); // broken off, or a proxy's that does not reach Izzy
  throw new ApiError(response.status, data?.code ?? "error", data?.message ?? `It could not be sent (${response.status}).`, data?.extra);
}

function unreachable(error) {
  if (error?.name === "AbortError") throw error;
  throw new ApiError(0, "unreachable", "Izzy cannot be reached right now.");
}
