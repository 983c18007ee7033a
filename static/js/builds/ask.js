// What the builder asks: a question with a field for the answer, or a request for hosts or secrets with yes and no.
import { h, icon } from "../core/dom.js";

const KINDS = { network: networkAsk, secrets: secretsAsk };

/** respond({id, text} or {id, decision}) → promise; it rejects where the server refused. dismiss(): the reader has done with a
 * question that was kept. → {element, update({missing, late}), keep(answer)}: secrets that are not stored, and whether the builder
 * has gone on without an answer; keep, of a question that waits no more, says whether it stays since it holds words that were
 * never sent. `answer` is the answer that came, if one did. */
export function askOf(question, respond, dismiss) {
  return { keep: () => false, ...(KINDS[question.payload.kind] ?? questionAsk)(question, respond, dismiss) };
}

/** What a version may reach and read, as a list; a secret that is not stored yet leads to where it is entered. */
export function permissionList({ hosts = [], secrets = [] }, missing = []) {
  const enter = (name) => h("a", { href: `/settings/secrets/?name=${encodeURIComponent(name)}#new-secret`, target: "_blank", rel: "noopener" }, "not stored yet: add it");
  return h(
    "ul",
    { class: "build-permissions" },
    secrets.map((name) => h("li", {}, icon("key"), h("span", {}, "read your secret ", h("code", {}, name), ...(missing.includes(name) ? [" (", enter(name), ")"] : [])))),
    hosts.map((host) => h("li", {}, icon("globe"), h("span", {}, "reach ", h("code", {}, host), " over the network"))),
  );
}

function busyWhile(controls, work) {
  for (const control of controls) control.disabled = true;
  return work.catch(() => {
    for (const control of controls) control.disabled = false;
  });
}

function networkAsk(question, respond) {
  const wait = waiting(question);
  const decide = (decision) => busyWhile([yes, no], respond({ id: question.id, decision }));
  const yes = h("button", { type: "button", class: "btn btn-primary", onclick: () => decide("allow") }, icon("check"), "Allow");
  const no = h("button", { type: "button", class: "btn", onclick: () => decide("deny") }, "No");
  const hosts = h("ul", { class: "build-hosts" }, question.payload.hosts.map((host) => h("li", {}, h("code", {}, host))));
  const element = h(
    "section",
    { class: "ask", "aria-label": "The builder asks for network" },
    h("h3", {}, icon("globe"), "May it reach the internet?"),
    hosts,
    question.payload.why ? h("p", {}, question.payload.why) : null,
    h("p", { class: "muted small" }, "The finished tool may reach these hosts too, and no others."),
    h("div", { class: "ask-actions" }, yes, no, wait.element),
  );
  return { element, update: wait.update };
}

function secretsAsk(question, respond) {
  const decide = (decision) => busyWhile([yes, no], respond({ id: question.id, decision }));
  const yes = h("button", { type: "button", class: "btn btn-primary", onclick: () => decide("allow") }, icon("check"), "Allow");
  const no = h("button", { type: "button", class: "btn", onclick: () => decide("deny") }, "No");
  const list = h("div", {}, permissionList(question.payload));
  const element = h(
    "section",
    { class: "ask", "aria-label": "The builder asks for a secret" },
    h("h3", {}, icon("key"), question.payload.secrets.length === 1 ? "May it use your secret?" : "May it use your secrets?"),
    list,
    h("p", { class: "muted small" }, `Izzy tests the tool with it. Neither the builder nor the chat sees its value. ${question.payload.hosts?.length ? "" : "It can send it nowhere: it reaches no network. "}Without an answer you are asked again when it is built.`),
    h("div", { class: "ask-actions" }, yes, no),
  );
  let listed = "";
  const update = ({ missing }) => {
    const now = JSON.stringify(missing);
    if (now === listed) return; // a link that is replaced under the pointer loses the click
    listed = now;
    list.replaceChildren(permissionList(question.payload, missing));
  };
  return { element, update };
}

function questionAsk(question, respond, dismiss) {
  const wait = waiting(question);
  const id = `build-answer-${question.id}`;
  const field = h("textarea", { class: "input", id, rows: "2", placeholder: "Your answer", required: true });
  const send = h("button", { class: "btn btn-primary" }, "Answer");
  const form = h("form", {}, field, h("div", { class: "ask-actions" }, send, wait.element));
  const submit = () => {
    const text = field.value.trim();
    if (text && !field.readOnly) busyWhile([field, send], respond({ id: question.id, text }));
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    submit();
  });
  const label = h("label", { class: "ask-question", for: id }, icon("question"), h("span", {}, question.payload.text));
  const element = h("section", { class: "ask", "aria-label": "The builder asks a question" }, label, form);
  const keep = (answer) => {
    const text = field.value.trim();
    if (!text || text === answer?.payload.text) return false;
    if (field.readOnly) return true;
    field.readOnly = true;
    const done = h("button", { type: "button", class: "btn btn-small", onclick: dismiss }, "Put away");
    const how = answer ? `Answered elsewhere meanwhile: “${answer.payload.text}”.` : "The build has ended meanwhile.";
    send.parentElement.replaceChildren(h("p", { class: "grow break small", role: "status" }, `${how} What you had typed was not sent.`), done);
    return true;
  };
  return { element, update: wait.update, keep };
}

/** How long it waits, and that an answer is of use even later. */
function waiting(question) {
  const words = h("span", {}, `Without an answer it goes on after ${seconds(question)}.`);
  const element = h("span", { class: "faint small" }, words, " ", h("span", { class: "ask-left", dataset: { askLeft: question.id } }));
  const update = ({ late }) => {
    if (late) element.textContent = "It has gone on meanwhile; your answer still reaches it.";
  };
  return { element, update };
}

function seconds(question) {
  const wait = question.payload.seconds ?? 60;
  if (wait < 120) return wait === 60 ? "a minute" : `${wait} seconds`;
  return `${Math.round(wait / 60)} minutes`;
}
