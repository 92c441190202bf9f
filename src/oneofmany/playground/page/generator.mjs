// Random queries, each made from a random solution.

import { Search } from "./enumerator.mjs";
import { problemOf } from "./problem.mjs";
import { shuffled, uniform } from "./random.mjs";

/** Some random solution of a problem. */
export function randomSolution(problem, random) {
  for (;;) {
    const search = new Search(problem, Array(problem.variables).fill(0), [], { limit: 1, keep: 1, random });
    search.run(Infinity, 3000);
    if (search.total) return search.listed[0];
  }
}

function countUpTo(problem, values, relations, limit) {
  const search = new Search(problem, values, relations, { limit });
  return search.run(Infinity, 5000) ? search.total : limit;
}

/** The solution with some random cells blank. */
function masked(solution, blanks, random) {
  const blank = new Set(shuffled([...solution.keys()], random).slice(0, blanks));
  return solution.map((value, i) => (blank.has(i) ? 0 : value));
}

/** Remove givens in random order as long as the solution stays the only one, down to a number of givens. */
function dug(problem, solution, givens, random) {
  const values = [...solution];
  let left = values.length;
  for (const cell of shuffled([...values.keys()], random)) {
    if (left <= givens) break;
    values[cell] = 0;
    if (countUpTo(problem, values, [], 2) === 1) left--;
    else values[cell] = solution[cell];
  }
  return values;
}

const GIVENS = { 4: 5, 6: 12, 9: 30, 16: 154 };

/** A random query of a task: about half of the boards of a Sudoku have one solution, the others have a few. */
export function randomQuery(task, size, seed) {
  const random = uniform(seed);
  const problem = problemOf(task, size);
  const solution = randomSolution(problem, random);
  if (task === "nqueens") return { task, size, values: masked(solution, size - Math.floor(size / 2), random), relations: [] };
  if (task === "futoshiki") {
    const pairs = [];
    for (let cell = 0; cell < solution.length; cell++) {
      if ((cell + 1) % size) pairs.push([cell, cell + 1]);
      if (cell + size < solution.length) pairs.push([cell, cell + size]);
    }
    const kept = shuffled(pairs, random).slice(0, size + 2);
    const relations = kept.map(([a, b]) => (solution[a] < solution[b] ? [a, b] : [b, a]));
    return { task, size, values: masked(solution, Math.floor((size * size) / 2), random), relations };
  }
  const values = dug(problem, solution, GIVENS[size], random);
  if (random() < 0.5) {
    // Without one or more of its givens, a puzzle with one solution has several.
    for (const cell of shuffled(values.flatMap((value, i) => (value ? [i] : [])), random)) {
      values[cell] = 0;
      const count = countUpTo(problem, values, [], 51);
      if (count > 50) values[cell] = solution[cell];
      if (count > 1) break;
    }
  }
  return { task, size, values, relations: [] };
}
