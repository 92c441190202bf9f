"use strict";
(function () {
  const SURE = 0.9; // a belief above this is drawn as one large symbol
  const MOST_BARS = 8;
  // A crown in a square of 40, so that no font or emoji is needed.
  const dot = (x, y) => `M${x - 2.3} ${y}a2.3 2.3 0 1 0 4.6 0a2.3 2.3 0 1 0 -4.6 0Z`;
  const QUEEN = "M8 14 13 21.5 14.5 11 20 20 25.5 11 27 21.5 32 14 29.5 27H10.5ZM10.5 28.6H29.5V31.6H10.5Z" +
    dot(7.6, 12.6) + dot(14.4, 9.2) + dot(25.6, 9.2) + dot(32.4, 12.6);
  const SYMBOLS = "123456789ABCDEFGHIJKLMNOP";
  const predictions = JSON.parse(document.getElementById("viewer-data").textContent);
  const root = document.getElementById("viewer");
  let prediction, board, frame = 0, timer = null, paint = null;

  function html(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const name in attributes) node.setAttribute(name, attributes[name]);
    node.append(...children);
    return node;
  }
  function svg(parent, tag, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) node.setAttribute(name, attributes[name]);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }
  const symbol = (value) => (value >= 1 && value <= SYMBOLS.length ? SYMBOLS[value - 1] : String(value));

  // ---- boards: each draws the fixed parts and returns a function that paints a frame ----

  function write(parent, x, y, size, text, more) {
    return svg(parent, "text", Object.assign({
      x, y, "font-size": size, "text-anchor": "middle", "dominant-baseline": "central", fill: "var(--ink)",
    }, more), text);
  }

  /** Variables are rows and values are columns: queens on a chess board, or any task without its own board. */
  function drawRows(parent, queens) {
    const unit = 40, rows = board.query.length, columns = prediction.values;
    const margin = queens ? 1 : 34;
    parent.setAttribute("viewBox", `0 0 ${columns * unit + margin + 1} ${rows * unit + 2}`);
    const cells = [];
    for (let r = 0; r < rows; r++) {
      if (!queens) write(parent, margin / 2, (r + 0.5) * unit, 13, String(r + 1), { fill: "var(--muted)" });
      cells.push([]);
      for (let c = 0; c < columns; c++) {
        const x = margin + c * unit, y = 1 + r * unit;
        svg(parent, "rect", { x, y, width: unit, height: unit, stroke: "var(--line)", fill: queens && (r + c) % 2 ? "var(--tint)" : "var(--paper)" });
        const heat = svg(parent, "rect", { x, y, width: unit, height: unit, fill: "var(--accent)", "fill-opacity": 0 });
        const frameOf = svg(parent, "rect", { x: x + 2, y: y + 2, width: unit - 4, height: unit - 4, rx: 4, fill: "none", "stroke-width": 2.5 });
        const mark = queens ? svg(parent, "path", { d: QUEEN, transform: `translate(${x} ${y})` }) : write(parent, x + unit / 2, y + unit / 2, 15, symbol(c + 1));
        cells[r].push({ heat, frameOf, mark });
      }
    }
    return function (belief, answer, wrong) {
      cells.forEach((row, r) => row.forEach((cell, c) => {
        const given = board.query[r] === c + 1, taken = answer[r] === c + 1;
        cell.heat.setAttribute("fill-opacity", given ? 0.1 : 0.38 * belief[r][c]);
        cell.mark.setAttribute("opacity", given || taken ? 1 : belief[r][c] < 0.01 ? 0 : 0.15 + 0.5 * belief[r][c]);
        cell.mark.setAttribute("fill", given ? "var(--ink)" : taken && wrong[r] ? "var(--wrong)" : "var(--accent)");
        cell.frameOf.setAttribute("stroke", taken && wrong[r] ? "var(--wrong)" : given ? "var(--muted)" : "none");
      }));
    };
  }

  /** A square grid of cells, with boxes (Sudoku) or with signs between cells (Futoshiki). */
  function drawGrid(parent, boxes) {
    const n = prediction.size, unit = 46, gap = boxes ? 0 : 22, pitch = unit + gap, side = n * pitch - gap;
    const far = board.relations.filter(([a, b]) => Math.abs(a - b) !== n && !(Math.abs(a - b) === 1 && Math.floor(a / n) === Math.floor(b / n)));
    parent.setAttribute("viewBox", `-3 -3 ${side + 6} ${side + 6 + (far.length ? 26 : 0)}`);
    const minis = Math.ceil(Math.sqrt(prediction.values)), cells = [];
    for (let v = 0; v < n * n; v++) {
      const x = (v % n) * pitch, y = Math.floor(v / n) * pitch, given = board.query[v] > 0;
      svg(parent, "rect", { x, y, width: unit, height: unit, rx: boxes ? 0 : 5, stroke: "var(--line)", fill: given ? "var(--tint)" : "var(--paper)" });
      const frameOf = svg(parent, "rect", { x: x + 2, y: y + 2, width: unit - 4, height: unit - 4, rx: 4, fill: "none", "stroke-width": 2.5 });
      const large = write(parent, x + unit / 2, y + unit / 2 + 1, 25, given ? symbol(board.query[v]) : "", { "font-weight": given ? 700 : 400 });
      const small = [];
      for (let d = 0; d < prediction.values && !given; d++) {
        const at = (k) => 4 + ((k + 0.5) * (unit - 8)) / minis;
        small.push(write(parent, x + at(d % minis), y + at(Math.floor(d / minis)), minis > 3 ? 9 : 12, symbol(d + 1), { fill: "var(--accent)", opacity: 0 }));
      }
      cells.push({ frameOf, large, small, given });
    }
    if (boxes) {
      const tall = prediction.options.box_rows || 0, wide = prediction.options.box_columns || 0;
      const rule = { stroke: "var(--ink)", "stroke-width": 2.2, "stroke-linecap": "square" };
      for (let k = 0; wide && k <= n; k += wide) svg(parent, "line", Object.assign({ x1: k * unit, x2: k * unit, y1: 0, y2: side }, rule));
      for (let k = 0; tall && k <= n; k += tall) svg(parent, "line", Object.assign({ y1: k * unit, y2: k * unit, x1: 0, x2: side }, rule));
    }
    for (const [a, b] of board.relations) {
      const low = Math.min(a, b), x = (low % n) * pitch, y = Math.floor(low / n) * pitch;
      const sign = { "font-weight": 700, fill: "var(--muted)" };
      if (far.some((pair) => pair[0] === a && pair[1] === b)) continue;
      if (Math.abs(a - b) === 1) write(parent, x + unit + gap / 2, y + unit / 2, 20, a < b ? "<" : ">", sign);
      else {
        const cx = x + unit / 2, cy = y + unit + gap / 2;
        write(parent, cx, cy, 20, a < b ? "<" : ">", Object.assign({ transform: `rotate(90 ${cx} ${cy})` }, sign));
      }
    }
    const place = (v) => `r${Math.floor(v / n) + 1}c${(v % n) + 1}`;
    if (far.length) write(parent, side / 2, side + 16, 13, far.map(([a, b]) => `${place(a)} < ${place(b)}`).join(", "), { fill: "var(--muted)" });
    return function (belief, answer, wrong) {
      cells.forEach((cell, v) => {
        const bad = wrong[v];
        cell.frameOf.setAttribute("stroke", bad ? "var(--wrong)" : "none");
        if (cell.given) return;
        const sure = answer[v] > 0 && belief[v][answer[v] - 1] >= SURE;
        cell.large.textContent = sure ? symbol(answer[v]) : "";
        cell.large.setAttribute("fill", bad ? "var(--wrong)" : "var(--accent)");
        cell.small.forEach((mini, d) => {
          mini.setAttribute("opacity", sure || belief[v][d] < 0.01 ? 0 : 0.18 + 0.82 * belief[v][d]);
          mini.setAttribute("font-weight", answer[v] === d + 1 ? 700 : 400);
        });
      });
    };
  }

  // ---- the page around the board ----

  const option = (text, i) => html("option", { value: i }, text);
  const whichRun = html("select", { id: "viewer-run" }, ...predictions.map((p, i) => option(p.title, i)));
  const whichBoard = html("select", { id: "viewer-board" });
  const place = html("div", { class: "board" });
  const slider = html("input", { type: "range", min: 0, step: 1, id: "viewer-step", "aria-label": "Step" });
  const button = (id, text, label) => html("button", { type: "button", id: `viewer-${id}`, "aria-label": label, title: label }, text);
  const first = button("first", "«", "First step"), back = button("back", "‹", "One step back");
  const next = button("next", "›", "One step on"), last = button("last", "»", "Last step"), play = button("play", "Play", "Play");
  const status = html("p", { class: "status", "aria-live": "polite" });
  const bars = html("div", { class: "bars" });
  const legend = html("ul", { class: "legend" },
    ...[["var(--tint)", "given"], ["color-mix(in srgb, var(--accent) 40%, transparent)", "belief: the stronger, the surer"], ["var(--wrong)", "differs from the closest solution"]]
      .map(([colour, text]) => html("li", {}, html("b", { style: `background:${colour}` }), text)));
  root.append(
    html("div", { class: "choose" }, html("label", {}, "Run", whichRun), html("label", {}, "Query", whichBoard)),
    html("div", {}, place, html("div", { class: "controls" }, first, back, slider, next, last, play)),
    html("div", {}, status, bars, legend));

  function closest(answer) {
    const agree = board.solutions.map((solution) => solution.reduce((sum, value, v) => sum + (value === answer[v] ? 1 : 0), 0));
    return { agree, at: agree.indexOf(Math.max(...agree)) };
  }

  function show() {
    const answer = board.answers[frame], valid = board.valid[frame], total = board.query.length;
    const { agree, at } = closest(answer);
    const reached = at >= 0 && agree[at] === total;
    // An answer that keeps every rule has no wrong cells, listed or not.
    const wrong = answer.map((value, v) => !valid && (at >= 0 ? value !== board.solutions[at][v] : value === 0));
    paint(board.belief[frame], answer, wrong);
    slider.value = frame;
    slider.setAttribute("aria-valuetext", `step ${board.steps[frame]}`);
    const apart = total - (at >= 0 ? agree[at] : 0);
    const of = `solution ${at + 1} of ${board.solutions.length}`;
    const lastStep = board.steps[board.steps.length - 1];
    const verdict = valid ? html("span", { class: "valid" }, reached ? `✓ ${of}` : "✓ a valid solution that is not listed")
      : html("span", { class: "invalid" }, at >= 0 ? `✗ ${apart} of ${total} ${apart === 1 ? "differs" : "differ"} from ${of}` : "✗ not a solution");
    status.replaceChildren(html("b", {}, `Step ${board.steps[frame]} of ${lastStep}`), html("br"), verdict);
    status.dataset.step = board.steps[frame];
    const order = agree.map((_, i) => i).slice(0, Math.max(MOST_BARS, 0));
    if (at >= MOST_BARS) order[MOST_BARS - 1] = at;
    bars.replaceChildren(...order.flatMap((i) => [
      html("span", { class: i === at ? (reached ? "closest reached" : "closest") : "" }, `Solution ${i + 1}`),
      html("div", { class: "bar" }, html("i", { style: `width:${(100 * agree[i]) / total}%` })),
      html("span", {}, `${agree[i]} / ${total}`),
    ]));
    [first, back].forEach((b) => { b.disabled = frame === 0; });
    [next, last].forEach((b) => { b.disabled = frame === board.steps.length - 1; });
  }

  function go(to) {
    frame = Math.min(Math.max(to, 0), board.steps.length - 1);
    show();
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    play.setAttribute("aria-label", "Play");
  }
  function toggle() {
    if (timer !== null) return stop();
    if (frame === board.steps.length - 1) go(0);
    play.textContent = "Pause";
    play.setAttribute("aria-label", "Pause");
    timer = setInterval(() => { if (frame >= board.steps.length - 1) stop(); else go(frame + 1); }, 350);
  }
  function openBoard() {
    stop();
    board = prediction.boards[whichBoard.value];
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", `${prediction.task} board`);
    const grid = prediction.size * prediction.size === board.query.length;
    if (prediction.task === "sudoku" && grid) paint = drawGrid(picture, true);
    else if (prediction.task === "futoshiki" && grid) paint = drawGrid(picture, false);
    else paint = drawRows(picture, prediction.task === "nqueens");
    place.replaceChildren(picture);
    slider.max = board.steps.length - 1;
    [first, back, slider, next, last, play].forEach((control) => { control.hidden = board.steps.length < 2; });
    go(0);
  }
  function openRun() {
    prediction = predictions[whichRun.value];
    whichBoard.replaceChildren(...prediction.boards.map((b, i) => option(`${i + 1}: ${b.solutions.length} listed solution${b.solutions.length === 1 ? "" : "s"}`, i)));
    openBoard();
  }

  whichRun.addEventListener("change", openRun);
  whichBoard.addEventListener("change", openBoard);
  slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
  first.addEventListener("click", () => { stop(); go(0); });
  back.addEventListener("click", () => { stop(); go(frame - 1); });
  next.addEventListener("click", () => { stop(); go(frame + 1); });
  last.addEventListener("click", () => { stop(); go(board.steps.length - 1); });
  play.addEventListener("click", toggle);
  root.addEventListener("keydown", (event) => {
    if (event.target.tagName === "SELECT" || (event.target === slider && event.key !== " ")) return;
    const to = { ArrowLeft: frame - 1, ArrowRight: frame + 1, Home: 0, End: board.steps.length - 1 }[event.key];
    if (to !== undefined) { stop(); go(to); }
    else if (event.key === " " && event.target.tagName !== "BUTTON") toggle();
    else return;
    event.preventDefault();
  });
  openRun();
})();
