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
    this.#forget();
    this.#draw();
  }

  /** Tell the exact result: { total, complete, more, listed }; `hue` colours its solutions, see painter.paint. */
  counted(exact, hue = null) {
    Object.assign(this, { exact, hue });
    this.#forget();
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

  /** Forget the small boards, so that all are drawn again. */
  #forget() {
    this.items = { found: new Map(), listed: new Map() };
    for (const name of Object.keys(this.items)) this.elements[name].replaceChildren();
  }

  #draw() {
    const { count, exact: details, tries } = this.elements;
    const exact = this.exact;
    const number = exact?.total.toLocaleString("en");
    if (!exact) count.textContent = "Counting the right answers …";
    else if (!exact.total && exact.complete) count.textContent = "This board has no right answer.";
    else if (exact.complete) count.innerHTML = `This board has exactly <b>${number}</b> right answer${exact.total > 1 ? "s" : ""}.`;
    else if (exact.more) count.innerHTML = `This board has more than <b>${number}</b> right answers.`;
    else if (exact.total) count.innerHTML = `This board has at least <b>${number}</b> right answer${exact.total > 1 ? "s" : ""}; counting all takes too long.`;
    else count.textContent = "No right answer was found in the time for counting; there may be some.";
    const of = exact?.complete && exact.total ? ` of ${number}` : "";
    tries.textContent = this.tries
      ? `${this.found.size}${of} found in ${this.tries} start${this.tries > 1 ? "s" : ""}`
      : "";
    this.#strip("found", [...this.found.values()], (_, i) => `Answer ${i + 1}`);
    details.hidden = !exact?.listed.length;
    const named = exact?.listed ?? [];
    details.firstElementChild.textContent = exact?.complete && exact.total === named.length
      ? `Exact list of the solutions (${number})`
      : `The first ${named.length} solutions`;
    this.#strip("listed", named, (key, i) => `${i + 1}${this.found.has(key) ? " ✓ found" : ""}`);
  }

  /** Show some boards as small ones; those that are there already stay, and with them the focus. */
  #strip(list, boards, nameOf) {
    boards.forEach((values, i) => {
      const key = keyOf(values);
      let item = this.items[list].get(key);
      if (!item) {
        item = this.#thumbnail(values, boards[0]);
        this.items[list].set(key, item);
        this.elements[list].append(item);
      }
      const button = item.firstChild;
      const name = nameOf(key, i);
      button.lastChild.textContent = name;
      button.setAttribute("aria-label", `Show ${list === "found" ? name : `solution ${name}`}`);
      key === this.shown ? button.setAttribute("aria-current", "true") : button.removeAttribute("aria-current");
    });
  }

  /** A small board; the cells in which it differs from the first one are coloured. */
  #thumbnail(values, first) {
    const { problem, relations } = this.board;
    const item = document.createElement("li");
    const button = document.createElement("button");
    const canvas = document.createElement("canvas");
    const differs = (choice) => values[Math.floor(choice / problem.values)] !== first[Math.floor(choice / problem.values)];
    button.append(canvas, document.createElement("span"));
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
