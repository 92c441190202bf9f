// The worker of the page: runs networks, counts solutions and makes random queries, without blocking the page.
// A message has an id, a lane and a kind; a new message in a lane ends the work of the one before.

import { Network, Run } from "./engine.mjs";
import { Search } from "./enumerator.mjs";
import { randomQuery } from "./generator.mjs";
import { problemOf } from "./problem.mjs";
import { normal } from "./random.mjs";
import { bytesOf, networkOf } from "./weights.mjs";

const SLICE = 25; // milliseconds of work before other messages are read
const files = {};
const networks = new Map();
const newest = new Map();

function networkNamed(name, kinds) {
  if (!networks.has(name)) networks.set(name, new Network(networkOf(bytesOf(files.networks[name]), kinds)));
  return networks.get(name);
}

const breathe = () => new Promise((resume) => setTimeout(resume));

const work = {
  /** Keep the files of the page; they are decoded when they are used. */
  async files(message) {
    Object.assign(files, message.files);
    files.kernel = new WebAssembly.Module(bytesOf(message.files.kernel));
    return {};
  },

  /** Run a network until its answer has settled; tells every step. */
  async solve({ network: name, task, size, values, relations, seed, patience, steps: most }, tell, wanted) {
    const problem = problemOf(task, size);
    const network = networkNamed(name, problem.kinds);
    const run = new Run(files.kernel, network, problem, values, relations, normal(problem.choices, seed));
    const steps = most ?? network.steps;
    const start = performance.now();
    let pause = start + SLICE;
    try {
      for (let settled = false; !settled && run.step < steps; ) {
        run.advance();
        settled = run.settled(patience);
        tell({ step: run.step, belief: run.belief(), board: run.board() });
        if (performance.now() > pause) {
          await breathe();
          if (!wanted()) return null;
          pause = performance.now() + SLICE;
        }
      }
    } finally {
      run.end();
    }
    return { steps: run.step, board: run.board(), milliseconds: performance.now() - start };
  },

  /** Count the solutions of a query; lists the first ones, and the share of them that takes each choice. `more`: there
   * are more than the limit. Neither `complete` nor `more`: the time was up. */
  async count({ task, size, values, relations, limit, keep, milliseconds }, tell, wanted) {
    const search = new Search(problemOf(task, size), values, relations, { limit: limit + 1, keep });
    const end = performance.now() + milliseconds;
    while (!search.run(SLICE) && performance.now() < end) {
      await breathe();
      if (!wanted()) return null;
    }
    const more = search.total > limit;
    const complete = search.finished && !more;
    const average = Float32Array.from(search.counts, (count) => count / Math.max(1, search.total));
    return { total: Math.min(search.total, limit), complete, more, listed: search.listed, average };
  },

  async random({ task, size, seed }) {
    return randomQuery(task, size, seed);
  },
};

self.onmessage = async ({ data: message }) => {
  const { id, lane, kind } = message;
  newest.set(lane, id);
  const wanted = () => newest.get(lane) === id;
  try {
    const result = await work[kind]?.(message, (part) => self.postMessage({ id, part }), wanted);
    self.postMessage({ id, result: result ?? null });
  } catch (error) {
    self.postMessage({ id, error: String(error?.message ?? error) });
  }
};
