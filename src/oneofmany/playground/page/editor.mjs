// The board that people edit: a canvas, and over it a grid of cells for mouse, touch, keyboard and screen readers.

import { layoutOf, paint } from "./painter.mjs";
import { symbol } from "./text.mjs";

const inPercent = (part) => `${100 * part}%`;
const KEYS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export class Editor {
  /** element: where the board goes; change(values, relations): called with every edit. */
  constructor(element, change) {
    this.change = change;
    this.canvas = element.querySelector("canvas");
    this.grid = element.querySelector("[role=grid]");
    this.signs = element.querySelector(".signs");
    this.grid.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Show a board: { problem, values, relations }. */
  show(board) {
    const other = this.board?.problem !== board.problem;
    this.board = board;
    if (other) this.#build();
    this.label();
  }

  /** Draw what the network believes, see painter.paint. */
  paint(view) {
    paint(this.canvas, view);
  }

  #build() {
    const { problem } = this.board;
    const { size, side, gap, at } = layoutOf(problem);
    const box = (element, x, y, width, height) => {
      Object.assign(element.style, { left: inPercent(x), top: inPercent(y), width: inPercent(width), height: inPercent(height) });
    };
    this.cells = [];
    const rows = Array.from({ length: size }, (_, r) => {
      const row = document.createElement("div");
      row.role = "row";
      for (let c = 0; c < size; c++) {
        const cell = document.createElement("div");
        const index = r * size + c;
        cell.role = "gridcell";
        cell.tabIndex = -1;
        cell.dataset.cell = index;
        box(cell, ...at(index), side, side);
        cell.addEventListener("click", () => this.#press(index));
        cell.addEventListener("focus", () => this.#focused(index));
        this.cells.push(cell);
        row.append(cell);
      }
      return row;
    });
    this.selected = 0;
    this.#focused(0);
    this.grid.replaceChildren(...rows);
    this.grid.setAttribute("aria-label", `Board of ${size} rows and ${size} columns`);
    const signs = [];
    for (let cell = 0; problem.task === "futoshiki" && cell < size * size; cell++) {
      const [x, y] = at(cell);
      if ((cell + 1) % size) signs.push(this.#sign(cell, cell + 1, (one) => box(one, x + side, y, gap, side)));
      if (cell + size < size * size) signs.push(this.#sign(cell, cell + size, (one) => box(one, x, y + side, side, gap)));
    }
    this.signs.replaceChildren(...signs);
    this.signs.hidden = !signs.length;
  }

  #sign(a, b, place) {
    const button = document.createElement("button");
    button.tabIndex = -1; // keys: < > ^ v in a cell
    button.dataset.sign = `${a}-${b}`;
    place(button);
    button.addEventListener("click", () => {
      const { relations } = this.board;
      const has = (c, d) => relations.some((pair) => pair[0] === c && pair[1] === d);
      this.#relate(a, b, has(a, b) ? [b, a] : has(b, a) ? null : [a, b]);
    });
    return button;
  }

  /** Put one relation, or none, between two cells. */
  #relate(a, b, pair) {
    const others = this.board.relations.filter(([c, d]) => !(c === a && d === b) && !(c === b && d === a));
    this.change(this.board.values, pair ? [...others, pair] : others);
  }

  #focused(index) {
    this.cells[this.selected].tabIndex = -1;
    this.cells[this.selected].removeAttribute("aria-selected");
    this.selected = index;
    this.cells[index].tabIndex = 0;
    // Where the pad and the keys put a value: seen also while a button has the focus.
    if (this.board.problem.task !== "nqueens") this.cells[index].setAttribute("aria-selected", "true");
  }

  #press(index) {
    this.cells[index].focus();
    const { problem, values } = this.board;
    if (problem.task !== "nqueens") return;
    const [row, column] = [Math.floor(index / problem.size), index % problem.size];
    this.#set(row, values[row] === column + 1 ? 0 : column + 1);
  }

  #set(variable, value) {
    if (this.board.values[variable] === value) return;
    this.change(this.board.values.with(variable, value), this.board.relations);
  }

  /** Put a value into the selected cell. */
  enter(value) {
    if (this.board.problem.task !== "nqueens") this.#set(this.selected, value);
  }

  #key(event) {
    const { problem, relations } = this.board;
    const { size, task } = problem;
    const at = this.selected;
    const [row, column] = [Math.floor(at / size), at % size];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    let handled = true;
    if (KEYS[event.key] || event.key === "Home" || event.key === "End") {
      const [down, right] = KEYS[event.key] ?? [0, event.key === "Home" ? -column : size - 1 - column];
      const to = [row + down, column + right];
      if (to.every((part) => part >= 0 && part < size)) this.cells[to[0] * size + to[1]].focus();
    } else if (["Backspace", "Delete", ".", "0"].includes(event.key)) {
      const here = task === "nqueens" ? row : at;
      if (task !== "nqueens" || this.board.values[row] === column + 1) this.#set(here, 0);
    } else if (task === "nqueens") {
      if (["Enter", " ", "q", "Q"].includes(event.key)) this.#press(at);
      else handled = false;
    } else if (task === "futoshiki" && "<>^v".includes(event.key)) {
      const across = "<>".includes(event.key);
      const other = across ? at + 1 : at + size;
      if (across ? column < size - 1 : row < size - 1) {
        const pair = "<^".includes(event.key) ? [at, other] : [other, at];
        const same = relations.some(([a, b]) => a === pair[0] && b === pair[1]);
        this.#relate(at, other, same ? null : pair);
      }
    } else {
      const value = event.key.length === 1 ? Array.from({ length: size }, (_, v) => symbol(v + 1)).indexOf(event.key.toUpperCase()) + 1 : 0;
      if (value) this.#set(at, value);
      else handled = false;
    }
    if (handled) event.preventDefault();
  }

  /** Name every cell for screen readers: its place, its given or the network's answer. */
  label(answer = null) {
    const { problem, values, relations } = this.board;
    const { size, task } = problem;
    this.cells.forEach((cell, i) => {
      const [row, column] = [Math.floor(i / size), i % size];
      const here = (board) => (task === "nqueens" ? board[row] === column + 1 && "queen" : board[i] && symbol(board[i]));
      const given = here(values);
      const own = !given && answer && here(answer);
      const said = given ? `${given}, given` : own ? `${own}, answer` : "empty";
      cell.setAttribute("aria-label", `Row ${row + 1}, column ${column + 1}: ${said}`);
    });
    for (const button of this.signs.children) {
      const [a, b] = button.dataset.sign.split("-").map(Number);
      const name = (cell) => `row ${Math.floor(cell / size) + 1} column ${(cell % size) + 1}`;
      const pair = relations.find(([c, d]) => (c === a && d === b) || (c === b && d === a));
      const said = pair ? (pair[0] === a ? "is smaller than" : "is larger than") : "has no inequality with";
      button.setAttribute("aria-label", `${name(a)} ${said} ${name(b)}`);
      button.toggleAttribute("data-set", Boolean(pair));
    }
  }
}
