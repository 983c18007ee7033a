// What Izzy waits for: a yes or no before a tool runs, or the answer to a question.
import { h, icon } from "../core/dom.js";
import { humanName } from "./format.js";
import { inputRows } from "./tool-parts.js";
import { wishOf } from "./tool-words.js";

/** actions: {decide(id, "allow"|"deny") → bool, answer(id, text) → bool} → {element, reset} */
export function askCard(call, actions) {
  return call.asks === "question" ? questionCard(call, actions) : approvalCard(call, actions);
}

function approvalCard(call, actions) {
  const note = h("p", { class: "ask-note", hidden: true });
  const decide = (decision, words) => {
    if (!actions.decide(call.id, decision)) return;
    setBusy(true, words);
  };
  const yes = h("button", { type: "button", class: "btn btn-primary", onclick: () => decide("allow", "Allowed.") }, icon("check"), "Yes, allow");
  const no = h("button", { type: "button", class: "btn", onclick: () => decide("deny", "Declined.") }, "No");
  const setBusy = (busy, words = "") => {
    yes.disabled = busy;
    no.disabled = busy;
    note.textContent = words;
    note.hidden = !busy;
  };
  const title = h("h3", {}, icon("shield"), call.permission ? `“${humanName(call.permission.capability)}” asks for your permission` : `Izzy would like to ${wishOf(call.name)}`);
  const input = Object.keys(call.input ?? {}).length > 0 ? inputRows(call.input) : [];
  const element = h(
    "section",
    { class: "ask", "aria-label": "Izzy asks for permission" },
    title,
    call.permission ? permissionList(call.permission) : null,
    call.reason ? h("p", { class: "ask-reason" }, call.reason) : null,
    h("p", { class: "muted small" }, "It waits for your decision. Or write a new message to decline."),
    ...input,
    h("div", { class: "ask-actions" }, yes, no, note),
  );
  return { element, reset: () => setBusy(false) };
}

/** The hosts and secrets that a yes allows a version of a capability from now on. */
function permissionList(permission) {
  const asked = [
    ...(permission.hosts ?? []).map((host) => h("li", {}, icon("globe"), h("span", {}, "reach ", h("code", {}, host), " over the network"))),
    ...(permission.secrets ?? []).map((name) => h("li", {}, icon("key"), h("span", {}, "read your secret ", h("code", {}, name)))),
  ];
  const page = h("a", { href: `/capabilities/${encodeURIComponent(permission.capability)}/files/` }, "Look at its files");
  return h("div", { class: "ask-permission" }, h("ul", {}, asked), h("p", { class: "muted small" }, `Allowed for version ${permission.version}, now and later. `, page, "."));
}

function questionCard(call, actions) {
  const id = `answer-${call.id}`;
  const field = h("textarea", { class: "input", id, rows: "2", maxlength: "20000", placeholder: "Your answer", required: true });
  const send = h("button", { class: "btn btn-primary" }, "Answer");
  const setBusy = (busy) => {
    field.disabled = busy;
    send.disabled = busy;
  };
  const submit = () => {
    const text = field.value.trim();
    if (text && actions.answer(call.id, text)) setBusy(true);
  };
  const form = h("form", {}, field, h("div", { class: "ask-actions" }, send, h("span", { class: "faint small" }, "Or write a new message to go on without answering.")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    submit();
  });
  const label = h("label", { class: "ask-question", for: id }, icon("question"), h("span", {}, call.question));
  return { element: h("section", { class: "ask", "aria-label": "Izzy asks a question" }, label, form), reset: () => setBusy(false) };
}
