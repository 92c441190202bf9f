// The same board for three networks that differ only in their objective, beside the average of all answers.

import { paint } from "./painter.mjs";
import { broken } from "./problem.mjs";
import { TASKS } from "./story.mjs";

const OBJECTIVES = {
  naive: ["Naive", "learns all answers at once"],
  minloss: ["MinLoss", "learns the nearest answer"],
  selectr: ["SelectR", "learns a chosen answer"],
};

const percent = ({ correct, total }) => `${Math.round((100 * correct) / total)} %`;

export class Comparison {
  /** element: where the four boards go; client: the worker; accuracy: of the small networks, by task and
   * objective; open(task, size): shows a random board. */
  constructor(element, note, client, accuracy, open) {
    Object.assign(this, { client, accuracy, note, open, figures: {} });
    const figure = (name, title, about) => {
      const made = document.createElement("figure");
      const heading = Object.assign(document.createElement("h3"), { textContent: title });
      const canvas = Object.assign(document.createElement("canvas"), { role: "img" });
      canvas.setAttribute("aria-label", title);
      const caption = document.createElement("figcaption");
      made.append(heading, canvas, caption);
      this.figures[name] = { made, heading, canvas, caption, title, about };
      return made;
    };
    const average = figure("average", "Average of all", "");
    average.className = "target";
    element.append(average, ...Object.entries(OBJECTIVES).map(([name, [title, about]]) => figure(name, title, about)));
  }

  /** Run the three networks on a board; `hue` colours their queens. */
  async start(board, seed, hue) {
    this.board = board;
    this.frames = { naive: [], minloss: [], selectr: [] };
    this.hue = hue;
    const { problem, values, relations } = board;
    const message = { task: problem.task, size: problem.size, values, relations, seed, patience: 0 };
    await Promise.all(
      Object.keys(OBJECTIVES).map((name) => {
        const frames = this.frames[name];
        return this.client.ask("solve", name, { ...message, network: `${problem.task}-${name}` }, (part) => {
          frames.push(part);
        });
      }),
    );
    if (this.board === board) this.show(this.at ?? Infinity);
  }

  /** Stop, and show a board without beliefs. */
  clear(board) {
    this.board = board;
    this.at = null;
    this.#about();
    this.frames = { naive: [], minloss: [], selectr: [] };
    for (const name of Object.keys(OBJECTIVES)) {
      this.client.stop(name);
      this.#draw(name, { belief: null, values: null, broken: null });
      this.figures[name].caption.textContent = "";
    }
    this.average(null);
  }

  /** Show a step of all three networks; beyond the last step, their answers. */
  show(step) {
    this.at = step;
    for (const [name, frames] of Object.entries(this.frames ?? {})) {
      if (!frames.length) continue;
      const { problem, relations } = this.board;
      const frame = frames[Math.min(step, frames.length) - 1];
      const wrong = broken(problem, frame.board, relations);
      this.#draw(name, { belief: frame.belief, values: frame.board, broken: wrong });
      this.#verdict(name, wrong.rules);
    }
  }

  #verdict(name, rules) {
    const { canvas, caption, title, about } = this.figures[name];
    const said = rules ? `✗ breaks ${rules} rule${rules > 1 ? "s" : ""}` : "✓ a right answer";
    const mark = Object.assign(document.createElement("b"), { textContent: said, className: rules ? "bad" : "good" });
    const { task } = this.board.problem;
    const { ms: score, size } = this.accuracy[task][name];
    caption.replaceChildren(mark, `${about}; right on ${percent(score)} of ${score.total} test boards of ${TASKS[task].board(size)} with several answers`);
    canvas.setAttribute("aria-label", `${title}: ${said.slice(2)}`);
  }

  /** Show the average of all solutions: { total, complete, average }. */
  average(count) {
    const { caption, canvas, heading } = this.figures.average;
    this.#draw("average", { belief: count?.total ? count.average : null, values: null, broken: null });
    const total = count?.total ?? 0;
    const all = !total || count.complete;
    heading.textContent = !all ? "Average of some" : total === 1 ? "The answer" : total === 2 ? "Average of both" : "Average of all";
    caption.textContent = !total ? (count?.complete ? "There is none." : "") : !all ? `the first ${total.toLocaleString("en")} answers; Naive is trained to believe the average of all`
      : total === 1 ? "There is only one, so nothing to average." : `of ${total.toLocaleString("en")} answers: what Naive is trained to believe`;
    canvas.setAttribute("aria-label", `${heading.textContent}: ${caption.textContent}`);
  }

  #draw(name, view) {
    const { problem, values, relations } = this.board;
    paint(this.figures[name].canvas, { problem, given: values, relations, hue: this.hue, ...view });
  }

  #about() {
    const { task, size } = this.board.problem;
    const trained = this.accuracy[task].naive;
    const where = TASKS[task].board(trained.size);
    this.note.textContent =
      `Three small networks, trained for this page: the same data (${where}), the same number of updates, the same ` +
      "noise. Only the objective differs. ";
    if (trained.size !== size) {
      const button = Object.assign(document.createElement("button"), { textContent: `Show them on ${where}` });
      button.addEventListener("click", () => this.open(task, trained.size));
      this.note.append("This board has another size, so all of them may be wrong here. ", button);
    }
  }
}
