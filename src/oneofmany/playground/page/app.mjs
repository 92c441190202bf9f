// The page: one board, its network, the comparison, the answers and the story.

import { Answers } from "./answers.mjs";
import { Client } from "./client.mjs";
import { Comparison } from "./compare.mjs";
import { Editor } from "./editor.mjs";
import { repaintAll } from "./painter.mjs";
import { Player } from "./player.mjs";
import { SIZES, broken, isSolution, problemOf } from "./problem.mjs";
import { STORY, TASKS } from "./story.mjs";
import { fromHash, guessTask, linkedBoard, readBoard, symbol, toHash } from "./text.mjs";

const LIMIT = 20000; // solutions that are counted
const COUNTING = 3000; // milliseconds
const LISTED = 60; // solutions that are listed
const PATIENCE = 8;
const STARTS = 80; // of "find all"
const $ = (id) => document.getElementById(id);

const data = JSON.parse($("data").textContent);
const source = $("worker").textContent;
const [own, others] = [new Client(source), new Client(source)];
own.ask("files", "files", { files: data.files });
others.ask("files", "files", { files: data.files });

const undo = [];
let board = null; // { task, size, values, relations, problem }
let seed = 1;
let exact = null;
let fresh = null; // the newest answer of the network
let searching = null; // "find all" at work
let pending = 0;

const editor = new Editor($("board"), (values, relations) => change({ ...board, values, relations }));
const player = new Player(
  Object.fromEntries(["play", "back", "forward", "first", "slider", "speed"].map((name) => [name, $(name)])),
  showFrame,
);
const comparison = new Comparison($("compare"), $("compare-note"), others, data.accuracy.small, randomBoard);
const answers = new Answers(
  Object.fromEntries(["count", "found", "listed", "exact", "tries"].map((name) => [name, $(name)])),
  showAnswer,
);

// ---- the board -----------------------------------------------------------------------------------------------------

/** Show another board and run everything on it. */
function change(next, keep = true) {
  if (keep && board) undo.push(toHash(board));
  const { task, size, values, relations } = next;
  const other = board?.task !== task || board?.size !== size;
  board = { task, size, values, relations, problem: problemOf(task, size) };
  seed = 1;
  exact = fresh = null;
  stopSearching();
  if (other) showTask();
  editor.show(board);
  const hash = toHash(board);
  const story = STORY.findIndex((chapter) => chapter.hash === hash);
  tellStory(story);
  history.replaceState(null, "", hash);
  $("undo").disabled = !undo.length;
  answers.reset(board);
  player.reset();
  const wrong = broken(board.problem, board.values, board.relations);
  draw({ broken: wrong });
  comparison.hue = null;
  comparison.clear(board);
  own.stop("network");
  others.stop("count");
  clearTimeout(pending);
  for (const name of ["another", "all"]) $(name).disabled = Boolean(wrong.rules);
  if (wrong.rules) {
    player.pause();
    say("bad", "These givens contradict each other", "the broken rules are red");
    answers.counted({ total: 0, complete: true, listed: [] });
    return;
  }
  say("", "Thinking …");
  pending = setTimeout(() => begin(board), other || story >= 0 ? 0 : 200);
}

async function begin(asked) {
  solve(asked);
  const query = { task: asked.task, size: asked.size, values: asked.values, relations: asked.relations };
  const counting = others.ask("count", "count", { ...query, limit: LIMIT, keep: LISTED, milliseconds: COUNTING });
  comparison.start(asked, seed, null);
  const counted = await counting;
  if (!counted || asked !== board) return;
  exact = counted;
  comparison.hue = hue();
  answers.counted(exact, hue());
  comparison.average(exact);
  comparison.show(comparison.at ?? 1);
  if (player.at >= 0) showFrame(player.frames[player.at], player.done && player.at === player.frames.length - 1);
  if (hopeless()) for (const name of ["another", "all"]) $(name).disabled = true;
}

/** Whether the enumerator has found that there is no right answer. */
const hopeless = () => Boolean(exact?.complete) && !exact.total;

/** The colours of two solutions: blue, orange, and grey for what they share. */
function hue() {
  if (!exact?.complete || exact.total !== 2) return null;
  const [a, b] = exact.listed;
  const V = board.problem.values;
  return (choice) => {
    const [variable, value] = [Math.floor(choice / V), (choice % V) + 1];
    const [first, second] = [a[variable] === value, b[variable] === value];
    return first === second ? "muted" : first ? "first" : "second";
  };
}

function draw(view) {
  editor.paint({ problem: board.problem, given: board.values, relations: board.relations, hue: hue(), ...view });
}

/** Run the network on the board; resolves to its answer, or null if something newer was asked. */
async function solve(asked, quick = false) {
  const query = { task: asked.task, size: asked.size, values: asked.values, relations: asked.relations };
  keepAnswer();
  player.reset();
  const result = await own.ask("solve", "network", { ...query, network: asked.task, seed, patience: PATIENCE }, (part) =>
    player.add(part),
  );
  if (!result || asked !== board) return null;
  board.milliseconds = result.milliseconds;
  board.steps = result.steps;
  document.body.dataset.settled = result.milliseconds.toFixed(1);
  fresh = result.board;
  player.finish();
  if (quick) player.end();
  return result.board;
}

/** Put the newest answer among the answers, once its last step has been shown. */
function keepAnswer() {
  if (fresh) answers.add(fresh, isSolution(board.problem, fresh, board.values, board.relations));
  fresh = null;
}

function showFrame(frame, last) {
  const wrong = broken(board.problem, frame.board, board.relations);
  draw({ belief: frame.belief, values: frame.board, broken: wrong });
  comparison.show(last ? Infinity : frame.step);
  const rules = `${wrong.rules} rule${wrong.rules === 1 ? "" : "s"} broken`;
  if (!last) {
    say("", `Step ${frame.step}`, wrong.rules ? rules : "no rule broken");
    return;
  }
  keepAnswer();
  const time = `after ${board.steps} steps, ${Math.max(1, Math.round(board.milliseconds))} ms`;
  if (hopeless()) say("bad", "This board has no right answer", "the exact search has tried everything");
  else if (wrong.rules) say("bad", `✗ Not a right answer: ${rules}`, time);
  else say("good", "✓ A right answer", time);
  editor.label(frame.board);
}

function showAnswer(values) {
  player.pause();
  draw({ values, broken: broken(board.problem, values, board.relations) });
  say("good", "✓ A right answer", "");
  editor.label(values);
}

function say(kind, sentence, more = "") {
  const status = $("status");
  if (status.textContent === sentence + more && status.firstChild?.className === kind) return;
  const main = Object.assign(document.createElement("span"), { className: kind, textContent: sentence });
  status.replaceChildren(main, Object.assign(document.createElement("small"), { textContent: more }));
  // Steps are not read aloud, the result is.
  status.setAttribute("aria-live", kind ? "polite" : "off");
}

addEventListener("unhandledrejection", ({ reason }) => {
  const lacking = reason?.message?.includes("WebAssembly");
  say("bad", lacking ? "This browser cannot run the networks: it needs WebAssembly with SIMD" : "Something went wrong", reason?.message);
});

let hiding = 0;
function toast(sentence) {
  $("toast").textContent = sentence;
  clearTimeout(hiding);
  hiding = setTimeout(() => ($("toast").textContent = ""), 4000);
}

// ---- tasks and tools -----------------------------------------------------------------------------------------------

function option(value, text, chosen = false) {
  return new Option(text, value, chosen, chosen);
}

function showTask() {
  const task = TASKS[board.task];
  for (const tab of $("tasks").children) tab.setAttribute("aria-pressed", String(tab.dataset.task === board.task));
  $("size").replaceChildren(...SIZES[board.task].map((n) => option(n, `${n} × ${n}`, n === board.size)));
  $("examples").replaceChildren(option("", "Examples", true), ...task.examples.map(([name, hash]) => option(hash, name)));
  $("hint").textContent = task.hint;
  const numbers = board.task === "nqueens" ? [] : Array.from({ length: board.size }, (_, v) => v + 1);
  $("pad").replaceChildren(...[...numbers, ...(numbers.length ? [0] : [])].map(padButton));
  $("accuracy").innerHTML = accuracyOf(board.task, board.size);
}

function padButton(value) {
  const button = Object.assign(document.createElement("button"), { textContent: value ? symbol(value) : "⌫" });
  button.setAttribute("aria-label", value ? `Set ${symbol(value)}` : "Clear the cell");
  button.addEventListener("click", () => editor.enter(value));
  return button;
}

function accuracyOf(task, size) {
  const { correct, total, about } = data.accuracy.bundled[task][size];
  const share = ((100 * correct) / total).toFixed(1).replace(".0", "");
  return `On boards of this size (${about}) its first answer is right in <b>${share} %</b> of cases (${correct.toLocaleString("en")} of ${total.toLocaleString("en")}). Boards with fewer givens can be harder.`;
}

const blank = (task, size) => ({ task, size, values: Array(problemOf(task, size).variables).fill(0), relations: [] });

async function randomBoard(task, size) {
  const made = await own.ask("random", "random", { task, size, seed: Math.floor(Math.random() * 2 ** 31) });
  if (made) change(made);
}

for (const [task, { name, start }] of Object.entries(TASKS)) {
  const tab = Object.assign(document.createElement("button"), { textContent: name });
  tab.dataset.task = task;
  tab.addEventListener("click", () => board.task !== task && change(fromHash(TASKS[task].examples[0][1]) ?? blank(task, start)));
  $("tasks").append(tab);
}
$("size").addEventListener("change", () => randomBoard(board.task, Number($("size").value)));
$("random").addEventListener("click", () => randomBoard(board.task, board.size));
$("examples").addEventListener("change", () => {
  if ($("examples").value) change(fromHash($("examples").value));
  $("examples").value = "";
});
$("clear").addEventListener("click", () => change(blank(board.task, board.size)));
$("undo").addEventListener("click", goBack);
function goBack() {
  if (undo.length) change(fromHash(undo.pop()), false);
}
document.addEventListener("keydown", (event) => {
  if (event.key === "z" && (event.ctrlKey || event.metaKey) && event.target.id !== "text") {
    event.preventDefault();
    goBack();
  }
});
$("share").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    toast("The link is copied. It holds this board.");
  } catch {
    toast("The address of this page is the link: it holds this board.");
  }
});
addEventListener("hashchange", () => {
  const named = fromHash(location.hash);
  if (named && toHash(named) !== toHash(board)) change(named);
});

function useText(text) {
  const task = guessTask(text) ?? board.task;
  try {
    change(linkedBoard(text) ?? { task, ...readBoard(task, text) });
    $("text-error").textContent = "";
    return true;
  } catch (error) {
    $("text-error").textContent = error.message;
    $("paste").open = true;
    $("paste").scrollIntoView({ block: "nearest" });
    return false;
  }
}
$("read").addEventListener("click", () => useText($("text").value) && $("board").scrollIntoView({ block: "nearest" }));
document.addEventListener("paste", (event) => {
  const text = event.clipboardData?.getData("text") ?? "";
  if (event.target.id === "text" || !text.trim()) return;
  event.preventDefault();
  $("text").value = text;
  if (useText(text)) toast(`Pasted: ${TASKS[board.task].name}, ${board.size} × ${board.size}.`);
});

// ---- more answers --------------------------------------------------------------------------------------------------

function stopSearching() {
  searching = null;
  $("all").textContent = "Find all";
}
$("another").addEventListener("click", () => {
  stopSearching();
  seed++;
  solve(board);
});
$("all").addEventListener("click", async () => {
  if (searching) return stopSearching();
  const mine = (searching = {});
  $("all").textContent = "Stop";
  for (let start = 0; start < STARTS && searching === mine && !answers.complete; start++) {
    seed++;
    if (!(await solve(board, true))) break;
    await new Promise((resume) => setTimeout(resume, 60));
  }
  if (searching === mine) stopSearching();
});

// ---- the story -----------------------------------------------------------------------------------------------------

STORY.forEach((chapter, i) => {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.innerHTML = `<b>${i + 1}</b>${chapter.name}`;
  button.addEventListener("click", () => openChapter(i));
  item.append(button);
  $("steps").append(item);
});

function openChapter(i) {
  change(fromHash(STORY[i].hash));
}

let chapter = -1;
function tellStory(i) {
  chapter = i;
  [...$("steps").children].forEach(({ firstChild }, at) => {
    at === i ? firstChild.setAttribute("aria-current", "step") : firstChild.removeAttribute("aria-current");
  });
  $("told").innerHTML = STORY[i]?.told ?? "Your own board. The three boards of the story explain what you see.";
  $("onward").textContent = STORY[i]?.onward ?? "Tell me the story";
}
$("onward").addEventListener("click", () => {
  if (chapter < STORY.length - 1) openChapter(chapter + 1);
  else randomBoard("nqueens", 8);
});

// ---- light and dark ------------------------------------------------------------------------------------------------

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", repaintAll);
$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const now = root.dataset.theme ?? (dark.matches ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  repaintAll();
});

const linked = fromHash(location.hash);
linked ? change(linked) : openChapter(0);
