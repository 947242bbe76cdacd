// The Ask tab: a question, the sentence that answers it, and the stages that selected it.

import { call, count, element, percent, score, show, working } from "./shared.js";
import { stageExplanation } from "./stages.js";

const OWN = "your text";
const MOST_AROUND = 400; // characters shown before and after an answer
const PAGE = 2000; // sentences of a source shown at once, the most that one request returns
const form = document.getElementById("ask-form");
const question = document.getElementById("question");
const text = document.getElementById("text");
const place = document.getElementById("ask-result");
let hasDocuments = true; // false if the documents are on another server

export function startAsking(info) {
  hasDocuments = info?.has_documents ?? true;
  if (info && !info.has_index) {
    document.getElementById("own-text").open = true;
    text.placeholder = "This service has no index. Paste a text to answer from.";
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (matchMedia("(pointer: coarse)").matches) question.blur(); // else the on-screen keyboard hides the answer
    working(form, place, ask);
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !typing && !document.getElementById("ask").hidden) {
      event.preventDefault();
      question.focus();
    }
  });
}

async function ask() {
  const body = { question: question.value, explain: true, top_k: 4 };
  if (text.value.trim()) body.documents = [{ id: OWN, text: text.value }];
  const result = await call("/v1/ask", body);
  const [best, ...others] = result.answers.filter((answer) => answer.above_threshold);
  const below = result.answers.filter((answer) => !answer.above_threshold);
  show(
    place,
    best ? answerCard(best, result) : noAnswer(result, below[0]),
    others.length ? answerList("Next best", others) : null,
    best && below.length ? answerList(`Below the threshold of ${percent(result.threshold)}`, below) : null,
    stageExplanation(result),
  );
}

function answerCard(best, result) {
  return element("article", { class: "card answer" }, paragraph(best), meta(best, result));
}

function noAnswer(result, best) {
  const why = best
    ? `No candidate is likely to answer the question: the best one has a probability of ${percent(best.probability)}, below the threshold of ${percent(result.threshold)}.`
    : "No sentence shares a word with the question.";
  return element(
    "article",
    { class: "card none" },
    element("p", {}, element("strong", {}, "No answer found")),
    element("p", {}, why),
    best && element("details", {}, element("summary", {}, "Show the best candidate"), paragraph(best), meta(best, result)),
  );
}

function paragraph(answer) {
  const { phrase } = answer;
  const characters = Array.from(answer.text); // offsets count code points, not UTF-16 units
  const cut = (start, end) => characters.slice(start, end).join("");
  const sentence = phrase
    ? [cut(0, phrase.start), element("mark", {}, cut(phrase.start, phrase.end)), cut(phrase.end)]
    : [answer.text];
  return element(
    "blockquote",
    { dir: "auto" },
    answer.before && `${clipStart(answer.before)} `,
    element("span", { class: "sentence" }, ...sentence),
    answer.after && ` ${clipEnd(answer.after)}`,
  );
}

const clipStart = (around) => (around.length > MOST_AROUND ? `… ${around.slice(-MOST_AROUND)}` : around);
const clipEnd = (around) => (around.length > MOST_AROUND ? `${around.slice(0, MOST_AROUND)} …` : around);

function meta(answer, result) {
  const probability = answer.probability;
  const sure =
    probability === null
      ? element("span", {}, `score ${score(answer.score)}`)
      : element(
          "span",
          {},
          "probability ",
          element("meter", { min: 0, max: 1, low: result.threshold ?? 0.5, optimum: 1, value: probability, "aria-hidden": "true" }),
          ` ${percent(probability)}`,
        );
  const by = `by ${rankedBy(result)}`;
  return element("p", { class: "meta" }, sourceLink(answer), answer.source.heading || null, sure, by);
}

// The last stage of a cascade is bm25 only if the text is in a language that it cannot read.
function rankedBy(result) {
  const isFallback = result.stages.at(-1)?.ranker === "bm25" && !result.ranker.includes("bm25");
  return isFallback ? "bm25, because there is no model for this language" : result.ranker;
}

function sourceLink(answer) {
  const { document: id, title, unit, number, record } = answer.source;
  if (!hasDocuments && id !== OWN) return element("span", {}, title ? `${title}, id ${id}` : `id ${id}`);
  const name = id.split(/[\\/]/).at(-1);
  const label = `${name}, ${unit} ${number}${record ? `, ${record}` : ""}`;
  if (id === OWN) return element("span", {}, label);
  const href = `/v1/documents/${id.split("/").map(encodeURIComponent).join("/")}`;
  return element("a", { href, title: id, onclick: (event) => openSource(event, href, name, answer) }, label);
}

async function openSource(event, href, name, answer) {
  event.preventDefault();
  const dialog = document.getElementById("source");
  const content = document.getElementById("source-text");
  const title = document.getElementById("source-title");
  title.textContent = name;
  show(content, element("p", { class: "empty" }, "Loading …"));
  dialog.showModal();
  try {
    const first = await firstShown(href, answer.source.start);
    const { sentences } = await call(`${href}?first=${first}&limit=${PAGE}`);
    if (first || sentences.length === PAGE)
      title.append(element("span", { class: "hint" }, ` shown: sentences ${count(first + 1)} to ${count(first + sentences.length)}`));
    show(content, ...paragraphs(sentences, answer.source));
    content.querySelector(".sentence")?.scrollIntoView({ block: "center" });
  } catch (error) {
    show(content, element("p", {}, error.message));
  }
}

// The number of the first sentence to show: 0 if the answer is on the first page, else at least a
// quarter of a page before it. An answer has no number, so a bisection finds it by its offset.
async function firstShown(href, start) {
  const reaches = async (number) => (await call(`${href}?first=${number}&limit=1`)).sentences[0]?.start <= start;
  let [low, high] = [0, PAGE];
  while (await reaches(high)) [low, high] = [high, 2 * high];
  while (low && high - low > PAGE / 2) {
    const middle = (low + high) / 2;
    if (await reaches(middle)) low = middle;
    else high = middle;
  }
  return low && low - PAGE / 4;
}

function paragraphs(sentences, source) {
  const made = [];
  let last = null;
  for (const sentence of sentences) {
    const start = sentence.is_heading || !made.length || last.number !== sentence.number || last.is_heading;
    if (start) made.push(element(sentence.is_heading ? "h3" : "p", { dir: "auto" }));
    else made.at(-1).append(" ");
    const own = sentence.start === source.start && sentence.end === source.end;
    made.at(-1).append(element("span", { class: own ? "sentence" : null }, sentence.text));
    last = sentence;
  }
  return made;
}

const probabilityText = (answer) => (answer.probability === null ? null : ` · ${percent(answer.probability)}`);

function answerList(title, answers) {
  const lines = answers.map((answer) =>
    element("li", {}, element("bdi", {}, answer.text), " ", element("span", { class: "hint" }, sourceLink(answer), probabilityText(answer))),
  );
  return element("section", {}, element("h2", {}, title), element("ol", { class: "plain next" }, ...lines));
}
