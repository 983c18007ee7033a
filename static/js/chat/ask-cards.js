// What Izzy waits for: a yes or no before a tool runs, or the answer to a question.
import { addressed } from "../core/addressing.js";
import { h, icon, isolated } from "../core/dom.js";
import { humanName } from "./format.js";
import { inputRows } from "./tool-parts.js";
import { permissionOf } from "./tool-words.js";

/** actions: {decide(id, "allow"|"conversation"|"always"|"deny") → bool, noteText(id) → text, conversationTitle(id) → text} → {element, reset} */
export function askCard(call, actions) {
  return call.asks === "question" ? questionCard(call) : approvalCard(call, actions);
}

function approvalCard(call, actions) {
  const note = h("p", { class: "ask-note", hidden: true });
  const decide = (decision, words) => {
    if (!actions.decide(call.id, decision)) return;
    setBusy(true, words);
  };
  const yes = h("button", { type: "button", class: "btn btn-primary", onclick: () => decide("allow", "Allowed.") }, icon("check"), call.reach ? "Yes, once" : "Yes, allow");
  const lasting = (decision, label) => h("button", { type: "button", class: "btn", title: "Shown here and under Settings, where you can take it back", onclick: () => decide(decision, "Allowed from now on.") }, label);
  const here = call.reach ? lasting("conversation", "In this conversation") : null;
  const always = call.reach || call.always ? lasting("always", "Always for this tool") : null;
  const no = h("button", { type: "button", class: "btn", onclick: () => decide("deny", "Declined.") }, "No");
  const setBusy = (busy, words = "") => {
    for (const button of [yes, here, always, no]) if (button) button.disabled = busy;
    note.textContent = words;
    note.hidden = !busy;
  };
  const title = h("h3", {}, icon("shield"), call.permission ? `“${humanName(call.permission.capability)}” asks for your permission` : `Izzy would like to ${permissionOf(call.name)}`);
  const { note_id: id, conversation_id: conversation, ...input } = call.input ?? {};
  const about = id ? actions.noteText(id) : "";
  if (id && !about) input.note_id = id;
  const called = conversation ? actions.conversationTitle(conversation) : "";
  const element = h(
    "section",
    { class: "ask", "aria-label": "Izzy asks for permission" },
    title,
    call.permission ? permissionList(call.permission) : null,
    about ? h("p", { class: "ask-reason" }, isolated(`“${addressed(about)}”`)) : null,
    conversation ? h("p", { class: "ask-reason" }, h("a", { href: `/c/${encodeURIComponent(conversation)}/` }, called ? isolated(`“${called}”`) : "Look at the conversation")) : null,
    call.reason ? h("p", { class: "ask-reason" }, call.reason) : null,
    h("p", { class: "muted small" }, "It waits for your decision. Or write a new message to decline."),
    call.reach ? h("p", { class: "muted small" }, `A yes that lasts holds for ${[...call.reach.hosts, ...call.reach.secrets].join(", ")} and nothing else${call.reach.version ? `, and for version ${call.reach.version}` : ""}; in this conversation for a day.`) : null,
    ...(Object.keys(input).length > 0 ? inputRows(input) : []),
    h("div", { class: "ask-actions" }, yes, here, always, no, note),
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

/** The answer is written where messages are: below. */
function questionCard(call) {
  const words = h("p", { class: "ask-question" }, icon("question"), h("span", {}, call.question));
  const reason = call.reason ? h("p", { class: "ask-reason" }, call.reason) : null;
  const hint = h("p", { class: "muted small" }, "Write your answer below.");
  return { element: h("section", { class: "ask", "aria-label": "Izzy asks a question" }, words, reason, hint), reset() {} };
}
