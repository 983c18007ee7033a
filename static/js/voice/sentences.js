// What is said of an answer: its rendered blocks as sentences, without what nobody wants spelled out.

const LONGEST_CODE = 40; // characters of code within a line that are read; longer ones are for the eye
const SKIPPED = "button, svg, .code-head, .code-note, .footnotes, .footnote-ref, .link-host, .prose-table-hint, .speaker, .tail";
const SHOWN = [
  ["pre, .code-block", "There is code on the page."],
  ["table, .prose-table", "There is a table on the page."],
  [".math-block", "There is a formula on the page."],
];
const PARTS = "p, li, h1, h2, h3, h4, h5, h6, blockquote, div, section, ul, ol, br, hr, tr";
const ADDRESS = /\b(?:https?:\/\/|www\.)([^\s/?#)\]]+)[^\s)\]]*/gi;
const PICTURES = /[\p{Extended_Pictographic}\u{fe0f}\u{200d}]/gu;
const kept = new WeakMap(); // of a block that has not been drawn again since

/** The sentences of one text (`.prose`) in order. What stands on the page in place of words is named in English alone. */
export function sentencesOf(prose, language) {
  // What is not rendered yet is still Markdown, whose marks nobody wants to hear.
  return [...prose.querySelectorAll(".prose-block")].flatMap((block) => ofBlock(block, language));
}

function ofBlock(block, language) {
  const first = block.firstChild;
  if (!first) return [];
  if (!kept.has(first)) kept.set(first, partsOf(block, /^en\b/i.test(language)).flatMap((part) => split(part, language)));
  return kept.get(first);
}

/** Paragraphs, items and headings, each by itself. */
function partsOf(root, english) {
  const parts = [""];
  const visit = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      parts[parts.length - 1] += node.textContent;
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(SKIPPED)) return;
    const shown = SHOWN.find(([selector]) => node.matches(selector));
    if (shown) {
      parts.push(english ? shown[1] : "", "");
    } else if (node.localName === "math") {
      parts[parts.length - 1] += english ? " a formula " : " … ";
    } else if (node.localName === "code" && !speakable(node.textContent)) {
      parts[parts.length - 1] += english ? " some code " : " … ";
    } else {
      const apart = node.matches(PARTS);
      if (apart) parts.push("");
      for (const child of node.childNodes) visit(child);
      if (apart) parts.push("");
    }
  };
  for (const child of root.childNodes) visit(child);
  return parts;
}

const speakable = (code) => code.length <= LONGEST_CODE && /^[\p{L}\p{N}\s_.,:'/()-]+$/u.test(code);

/** Of an address the host is said, a picture not at all. */
export function split(text, language) {
  const words = text.replace(ADDRESS, "$1").replace(PICTURES, "").replace(/[ \t\u00a0]+/g, " ").replace(/ ([.,;:!?])/g, "$1");
  return words.split("\n").flatMap((line) => segments(line, language)).map((sentence) => sentence.trim()).filter((sentence) => /[\p{L}\p{N}]/u.test(sentence));
}

function segments(line, language) {
  if (!Intl.Segmenter) return line.match(/[^.!?…]+[.!?…]*\s*/g) ?? [];
  let segmenter;
  try {
    segmenter = new Intl.Segmenter(language || undefined, { granularity: "sentence" });
  } catch {
    segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" });
  }
  return [...segmenter.segment(line)].map(({ segment }) => segment);
}
