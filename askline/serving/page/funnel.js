// The stages as a funnel, and what each of them thought of the candidate one points at.

import { count, element, ms, percent, score } from "./shared.js";

// The stages of a result, and `point`, which shows a candidate's way through them.
export function stagesOf(result) {
  const stages = result.funnel.map((stage) => ({ ...stage, thought: element("span", { class: "thought off" }) }));
  const most = Math.max(1, ...stages.map((stage) => stage.entered));
  const total = `${count(stages[0]?.entered ?? 0)} candidates, ${ms(result.ms)}`;
  const section = element(
    "section",
    { class: "funnel", "aria-label": "Funnel" },
    element("h2", {}, `${result.no_answer ? "What was looked at" : "How it was found"}: ${total}`),
    element("ol", { class: "plain" }, ...stages.map((stage) => row(stage, most))),
  );
  const way = (candidate) =>
    candidate.thoughts
      .map((each) => `${each.stage + 1}: place ${each.place}, ${judgement(each, stages[each.stage])}`)
      .join(" · ");
  return { section, way, point: (candidate) => pointAt(candidate, stages), last: stages.length - 1 };
}

export function funnel(result) {
  const stages = stagesOf(result);
  if (!result.candidates?.length) return stages.section;
  const lines = result.candidates.map((candidate, place) => {
    const seen = candidate.thoughts.at(-1)?.stage ?? 0;
    const left = seen < stages.last ? `dropped at stage ${seen + 1}` : "";
    const way = element("span", { class: "way" }, stages.way(candidate));
    const text = element("span", {}, candidate.text, way);
    return { candidate, parts: [`${place + 1}`, text, element("span", { class: "left" }, left)] };
  });
  stages.section.append(
    element("h2", {}, "Point at a candidate to see what each stage thought of it"),
    pointable(lines, "candidates", stages.point),
  );
  return stages.section;
}

// A list whose lines can be pointed at with a mouse, a finger, or the arrow keys.
export function pointable(lines, kind, point) {
  const buttons = lines.map(({ candidate, parts, dropped }, place) => {
    const [number, text, side] = parts;
    const button = element(
      "button",
      { type: "button", class: dropped ? "dropped" : null, "aria-pressed": "false", tabindex: place ? "-1" : "0" },
      element("span", { class: "place" }, number),
      element("span", {}, text),
      side,
    );
    button.dataset.index = candidate.index;
    for (const event of ["focus", "mouseenter", "click"])
      button.addEventListener(event, () => {
        press(buttons, button);
        point(candidate);
      });
    return button;
  });
  const list = element("ol", { class: `plain ${kind}` }, ...buttons.map((button) => element("li", {}, button)));
  list.addEventListener("keydown", (event) => walk(event, buttons));
  return list;
}

export function press(buttons, pressed) {
  for (const button of buttons) {
    button.setAttribute("aria-pressed", String(button === pressed));
    button.tabIndex = button === pressed ? 0 : -1;
  }
}

function row(stage, most) {
  // Wide stages are drawn by the logarithm, or the last of them could not be seen.
  const width = (number) => `${(100 * Math.log1p(number)) / Math.log1p(most)}%`;
  const kept = element("i");
  const bar = element("div", { class: "bar", "aria-hidden": "true" }, kept);
  bar.style.width = width(stage.entered);
  kept.style.width = `${(100 * Math.log1p(stage.kept)) / Math.log1p(Math.max(1, stage.entered))}%`;
  const skipped = stage.skipped ? `, ${count(stage.skipped)} not judged in time` : "";
  const text = `${count(stage.entered)} in, ${count(stage.dropped)} dropped${skipped} · ${ms(stage.ms)}`;
  return element(
    "li",
    { class: "stage" },
    element(
      "span",
      {},
      element("span", { class: "place" }, `${stage.stage + 1} `),
      element("code", {}, stage.ranker),
      " ",
      element("span", { class: "counts" }, text),
    ),
    stage.thought,
    bar,
  );
}

function walk(event, buttons) {
  const here = buttons.indexOf(document.activeElement);
  const there = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (there === undefined || !buttons[there]) return;
  event.preventDefault();
  buttons[there].focus();
}

// A chance where the stage's scores are chances.
function judgement(thought, stage) {
  return stage?.calibrated ? percent(thought.score) : `score ${score(thought.score)}`;
}

function pointAt(candidate, stages) {
  for (const stage of stages) {
    const thought = candidate.thoughts.find((each) => each.stage === stage.stage);
    const went = candidate.thoughts.some((each) => each.stage > stage.stage);
    stage.thought.classList.toggle("off", !thought);
    if (thought) {
      const fate = went || stage === stages.at(-1) ? "" : ", dropped";
      stage.thought.textContent = `place ${thought.place}, ${judgement(thought, stage)}${fate}`;
    } else stage.thought.textContent = went ? "passed on" : "not seen";
  }
}
