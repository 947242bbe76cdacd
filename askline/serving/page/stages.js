// The stages of a ranking drawn as bars, with the scores of the selected candidate.

import { count, element, ms, percent, score } from "./shared.js";

// The section that shows the stages of a result. `select` shows the scores of one candidate in it.
export function stageReport(result) {
  const stages = result.stages.map((stage) => ({ ...stage, scoreLabel: element("span", { class: "stage-score off" }) }));
  const most = Math.max(1, ...stages.map((stage) => stage.entered));
  const scored = Math.max(0, ...(result.candidates ?? []).map((each) => each.stage_scores.at(-1)?.stage ?? 0));
  const total = `${count(stages[0]?.entered ?? 0)} candidates, ${ms(result.ms)}`;
  const section = element(
    "section",
    { class: "stages", "aria-label": "Stages" },
    element("h2", {}, `${result.no_answer ? "Candidates considered" : "How the answer was found"}: ${total}`),
    element("ol", { class: "plain" }, ...stages.map((stage) => row(stage, most))),
  );
  const summary = (candidate) =>
    candidate.stage_scores
      .map((each) => `${each.stage + 1}: rank ${each.rank}, ${scoreText(each, stages[each.stage])}`)
      .join(" · ");
  return {
    section,
    summary,
    select: (candidate) => showScores(candidate, stages, scored),
    droppedAt: (candidate) => droppedAt(candidate, stages, scored),
  };
}

// The number of the stage that dropped a candidate, from 1; 0 if none did. It is the last that scored it, unless that
// one dropped none: later stages may read only some of the candidates once more. Nor did it, if it is the last stage
// that scored any candidate: `scored`.
function droppedAt(candidate, stages, scored) {
  const last = stages[candidate.stage_scores.at(-1)?.stage ?? 0];
  return last && last.stage < scored && last.dropped ? last.stage + 1 : 0;
}

export function stageExplanation(result) {
  const stages = stageReport(result);
  if (!result.candidates?.length) return stages.section;
  const rows = result.candidates.map((candidate, position) => {
    const stage = stages.droppedAt(candidate);
    const dropped = stage ? `dropped at stage ${stage}` : "";
    const summary = element("span", { class: "summary" }, stages.summary(candidate));
    const text = element("span", { dir: "auto" }, candidate.text, summary);
    return { candidate, parts: [`${position + 1}`, text, element("span", { class: "left" }, dropped)] };
  });
  stages.section.append(
    element("h2", {}, "Select a candidate to see its score at each stage"),
    selectableList(rows, "candidates", stages.select),
  );
  return stages.section;
}

// A list whose rows can be selected with the mouse, by touch, or with the arrow keys.
export function selectableList(rows, kind, select) {
  const buttons = rows.map(({ candidate, parts, dropped }, position) => {
    const [number, text, side] = parts;
    const button = element(
      "button",
      { type: "button", class: dropped ? "dropped" : null, "aria-pressed": "false", tabindex: position ? "-1" : "0" },
      element("span", { class: "rank" }, number),
      element("span", { dir: "auto" }, text),
      side,
    );
    button.dataset.index = candidate.index;
    for (const event of ["focus", "mouseenter", "click"])
      button.addEventListener(event, () => {
        press(buttons, button);
        select(candidate);
      });
    return button;
  });
  const list = element("ol", { class: `plain ${kind}` }, ...buttons.map((button) => element("li", {}, button)));
  list.addEventListener("keydown", (event) => moveFocus(event, buttons));
  return list;
}

export function press(buttons, pressed) {
  for (const button of buttons) {
    button.setAttribute("aria-pressed", String(button === pressed));
    button.tabIndex = button === pressed ? 0 : -1;
  }
}

function row(stage, most) {
  // Bar widths are logarithmic: on a linear scale the last stages would be invisible.
  const width = (number) => `${(100 * Math.log1p(number)) / Math.log1p(most)}%`;
  const kept = element("i");
  const bar = element("div", { class: "bar", "aria-hidden": "true" }, kept);
  bar.style.width = width(stage.entered);
  kept.style.width = `${(100 * Math.log1p(stage.kept)) / Math.log1p(Math.max(1, stage.entered))}%`;
  const skipped = stage.skipped ? `, ${count(stage.skipped)} not scored before the deadline` : "";
  const text = `${count(stage.entered)} in, ${count(stage.dropped)} dropped${skipped} · ${ms(stage.ms)}`;
  return element(
    "li",
    { class: "stage" },
    element(
      "span",
      {},
      element("span", { class: "rank" }, `${stage.stage + 1} `),
      element("code", {}, stage.ranker),
      stage.in_context ? "in context " : " ",
      element("span", { class: "counts" }, text),
    ),
    stage.scoreLabel,
    bar,
  );
}

function moveFocus(event, buttons) {
  const current = buttons.indexOf(document.activeElement);
  const next = { ArrowDown: current + 1, ArrowUp: current - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (next === undefined || !buttons[next]) return;
  event.preventDefault();
  buttons[next].focus();
}

// A percentage if the scores of the stage are probabilities.
function scoreText(stageScore, stage) {
  return stage?.calibrated ? percent(stageScore.score) : `score ${score(stageScore.score)}`;
}

function showScores(candidate, stages, scored) {
  const last = droppedAt(candidate, stages, scored);
  for (const stage of stages) {
    const own = candidate.stage_scores.find((each) => each.stage === stage.stage);
    const wentOn = candidate.stage_scores.some((each) => each.stage > stage.stage);
    stage.scoreLabel.classList.toggle("off", !own);
    if (own) {
      const dropped = stage.stage + 1 === last ? ", dropped" : "";
      stage.scoreLabel.textContent = `rank ${own.rank}, ${scoreText(own, stage)}${dropped}`;
    } else if (wentOn) stage.scoreLabel.textContent = "not scored, passed on";
    else stage.scoreLabel.textContent = last ? "not reached" : "not scored";
  }
}
