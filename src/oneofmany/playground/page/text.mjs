// Boards as text: reads what people paste, and the part of a link after #.

import { SIZES, problemOf } from "./problem.mjs";

const SYMBOLS = "123456789ABCDEFGHIJKLMNOP";
const BLANKS = ".0_xX*?-·";
const CELL = /[1-9A-Wa-wYyZz.0_xX*?\-·]/;
const NAMED = /r(\d{1,2})c(\d{1,2})\s*([<>])\s*r(\d{1,2})c(\d{1,2})/gi;

/** The text of a value, "." for 0. */
export const symbol = (value) => (value ? SYMBOLS[value - 1] : ".");

function valueOf(letter, size) {
  const single = letter.length === 1;
  if (single && BLANKS.includes(letter)) return 0;
  const value = single ? SYMBOLS.indexOf(letter.toUpperCase()) + 1 : 0;
  if (!value || value > size) throw new Error(`"${letter}" is not a value: expected 1 to ${symbol(size)}, or . for blank.`);
  return value;
}

/** Reads a board of a task from any text; throws an Error of one sentence. Returns { size, values, relations }. */
export function readBoard(task, text) {
  const clean = text.replace(/\r/g, "").replace(/^\s*#.*$/gm, "");
  if (!clean.trim()) throw new Error("There is no board in this text.");
  return task === "nqueens" ? readQueens(clean) : task === "sudoku" ? readSudoku(clean) : readFutoshiki(clean);
}

/** The task that a text looks like, or null: Futoshikis have inequalities, queens have a Q or are columns in a line. */
export function guessTask(text) {
  if (/[<>∧∨^]/.test(text)) return "futoshiki";
  if (/[Qq♛♕]/.test(text)) return "nqueens";
  return ["sudoku", "nqueens"].find((task) => reads(task, text)) ?? null;
}

function reads(task, text) {
  try {
    return Boolean(readBoard(task, text));
  } catch {
    return false;
  }
}

/** The size of a grid of cells of a task. */
function sizeOf(task, cells) {
  const size = Math.sqrt(cells.length);
  if (!SIZES[task].includes(size)) {
    const numbers = SIZES[task].map((n) => n * n);
    throw new Error(`The text has ${cells.length.toLocaleString("en")} cells: expected ${numbers.slice(0, -1).join(", ")} or ${numbers.at(-1)}.`);
  }
  return size;
}

/** The number of rows of a board of queens. */
function rowsOf({ length }) {
  if (SIZES.nqueens.includes(length)) return length;
  throw new Error(`The text has ${length.toLocaleString("en")} row${length === 1 ? "" : "s"}: expected 4 to 20, each with a column or . for blank.`);
}

function readQueens(text) {
  const lines = text.split("\n").map((line) => line.replace(/[|│┌┐└┘─]/g, "").trim()).filter(Boolean);
  if (lines.length === 1) {
    const fields = /[\s,]/.test(lines[0]) ? lines[0].split(/[\s,]+/).filter(Boolean) : [...lines[0]];
    const size = rowsOf(fields);
    const values = fields.map((field) => (/^\d+$/.test(field) ? Number(field) : valueOf(field, size)));
    if (values.some((value) => value > size)) throw new Error(`A column is larger than the board of ${size} rows.`);
    return { size, values, relations: [] };
  }
  const rows = lines.map((line) => [...line.replace(/\s/g, "")]);
  const size = rowsOf(rows);
  if (rows.some((row) => row.length !== size)) {
    throw new Error(`The board has ${size} rows, so each row needs ${size} cells: Q for a queen, . for an empty cell.`);
  }
  const values = rows.map((row, r) => {
    const columns = row.flatMap((cell, c) => ("Qq♛♕1".includes(cell) ? [c + 1] : []));
    if (columns.length > 1) throw new Error(`Row ${r + 1} has ${columns.length} queens: expected one at most.`);
    return columns[0] ?? 0;
  });
  return { size, values, relations: [] };
}

function readSudoku(text) {
  const lines = text.split("\n").filter((line) => !/^[\s|+─━│┃═║┌┐└┘├┤┬┴┼╔╗╚╝╠╣╦╩╬-]*$/.test(line));
  const cells = lines.flatMap(cellsOf);
  const size = sizeOf("sudoku", cells);
  return { size, values: cells.map((cell) => valueOf(cell, size)), relations: [] };
}

function cellsOf(line) {
  const words = line.replace(/[|│┃║]/g, " ").trim().split(/[\s,;]+/);
  // Numbers with two digits are the values from 10.
  if (words.every((word) => word.length <= 2) && words.some((word) => /^\d\d$/.test(word) && word !== "00")) {
    return words.map((word) => (/^\d+$/.test(word) ? (symbol(Number(word)) ?? word) : word));
  }
  const cells = [...words.join("")];
  const other = cells.find((cell) => !CELL.test(cell));
  if (other) throw new Error(`"${other}" is not a cell: expected a value, or . for blank.`);
  return cells;
}

function readFutoshiki(text) {
  const named = [...text.matchAll(NAMED)];
  const lines = text.replace(NAMED, "").split("\n").filter((line) => /\S/.test(line.replace(/[,;]/g, "")));
  const isSigns = (line) => /^[\s^v∧∨V]*$/.test(line);
  const rows = lines.filter((line) => !isSigns(line));
  const cells = rows.flatMap((line) => cellsOf(line.replace(/[<>]/g, " ")));
  const size = sizeOf("futoshiki", cells);
  const relations = [];
  const add = (a, b) => {
    if (!relations.some(([c, d]) => a === c && b === d)) relations.push([a, b]);
  };
  if (rows.length === size) drawnRelations(lines, isSigns, size, add);
  for (const [word, ...parts] of named) {
    const [r1, c1, r2, c2] = [0, 1, 3, 4].map((i) => Number(parts[i]));
    if ([r1, c1, r2, c2].some((i) => i < 1 || i > size)) throw new Error(`${word} names a cell outside of the board.`);
    const [a, b] = [(r1 - 1) * size + c1 - 1, (r2 - 1) * size + c2 - 1];
    parts[2] === "<" ? add(a, b) : add(b, a);
  }
  return { size, values: cells.map((cell) => valueOf(cell, size)), relations };
}

/** The relations of a drawing: < and > between the cells of a row, ^ and v between the rows. */
function drawnRelations(lines, isSigns, size, add) {
  let row = -1;
  let places = [];
  for (const line of lines) {
    if (isSigns(line)) {
      [...line].forEach((sign, at) => {
        const column = places.indexOf(at);
        if (sign === " ") return;
        if (column < 0 || row < 0 || row === size - 1) throw new Error(`The ${sign} below row ${row + 1} is not between two cells.`);
        const [upper, lower] = [row * size + column, (row + 1) * size + column];
        "^∧".includes(sign) ? add(upper, lower) : add(lower, upper);
      });
      continue;
    }
    row++;
    places = [...line].flatMap((letter, at) => (CELL.test(letter) ? [at] : []));
    for (let c = 0; c + 1 < size; c++) {
      const sign = line.slice(places[c] + 1, places[c + 1]).trim();
      const left = row * size + c;
      if (sign === "<") add(left, left + 1);
      else if (sign === ">") add(left + 1, left);
    }
  }
}

/** A board as the part of a link after #, and back; null if it holds no board. */
export function toHash({ task, size, values, relations }) {
  const pairs = relations.map(([a, b]) => `${a}-${b}`).join(",");
  return `#${task}/${size}/${values.map(symbol).join("")}${pairs && `/${pairs}`}`;
}

export function fromHash(hash) {
  try {
    const [task, given, cells = "", pairs = ""] = decodeURIComponent(hash.replace(/^#/, "")).split("/");
    const size = Number(given);
    if (!Object.hasOwn(SIZES, task) || !SIZES[task].includes(size)) return null;
    const { variables } = problemOf(task, size);
    const values = [...cells].map((cell) => valueOf(cell, size));
    const relations = pairs ? pairs.split(",").map((pair) => pair.split("-").map(Number)) : [];
    const inside = (cell) => Number.isInteger(cell) && cell >= 0 && cell < variables;
    const fits = relations.every((pair) => pair.length === 2 && pair.every(inside) && pair[0] !== pair[1]);
    const allowed = task === "futoshiki" || !pairs;
    return values.length === variables && fits && allowed ? { task, size, values, relations } : null;
  } catch {
    return null;
  }
}

/** The board of a link somewhere in a text; null if there is none. */
export const linkedBoard = (text) => fromHash(/#\w+\/\d+\/\S+/.exec(text)?.[0] ?? "");
