"use strict";
(function () {
  const SURE = 0.9; // a belief above this is drawn as one large symbol
  const MOST_BARS = 5;
  const LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
  const OBJECTIVES = ["naive", "random", "unique", "ccloss", "minloss", "iexplr", "selectr"];
  // A crown in a square of 40, so that no font or emoji is needed.
  const dot = (x, y) => `M${x - 2.3} ${y}a2.3 2.3 0 1 0 4.6 0a2.3 2.3 0 1 0 -4.6 0Z`;
  const QUEEN = "M8 14 13 21.5 14.5 11 20 20 25.5 11 27 21.5 32 14 29.5 27H10.5ZM10.5 28.6H29.5V31.6H10.5Z" +
    dot(7.6, 12.6) + dot(14.4, 9.2) + dot(25.6, 9.2) + dot(32.4, 12.6);
  const HUES = ["minloss", "unique", "iexplr", "ccloss", "selectr", "random", "naive"]; // of nodes, as in pictures
  const SYMBOLS = "123456789ABCDEFGHIJKLMNOP";
  const root = document.getElementById("viewer");
  const predictions = JSON.parse(document.getElementById("viewer-data").textContent);
  predictions.forEach((one) => {
    one.queries = JSON.stringify(one.boards.map((board) => [board.query, board.relations]));
    one.colour = OBJECTIVES.includes(one.objective) ? `var(--${one.objective})` : "var(--muted)";
    one.right = one.boards.map((board) => board.valid[board.valid.length - 1]);
    one.boards.forEach((board) => { board.belief = board.belief.map((text) => unpacked(text, one.values)); });
  });

  function unpacked(text, values) {
    const rows = [];
    for (let at = 0; at < text.length; at += values) {
      rows.push(Array.from(text.slice(at, at + values), (level) => LEVELS.indexOf(level) / (LEVELS.length - 1)));
    }
    return rows;
  }
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
  const symbol = (value, of) => (value < 1 || value > SYMBOLS.length || (of && of.values > Math.max(9, of.size)) ? String(value) : SYMBOLS[value - 1]);
  const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

  // ---- boards: each draws the fixed parts and returns a function that paints a frame ----

  function write(parent, x, y, size, text, more) {
    return svg(parent, "text", Object.assign({
      x, y, "font-size": size, "text-anchor": "middle", "dominant-baseline": "central", fill: "var(--ink)",
    }, more), text);
  }

  /** Variables are rows and values are columns: queens on a chess board, or any task without its own board. */
  function drawRows(parent, prediction, board, queens) {
    const unit = 40, rows = board.query.length, columns = prediction.values, names = prediction.names;
    const longest = (words) => Math.max(...words.map((word) => word.length));
    const margin = queens ? 1 : names ? 12 + 7 * longest(names.variables) : 34;
    const wide = names ? Math.max(unit, 12 + 8 * longest(names.values)) : unit;
    parent.setAttribute("viewBox", `0 0 ${columns * wide + margin + 1} ${rows * unit + 2}`);
    const cells = [];
    for (let r = 0; r < rows; r++) {
      if (!queens) write(parent, margin / 2, (r + 0.5) * unit, 13, names ? names.variables[r] : String(r + 1), { fill: "var(--muted)" });
      cells.push([]);
      for (let c = 0; c < columns; c++) {
        const x = margin + c * wide, y = 1 + r * unit;
        svg(parent, "rect", { x, y, width: wide, height: unit, stroke: "var(--line)", fill: queens && (r + c) % 2 ? "var(--tint)" : "var(--paper)" });
        const heat = svg(parent, "rect", { x, y, width: wide, height: unit, fill: prediction.colour, "fill-opacity": 0 });
        const frameOf = svg(parent, "rect", { x: x + 2, y: y + 2, width: wide - 4, height: unit - 4, rx: 4, fill: "none", "stroke-width": 2.5 });
        const mark = queens ? svg(parent, "path", { d: QUEEN, transform: `translate(${x} ${y})` }) : write(parent, x + wide / 2, y + unit / 2, names ? 13 : 15, names ? names.values[c] : symbol(c + 1));
        cells[r].push({ heat, frameOf, mark });
      }
    }
    return function (belief, answer, wrong) {
      cells.forEach((row, r) => row.forEach((cell, c) => {
        const given = board.query[r] === c + 1, taken = answer[r] === c + 1;
        cell.heat.setAttribute("fill-opacity", given ? 0 : 0.38 * belief[r][c]);
        cell.mark.setAttribute("opacity", given || taken ? 1 : belief[r][c] < 0.02 ? 0 : 0.15 + 0.5 * belief[r][c]);
        cell.mark.setAttribute("fill", given ? "var(--ink)" : taken && wrong[r] ? "var(--wrong)" : prediction.colour);
        cell.frameOf.setAttribute("stroke", taken && wrong[r] ? "var(--wrong)" : "none");
      }));
    };
  }

  /** A square grid of cells, with boxes (Sudoku, if it has any) or with signs between cells (Futoshiki). */
  function drawGrid(parent, prediction, board, boxes) {
    const n = prediction.size, unit = 46, gap = boxes ? 0 : 22, pitch = unit + gap, side = n * pitch - gap;
    const before = board.before || 0, absent = new Set(board.absent);
    const far = board.relations.filter(([a, b]) => Math.abs(a - b) !== n && !(Math.abs(a - b) === 1 && Math.floor(a / n) === Math.floor(b / n)));
    parent.setAttribute("viewBox", `${-3 - before} ${-3 - before} ${side + 6 + before} ${side + 6 + before + (far.length ? 26 : 0)}`);
    const minis = Math.ceil(Math.sqrt(prediction.values)), cells = [];
    for (let v = 0; v < n * n; v++) {
      const x = (v % n) * pitch, y = Math.floor(v / n) * pitch, given = board.query[v] > 0, black = absent.has(v);
      svg(parent, "rect", { x, y, width: unit, height: unit, rx: boxes ? 0 : 5, stroke: "var(--line)", fill: black ? "var(--muted)" : given ? "var(--tint)" : "var(--paper)" });
      const frameOf = svg(parent, "rect", { x: x + 2, y: y + 2, width: unit - 4, height: unit - 4, rx: 4, fill: "none", "stroke-width": 2.5 });
      const large = write(parent, x + unit / 2, y + unit / 2 + 1, 25, given && !black ? symbol(board.query[v], prediction) : "", { "font-weight": given ? 700 : 400 });
      const small = [];
      for (let d = 0; d < prediction.values && !given; d++) {
        const at = (k) => 4 + ((k + 0.5) * (unit - 8)) / minis;
        small.push(write(parent, x + at(d % minis), y + at(Math.floor(d / minis)), minis > 3 ? 36 / minis : 12, symbol(d + 1, prediction), { fill: prediction.colour, opacity: 0 }));
      }
      cells.push({ frameOf, large, small, given });
    }
    if (boxes) {
      const tall = prediction.options.box_rows || n, wide = prediction.options.box_columns || n;
      const rule = { stroke: "var(--ink)", "stroke-width": 2.2, "stroke-linecap": "square" };
      for (let k = 0; wide && k <= n; k += wide) svg(parent, "line", Object.assign({ x1: k * unit, x2: k * unit, y1: 0, y2: side }, rule));
      for (let k = 0; tall && k <= n; k += tall) svg(parent, "line", Object.assign({ y1: k * unit, y2: k * unit, x1: 0, x2: side }, rule));
    }
    for (const mark of board.marks || []) {
      const colour = `var(--${mark.on || "muted"})`, at = (k) => mark.line[k] - before;
      if (mark.line) svg(parent, "line", { x1: at(0), y1: at(1), x2: at(2), y2: at(3), stroke: colour, "stroke-width": 0.9 });
      else write(parent, mark.x - before, mark.y - before, mark.size, mark.text, { fill: colour, "text-anchor": mark.left ? "start" : "middle" });
    }
    for (const [a, b] of board.relations) {
      const low = Math.min(a, b), x = (low % n) * pitch, y = Math.floor(low / n) * pitch;
      const sign = { "font-weight": 700, fill: "var(--ink)" };
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
        cell.large.textContent = sure ? symbol(answer[v], prediction) : "";
        cell.large.setAttribute("fill", bad ? "var(--wrong)" : prediction.colour);
        cell.small.forEach((mini, d) => {
          mini.setAttribute("opacity", sure || belief[v][d] < 0.02 ? 0 : 0.18 + 0.82 * belief[v][d]);
          mini.setAttribute("font-weight", answer[v] === d + 1 ? 700 : 400);
        });
      });
    };
  }

  /** Nodes in the colours that are believed most, with the colours' numbers; givens have a thick outline. */
  function drawGraph(parent, prediction, board) {
    const unit = 62, radius = 13, at = board.places.map((place) => place.map((k) => unit * k + radius + 3));
    const far = (k) => Math.max(...at.map((place) => place[k])) + radius + 3;
    parent.setAttribute("viewBox", `0 0 ${far(0)} ${far(1)}`);
    const edges = board.relations.map(([a, b]) => svg(parent, "line", { x1: at[a][0], y1: at[a][1], x2: at[b][0], y2: at[b][1] }));
    const nodes = at.map(([cx, cy], v) => {
      svg(parent, "circle", { cx, cy, r: radius, fill: "var(--paper)" });
      const given = board.query[v] > 0, node = svg(parent, "circle", { cx, cy, r: radius, "stroke-width": given ? 2.6 : 1 });
      return { node, text: write(parent, cx, cy + 0.5, 13, "", { "font-weight": given ? 700 : 400 }) };
    });
    const hue = (value) => (value >= 1 && value <= HUES.length ? `var(--${HUES[value - 1]})` : "var(--muted)");
    return function (belief, answer, wrong) {
      const colours = answer.map((value, v) => board.query[v] || value);
      edges.forEach((edge, k) => {
        const [one, other] = board.relations[k].map((v) => colours[v]), same = one === other && one > 0;
        edge.setAttribute("stroke", same ? "var(--wrong)" : "var(--muted)");
        edge.setAttribute("stroke-width", same ? 3 : 1.2);
      });
      nodes.forEach(({ node, text }, v) => {
        const sure = board.query[v] > 0 ? 1 : answer[v] ? belief[v][answer[v] - 1] : 0;
        node.setAttribute("fill", hue(colours[v]));
        node.setAttribute("fill-opacity", 0.4 * sure);
        node.setAttribute("stroke", wrong[v] ? "var(--wrong)" : "var(--ink)");
        text.textContent = colours[v] || "";
        text.setAttribute("opacity", 0.3 + 0.7 * sure);
      });
    };
  }

  // ---- one side: a run's board with its verdict ----

  function makeSide(name) {
    const which = html("select", { id: `viewer-${name}`, "aria-label": `Run on the ${name}` });
    const chip = html("i", { class: "chip" });
    const place = html("div", { class: "board" });
    const status = html("p", { class: "status" });
    const bars = html("div", { class: "bars" });
    const node = html("div", { class: "side" }, html("label", {}, chip, which), place, status, bars);
    let paint = null, prediction = null, board = null;

    function open(of, at) {
      prediction = of;
      board = of.boards[at];
      chip.style.background = of.colour;
      node.style.setProperty("--own", of.colour);
      const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      picture.setAttribute("role", "img");
      picture.setAttribute("aria-label", `${of.label}: board of ${of.task}`);
      if (of.form === "graph") paint = drawGraph(picture, of, board);
      else if (of.form === "grid") paint = drawGrid(picture, of, board, of.task !== "futoshiki");
      else paint = drawRows(picture, of, board, of.task === "nqueens");
      place.replaceChildren(picture);
    }

    /** The run's last kept step that is not after this one. */
    function show(step) {
      let frame = 0;
      while (frame + 1 < board.steps.length && board.steps[frame + 1] <= step) frame++;
      const answer = board.answers[frame], valid = board.valid[frame];
      const absent = (board.absent || []).length, total = board.query.length - absent;  // absent cells are given
      const agree = board.solutions.map((solution) => solution.reduce((sum, value, v) => sum + (value === answer[v] ? 1 : 0), -absent));
      const at = agree.indexOf(Math.max(...agree)), reached = at >= 0 && agree[at] === total;
      // An answer that keeps every rule has no wrong cells, listed or not.
      const wrong = answer.map((value, v) => !valid && (at >= 0 ? value !== board.solutions[at][v] : value === 0));
      paint(board.belief[frame], answer, wrong);
      const apart = total - (at >= 0 ? agree[at] : 0), of = `solution ${at + 1} of ${board.solutions.length}`;
      const text = valid ? (reached ? `✓ right: ${of}` : "✓ right: a solution that is not listed")
        : at >= 0 ? `✗ wrong: ${apart} of ${total} ${apart === 1 ? "differs" : "differ"} from ${of}` : "✗ wrong: not a solution";
      status.replaceChildren(html("span", { class: valid ? "yes" : "no" }, text));
      status.dataset.step = board.steps[frame];
      const order = agree.map((_, i) => i).slice(0, MOST_BARS);
      if (at >= MOST_BARS) order[MOST_BARS - 1] = at;
      bars.replaceChildren(...order.flatMap((i) => [
        html("span", { class: i === at ? (reached ? "closest reached" : "closest") : "" }, `Solution ${i + 1}`),
        html("div", { class: "bar" }, html("i", { style: `width:${(100 * agree[i]) / total}%` })),
        html("span", {}, `${agree[i]} / ${total}`),
      ]));
    }
    return { node, which, open, show };
  }

  // ---- the page around the boards ----

  const left = makeSide("left"), right = makeSide("right");
  const queries = html("div", { class: "queries", role: "group", "aria-label": "Query" });
  const pair = html("div", { class: "pair" }, left.node, right.node);
  const slider = html("input", { type: "range", min: 0, step: 1, id: "viewer-step", "aria-label": "Step" });
  const button = (id, text, label) => html("button", { type: "button", id: `viewer-${id}`, "aria-label": label, title: label }, text);
  const first = button("first", "«", "First step"), back = button("back", "‹", "One step back");
  const next = button("next", "›", "One step on"), last = button("last", "»", "Last step"), play = button("play", "Play", "Play");
  const controls = html("div", { class: "controls" }, first, back, slider, next, last, play);
  const stepText = html("p", { class: "step", "aria-live": "polite" });
  const legend = html("ul", { class: "legend" },
    ...[["var(--ink)", "given"], ["linear-gradient(90deg, color-mix(in srgb, var(--muted) 15%, transparent), var(--muted))", "belief, in the run's colour: the stronger, the surer"], ["var(--wrong)", "differs from the closest solution"]]
      .map(([colour, text]) => html("li", {}, html("b", { style: `background:${colour}` }), text)));
  root.append(queries, pair, controls, stepText, legend);

  let one = 0, other = -1, query = 0, at = 0, steps = [1], timer = null;
  const compared = () => (other < 0 ? [predictions[one]] : [predictions[one], predictions[other]]);
  const partners = (i) => predictions.map((_, j) => j).filter((j) => j !== i && predictions[j].queries === predictions[i].queries);
  const wins = (p) => p.right.filter(Boolean).length;

  /** The pair that differs on most queries, the one that is right less often on the left. */
  function farthest() {
    let best = [0, partners(0)[0] ?? -1], most = -1;
    predictions.forEach((p, i) => partners(i).forEach((j) => {
      const q = predictions[j], differ = p.right.filter((r, k) => r !== q.right[k]).length;
      if (differ > most && wins(p) <= wins(q)) { most = differ; best = [i, j]; }
    }));
    return best;
  }
  const option = (i, chosen) => {
    const node = html("option", { value: i }, predictions[i].label === predictions[i].title ? predictions[i].title : `${predictions[i].label}: ${predictions[i].title}`);
    node.selected = i === chosen;
    return node;
  };

  function openPair(i, j) {
    one = i;
    const fitting = partners(i);
    other = fitting.includes(j) ? j : fitting.length ? fitting[0] : -1;
    left.which.replaceChildren(...predictions.map((_, k) => option(k, one)));
    right.which.replaceChildren(...fitting.map((k) => option(k, other)));
    right.node.hidden = other < 0;
    const { task, size } = predictions[one];
    pair.classList.toggle("large", task !== "nqueens" && size > 5);
    const shown = compared();
    queries.replaceChildren(...predictions[one].boards.map((board, k) => {
      const marks = shown.map((p) => html("i", { class: p.right[k] ? "yes" : "no", "aria-hidden": "true" }, p.right[k] ? "✓" : "✗"));
      const said = shown.map((p) => `${p.label} ${p.right[k] ? "right" : "wrong"}`).join(", ");
      const label = `Query ${k + 1}: ${count(board.solutions.length, "listed solution")}, ${said}`;
      const chip = html("button", { type: "button", "aria-label": label, title: label }, String(k + 1), ...marks);
      chip.addEventListener("click", () => openQuery(k));
      return chip;
    }));
    queries.hidden = predictions[one].boards.length < 2;
    openQuery(query < predictions[one].boards.length ? query : 0);
  }
  function openQuery(k) {
    stop();
    query = k;
    [...queries.children].forEach((chip, i) => chip.setAttribute("aria-pressed", i === k ? "true" : "false"));
    left.open(predictions[one], k);
    if (other >= 0) right.open(predictions[other], k);
    steps = [...new Set(compared().flatMap((p) => p.boards[k].steps))].sort((a, b) => a - b);
    slider.max = steps.length - 1;
    controls.hidden = stepText.hidden = steps.length < 2;
    go(steps.length - 1);
  }
  function go(to) {
    at = Math.min(Math.max(to, 0), steps.length - 1);
    left.show(steps[at]);
    if (other >= 0) right.show(steps[at]);
    slider.value = at;
    slider.setAttribute("aria-valuetext", `step ${steps[at]}`);
    const solutions = predictions[one].boards[query].solutions.length;
    stepText.textContent = `Query ${query + 1}, ${count(solutions, "listed solution")}: step ${steps[at]} of ${steps[steps.length - 1]}`;
    [first, back].forEach((b) => { b.disabled = at === 0; });
    [next, last].forEach((b) => { b.disabled = at === steps.length - 1; });
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    play.setAttribute("aria-label", "Play");
  }
  function toggle() {
    if (timer !== null) return stop();
    if (at === steps.length - 1) go(0);
    play.textContent = "Pause";
    play.setAttribute("aria-label", "Pause");
    timer = setInterval(() => { if (at >= steps.length - 1) stop(); else go(at + 1); }, 350);
  }

  left.which.addEventListener("change", () => openPair(Number(left.which.value), other === Number(left.which.value) ? one : other));
  right.which.addEventListener("change", () => openPair(one, Number(right.which.value)));
  slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
  first.addEventListener("click", () => { stop(); go(0); });
  back.addEventListener("click", () => { stop(); go(at - 1); });
  next.addEventListener("click", () => { stop(); go(at + 1); });
  last.addEventListener("click", () => { stop(); go(steps.length - 1); });
  play.addEventListener("click", toggle);
  root.addEventListener("keydown", (event) => {
    if (event.target.tagName === "SELECT" || (event.target === slider && event.key !== " ")) return;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: steps.length - 1 }[event.key];
    if (to !== undefined) { stop(); go(to); }
    else if (event.key === " " && event.target.tagName !== "BUTTON") toggle();
    else return;
    event.preventDefault();
  });
  const [i, j] = farthest();
  if (j >= 0) query = Math.max(0, predictions[i].right.findIndex((r, k) => r !== predictions[j].right[k]));
  openPair(i, j);
})();
