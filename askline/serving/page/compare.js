// The second tab: the same candidates by two rankers, side by side.

import { call, element, ms, percent, score, show, working } from "./shared.js";
import { pointable, press, stagesOf } from "./funnel.js";

const form = document.getElementById("compare-form");
const place = document.getElementById("compare-result");
const field = (id) => document.getElementById(id);

export function startComparing(info) {
  if (info) {
    const names = [...new Set([...info.models.map((model) => model.id), ...info.rankers])];
    field("rankers").replaceChildren(...names.map((name) => element("option", { value: name })));
    field("ranker-a").value = info.models[0].id;
    field("ranker-b").value = names.find((name) => name === "bm25") ?? names.at(-1);
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    working(form, place, compare);
  });
}

async function compare() {
  const documents = field("candidates").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!documents.length) throw new Error("There must be at least one candidate.");
  const body = { question: field("compare-question").value, documents, split: false, explain: true };
  const asked = ["ranker-a", "ranker-b"].map((id) => call("/v1/ask", { ...body, ranker: field(id).value }));
  const results = await Promise.all(asked);
  const [a, b] = results.map((result) => result.candidates.map((candidate) => candidate.index));
  const columns = [];
  const point = (index) => columns.forEach((each) => each.point(index));
  columns.push(column(results[0], b, point), column(results[1], a, point));
  show(
    place,
    element("p", { class: "hint" }, agreement(a, b)),
    element("div", { class: "columns" }, ...columns.map((each) => each.section)),
  );
}

function agreement(a, b) {
  if (a[0] === b[0]) return "Both put the same candidate first.";
  return `They differ: what each puts first, the other has at ${b.indexOf(a[0]) + 1} and ${a.indexOf(b[0]) + 1}.`;
}

// Pointing at a candidate shows it in both columns, with what each stage of either thought of it.
function column(result, other, pointBoth) {
  const stages = stagesOf(result);
  const lines = result.candidates.map((candidate, place) => {
    const thought = candidate.thoughts.at(-1);
    const side = element(
      "span",
      { class: "moved" },
      element("b", {}, result.funnel[thought.stage]?.calibrated ? percent(thought.score) : score(thought.score)),
      element("br"),
      moved(place, other.indexOf(candidate.index)),
    );
    return { candidate, parts: [`${place + 1}`, candidate.text, side], dropped: thought.stage < stages.last };
  });
  const list = pointable(lines, "ranked", (candidate) => pointBoth(candidate.index));
  const buttons = [...list.querySelectorAll("button")];
  const point = (index) => {
    press(buttons, buttons.find((button) => Number(button.dataset.index) === index));
    stages.point(result.candidates.find((candidate) => candidate.index === index));
  };
  const title = element("h2", {}, element("code", {}, result.ranker), ` ${ms(result.ms)}`);
  return { section: element("section", { class: "card" }, title, list, stages.section), point };
}

function moved(here, there) {
  if (there < 0 || here === there) return "same place";
  return there > here ? `↑ ${there - here} higher` : `↓ ${here - there} lower`;
}
