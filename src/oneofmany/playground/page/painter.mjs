// Draws boards on canvases: givens, beliefs, answers, broken rules.

import { boxShape, cellOf } from "./problem.mjs";
import { symbol } from "./text.mjs";

const CROWN = [3, 22, 1, 7, 7.5, 13, 12.5, 3, 17.5, 13, 24, 7, 22, 22]; // in a box of 25 by 25
const GAP = 0.36; // between the cells of a Futoshiki, as a share of a cell
const FAINT = 0.025; // less likely values are not drawn

/** Where the cells of a board of width 1 are: { columns, side, at(cell) -> [x, y] }. */
export function layoutOf({ task, size }) {
  const gap = task === "futoshiki" ? GAP : 0;
  const side = 1 / (size + gap * (size - 1));
  const at = (cell) => [(cell % size) * side * (1 + gap), Math.floor(cell / size) * side * (1 + gap)];
  return { size, side, gap: gap * side, at };
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement("i");
  document.body.append(probe);
  const found = {};
  for (const name of ["paper", "ink", "muted", "line", "field", "accent", "first", "second", "wrong", "wash"]) {
    probe.style.color = style.getPropertyValue(`--${name}`);
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

let palette = null;
const views = new WeakMap(); // of canvases; a canvas that left the page is forgotten with its view
const sizes = new ResizeObserver((entries) =>
  entries.forEach(({ target }) => (target.isConnected ? repaint(target) : sizes.unobserve(target))),
);

/** Draw all boards again, in the colours of the theme. */
export function repaintAll() {
  palette = null;
  document.querySelectorAll("canvas").forEach(repaint);
}

/**
 * Draw a board on a canvas, now and when its size changes.
 * view: { problem, given, relations, belief, values, broken, hue } - `given` [R] are the givens, `belief` [C] is drawn
 * as opacity, else `values` [R]. `broken` is what problem.broken returns. `hue(choice)` names the colour of a choice.
 */
export function paint(canvas, view) {
  if (!views.has(canvas)) sizes.observe(canvas);
  views.set(canvas, view);
  repaint(canvas);
}

function repaint(canvas) {
  const view = views.get(canvas);
  const width = canvas.clientWidth;
  if (!view || !width) return;
  palette ??= colours();
  const sharp = Math.min(3, devicePixelRatio || 1);
  const pixels = Math.round(width * sharp);
  if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
  const context = canvas.getContext("2d");
  context.setTransform(pixels / width, 0, 0, pixels / width, 0, 0);
  context.clearRect(0, 0, width, width);
  const board = { context, width, ...layoutOf(view.problem), view };
  board.cell = board.side * width;
  drawFields(board);
  (view.problem.task === "nqueens" ? drawQueens : drawValues)(board);
  if (view.problem.task === "futoshiki") drawRelations(board);
}

function drawFields({ context, width, cell, size, at, view }) {
  const { task } = view.problem;
  const wrong = view.broken?.cells ?? new Set();
  for (let i = 0; i < size * size; i++) {
    const [x, y] = at(i).map((part) => part * width);
    const shaded = task === "nqueens" ? (Math.floor(i / size) + (i % size)) % 2 : view.given[i];
    context.fillStyle = wrong.has(i) ? palette.wash : shaded ? palette.field : palette.paper;
    if (task === "futoshiki") {
      rounded(context, x + 0.5, y + 0.5, cell - 1, cell - 1, cell * 0.12);
      context.fill();
      context.strokeStyle = wrong.has(i) ? palette.wrong : palette.line;
      context.lineWidth = wrong.has(i) ? 2 : 1;
      context.stroke();
    } else {
      context.fillRect(x, y, cell + 0.5, cell + 0.5);
    }
  }
  if (task !== "futoshiki") drawLines(context, width, size, task);
  if (task !== "futoshiki") {
    context.strokeStyle = palette.wrong;
    context.lineWidth = Math.max(1, cell * 0.05);
    for (const i of wrong) {
      const [x, y] = at(i).map((part) => part * width);
      context.strokeRect(x + 1, y + 1, cell - 2, cell - 2);
    }
  }
}

function drawLines(context, width, size, task) {
  const [high, wide] = task === "sudoku" ? boxShape(size) : [size, size];
  const line = (at, thick, across) => {
    context.strokeStyle = thick ? palette.muted : palette.line;
    context.lineWidth = thick ? Math.max(1.2, width / 250) : 1;
    context.beginPath();
    if (across) context.moveTo(0, at), context.lineTo(width, at);
    else context.moveTo(at, 0), context.lineTo(at, width);
    context.stroke();
  };
  for (const thick of task === "sudoku" ? [false, true] : [true]) {
    for (let i = 1; i < size; i++) {
      if ((i % high === 0) === thick) line((i * width) / size, thick, true);
      if ((i % wide === 0) === thick) line((i * width) / size, thick, false);
    }
  }
  context.strokeStyle = palette.muted;
  context.lineWidth = Math.max(1.5, width / 200);
  context.strokeRect(0.5, 0.5, width - 1, width - 1);
}

function rounded(context, x, y, width, height, radius) {
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
}

function colourOf(view, choice) {
  if (view.broken?.cells.has(cellOf(view.problem, choice)) && !view.hue) return palette.wrong;
  return palette[view.hue?.(choice) ?? "accent"];
}

function drawQueens({ context, width, cell, size, at, view }) {
  const queen = (choice, colour, opacity) => {
    const [x, y] = at(choice).map((part) => part * width);
    const scale = (cell * 0.78) / 25;
    context.globalAlpha = opacity;
    context.fillStyle = colour;
    context.beginPath();
    for (let i = 0; i < CROWN.length; i += 2) {
      context.lineTo(x + cell * 0.11 + CROWN[i] * scale, y + cell * 0.11 + CROWN[i + 1] * scale);
    }
    context.fill();
    context.globalAlpha = 1;
  };
  for (let row = 0; row < size; row++) {
    if (view.given[row]) {
      queen(row * size + view.given[row] - 1, palette.ink, 1);
      continue;
    }
    for (let column = 0; column < size; column++) {
      const choice = row * size + column;
      const sure = view.belief ? view.belief[choice] : Number(view.values?.[row] === column + 1);
      if (sure > FAINT) queen(choice, colourOf(view, choice), 0.06 + 0.94 * sure);
    }
  }
}

function drawValues({ context, width, cell, size, at, view }) {
  const columns = Math.ceil(Math.sqrt(size));
  const rows = Math.ceil(size / columns);
  const crowded = cell / columns < 7.5; // too small for several values in a cell
  context.textAlign = "center";
  context.textBaseline = "middle";
  const write = (text, x, y, height, colour, opacity, weight) => {
    context.globalAlpha = opacity;
    context.fillStyle = colour;
    context.font = `${weight} ${height}px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif`;
    context.fillText(text, x, y + height * 0.05);
    context.globalAlpha = 1;
  };
  for (let i = 0; i < size * size; i++) {
    const [x, y] = at(i).map((part) => part * width);
    const [midX, midY] = [x + cell / 2, y + cell / 2];
    if (view.given[i]) {
      write(symbol(view.given[i]), midX, midY, cell * 0.62, palette.ink, 1, 650);
      continue;
    }
    let best = 0;
    if (view.belief) for (let v = 1; v < size; v++) if (view.belief[i * size + v] > view.belief[i * size + best]) best = v;
    for (let v = 0; v < size; v++) {
      const choice = i * size + v;
      const sure = view.belief ? view.belief[choice] : Number(view.values?.[i] === v + 1);
      if (sure < FAINT || (crowded && view.belief && v !== best)) continue;
      // A value starts as a small mark in its own corner of the cell, and grows towards the middle.
      const grown = crowded ? 1 : sure * sure * (3 - 2 * sure);
      const markX = x + (cell * ((v % columns) + 0.5)) / columns;
      const markY = y + (cell * (Math.floor(v / columns) + 0.5)) / rows;
      const height = cell * ((0.86 / columns) * (1 - grown) + 0.58 * grown);
      const place = [markX + (midX - markX) * grown, markY + (midY - markY) * grown];
      write(symbol(v + 1), ...place, height, colourOf(view, choice), 0.22 + 0.78 * sure, 500);
    }
  }
}

function drawRelations({ context, width, cell, gap, at, view }) {
  const wrong = new Set(view.broken?.relations ?? []);
  view.relations.forEach(([a, b], i) => {
    const [ax, ay] = at(a).map((part) => part * width + cell / 2);
    const [bx, by] = at(b).map((part) => part * width + cell / 2);
    const [x, y] = [(ax + bx) / 2, (ay + by) / 2];
    const far = Math.hypot(bx - ax, by - ay) > cell * 1.6;
    const arm = Math.max(3, gap * width * 0.3);
    context.save();
    context.translate(x, y);
    context.rotate(Math.atan2(by - ay, bx - ax)); // the tip of the sign points to the smaller cell
    context.strokeStyle = wrong.has(i) ? palette.wrong : palette.ink;
    context.lineWidth = Math.max(1.5, cell * 0.05);
    context.lineCap = context.lineJoin = "round";
    context.beginPath();
    context.moveTo(arm * 0.8, -arm), context.lineTo(-arm * 0.8, 0), context.lineTo(arm * 0.8, arm);
    context.stroke();
    context.restore();
    if (far) {
      // Cells that are not neighbours: a line between them.
      context.strokeStyle = palette.line;
      context.beginPath();
      context.moveTo(ax, ay), context.lineTo(bx, by);
      context.stroke();
    }
  });
}
