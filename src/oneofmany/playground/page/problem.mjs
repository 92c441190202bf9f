// Problems: choices and rules, as in problems/problem.py. Choice = variable * values + value, values count from 0;
// in boards (arrays of R numbers) 0 is blank and values count from 1. Relations are pairs [a, b]: variable a < variable b.

export const SIZES = {
  nqueens: [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
  sudoku: [4, 6, 9, 16],
  futoshiki: [4, 5, 6, 7, 8, 9],
};

const numbers = (n) => Array.from({ length: n }, (_, i) => i);

/** The squarest box [rows, columns] of n cells, at least as wide as high. */
export function boxShape(n) {
  let rows = Math.floor(Math.sqrt(n));
  while (n % rows) rows--;
  return [rows, n / rows];
}

function queensRules(n) {
  const all = numbers(n);
  const rules = all.map((r) => ({ kind: "line", exact: true, choices: all.map((c) => r * n + c) }));
  rules.push(...all.map((c) => ({ kind: "line", exact: true, choices: all.map((r) => r * n + c) })));
  for (const turned of [false, true]) {
    for (let k = 2 - n; k < n - 1; k++) {
      const rows = all.filter((r) => r + k >= 0 && r + k < n);
      const choices = rows.map((r) => r * n + (turned ? n - 1 - r - k : r + k));
      rules.push({ kind: "diagonal", exact: false, choices });
    }
  }
  return rules;
}

function gridRules(n, boxed) {
  const all = numbers(n);
  const rule = (kind, value, cells) => ({ kind, exact: true, choices: cells.map((cell) => cell * n + value) });
  const rules = numbers(n * n).map((cell) => ({ kind: "cell", exact: true, choices: all.map((v) => cell * n + v) }));
  for (const r of all) for (const v of all) rules.push(rule("line", v, all.map((c) => r * n + c)));
  for (const c of all) for (const v of all) rules.push(rule("line", v, all.map((r) => r * n + c)));
  if (boxed) {
    const [high, wide] = boxShape(n);
    for (let top = 0; top < n; top += high) {
      for (let left = 0; left < n; left += wide) {
        const cells = all.map((i) => (top + Math.floor(i / wide)) * n + left + (i % wide));
        for (const v of all) rules.push(rule("box", v, cells));
      }
    }
  }
  return rules;
}

const made = new Map();

/** The problem of a task at a size; the same object every time. */
export function problemOf(task, size) {
  const key = `${task} ${size}`;
  if (!made.has(key)) {
    const rules = task === "nqueens" ? queensRules(size) : gridRules(size, task === "sudoku");
    const variables = task === "nqueens" ? size : size * size;
    const kinds = [...new Set(rules.map((rule) => rule.kind))];
    if (task === "futoshiki") kinds.push("inequality");
    made.set(key, { task, size, variables, values: size, choices: variables * size, rules, kinds });
  }
  return made.get(key);
}

/** The cells of a board that a choice stands for: N-Queens draws choices, the others draw variables. */
export function cellOf(problem, choice) {
  return problem.task === "nqueens" ? choice : Math.floor(choice / problem.values);
}

/**
 * What the values of a board break.
 * Returns { rules, cells, relations }: the number of broken rules and relations, the set of cells in them, and the
 * indices of the broken relations. A board without blanks that breaks nothing is a solution.
 */
export function broken(problem, values, relations) {
  const cells = new Set();
  const unkept = [];
  let rules = 0;
  const V = problem.values;
  for (const rule of problem.rules) {
    const taken = rule.choices.filter((choice) => values[Math.floor(choice / V)] === (choice % V) + 1);
    if (taken.length > 1) {
      rules++;
      taken.forEach((choice) => cells.add(cellOf(problem, choice)));
    } else if (rule.exact && !taken.length) {
      // Broken once no choice of the rule can be taken any more.
      if (!rule.choices.some((choice) => !values[Math.floor(choice / V)])) rules++;
    }
  }
  relations.forEach(([a, b], i) => {
    if ((values[a] || 1) >= (values[b] || V)) {
      rules++;
      unkept.push(i);
      cells.add(a).add(b);
    }
  });
  return { rules, cells, relations: unkept };
}

/** Whether a full board is a solution of the rules that keeps the givens of a query. */
export function isSolution(problem, values, query, relations) {
  return values.every((v, i) => v && (!query[i] || query[i] === v)) && !broken(problem, values, relations).rules;
}
