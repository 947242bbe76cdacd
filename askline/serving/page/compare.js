// The Compare tab: the same candidates ranked by two rankers, side by side.

import { call, element, ms, percent, score, show, working } from "./shared.js";
import { press, selectableList, stageReport } from "./stages.js";

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
  const requests = ["ranker-a", "ranker-b"].map((id) => call("/v1/ask", { ...body, ranker: field(id).value }));
  const results = await Promise.all(requests);
  const [a, b] = results.map((result) => result.candidates.map((candidate) => candidate.index));
  const columns = [];
  const selectInBoth = (index) => columns.forEach((each) => each.select(index));
  columns.push(column(results[0], b, selectInBoth), column(results[1], a, selectInBoth));
  show(
    place,
    element("p", { class: "hint" }, agreement(a, b)),
    element("div", { class: "columns" }, ...columns.map((each) => each.section)),
  );
}

function agreement(a, b) {
  if (a[0] === b[0]) return "Both rankers put the same candidate first.";
  return `They differ: the first ranker's best is number ${b.indexOf(a[0]) + 1} of the second, the second ranker's best is number ${a.indexOf(b[0]) + 1} of the first.`;
}

// Selecting a candidate shows it, and its score at each stage, in both columns.
function column(result, other, selectInBoth) {
  const stages = stageReport(result);
  const rows = result.candidates.map((candidate, position) => {
    const last = candidate.stage_scores.at(-1);
    const side = element(
      "span",
      { class: "moved" },
      element("b", {}, result.stages[last.stage]?.calibrated ? percent(last.score) : score(last.score)),
      element("br"),
      moved(position, other.indexOf(candidate.index)),
    );
    return { candidate, parts: [`${position + 1}`, candidate.text, side], dropped: stages.droppedAt(candidate) > 0 };
  });
  const list = selectableList(rows, "ranked", (candidate) => selectInBoth(candidate.index));
  const buttons = [...list.querySelectorAll("button")];
  const select = (index) => {
    press(buttons, buttons.find((button) => Number(button.dataset.index) === index));
    stages.select(result.candidates.find((candidate) => candidate.index === index));
  };
  const title = element("h2", {}, element("code", {}, result.ranker), ` ${ms(result.ms)}`);
  return { section: element("section", { class: "card" }, title, list, stages.section), select };
}

function moved(here, there) {
  if (there < 0 || here === there) return "same rank";
  return there > here ? `↑ ${there - here} higher` : `↓ ${here - there} lower`;
}
