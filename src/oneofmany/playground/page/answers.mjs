// The answers of a board: their exact number and list, and the different ones that the network has found.

import { paint } from "./painter.mjs";

const keyOf = (values) => values.join(",");

export class Answers {
  /** elements: count, found, listed, exact, tries; show(values): called when an answer is clicked. */
  constructor(elements, show) {
    Object.assign(this, { elements, show });
  }

  /** Start anew for a board: { problem, values, relations }. */
  reset(board) {
    Object.assign(this, { board, found: new Map(), tries: 0, exact: null, shown: null, hue: null });
    this.#draw();
  }

  /** Tell the exact result: { total, complete, listed }; `hue` colours its solutions, see painter.paint. */
  counted(exact, hue = null) {
    Object.assign(this, { exact, hue });
    this.#draw();
  }

  /** Add an answer of the network; `valid` ones join the strip. */
  add(values, valid) {
    this.tries++;
    this.shown = keyOf(values);
    if (valid && !this.found.has(this.shown)) this.found.set(this.shown, values);
    this.#draw();
  }

  /** Whether all solutions are found. */
  get complete() {
    return Boolean(this.exact?.complete) && this.found.size >= this.exact.total;
  }

  #draw() {
    const { count, found, listed, exact: details, tries } = this.elements;
    const exact = this.exact;
    const number = exact?.total.toLocaleString("en");
    if (!exact) count.textContent = "Counting the right answers …";
    else if (!exact.total && exact.complete) count.textContent = "This board has no right answer.";
    else if (exact.complete) count.innerHTML = `This board has exactly <b>${number}</b> right answer${exact.total > 1 ? "s" : ""}.`;
    else count.innerHTML = `This board has more than <b>${number}</b> right answers.`;
    const of = exact?.complete && exact.total ? ` of ${number}` : "";
    tries.textContent = this.tries
      ? `${this.found.size}${of} found in ${this.tries} start${this.tries > 1 ? "s" : ""}`
      : "";
    const boards = [...this.found.values()];
    found.replaceChildren(...boards.map((values, i) => this.#thumbnail(values, `Answer ${i + 1}`, boards[0])));
    details.hidden = !exact?.listed.length;
    const named = exact?.listed ?? [];
    details.firstElementChild.textContent = exact?.complete && exact.total === named.length
      ? `Exact list of the solutions (${number})`
      : `The first ${named.length} solutions`;
    listed.replaceChildren(
      ...named.map((values, i) => this.#thumbnail(values, `${i + 1}${this.found.has(keyOf(values)) ? " ✓ found" : ""}`, named[0])),
    );
  }

  /** A small board; the cells in which it differs from the first one are coloured. */
  #thumbnail(values, name, first) {
    const { problem, relations } = this.board;
    const item = document.createElement("li");
    const button = document.createElement("button");
    const canvas = document.createElement("canvas");
    const differs = (choice) => values[Math.floor(choice / problem.values)] !== first[Math.floor(choice / problem.values)];
    if (keyOf(values) === this.shown) button.setAttribute("aria-current", "true");
    button.setAttribute("aria-label", `Show ${name}`);
    button.append(canvas, Object.assign(document.createElement("span"), { textContent: name }));
    button.addEventListener("click", () => {
      this.shown = keyOf(values);
      this.show(values);
      this.#draw();
    });
    item.append(button);
    const hue = this.hue ?? ((choice) => (differs(choice) ? "second" : "accent"));
    const view = { problem, given: this.board.values, relations, values, hue };
    requestAnimationFrame(() => paint(canvas, view));
    return item;
  }
}
