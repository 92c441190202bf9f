// What the tests ask of the page's modules, under Node (checking.mjs) and in a browser's worker (after the page's own).
// `modules`: the names that the modules export; `files`: the kernel and networks as the page holds them, in base64.

function checked(modules, files, { kind, cases }) {
  const { Network, Run, Search, bytesOf, networkOf, problemOf } = modules;
  const kernel = new WebAssembly.Module(bytesOf(files.kernel));
  const networks = {};
  const floats = (text) => new Float32Array(bytesOf(text).buffer);
  const runOf = ({ network, task, size, values, relations, noise }) => {
    const problem = problemOf(task, size);
    networks[network] ??= new Network(networkOf(bytesOf(files.networks[network]), problem.kinds));
    return new Run(kernel, networks[network], problem, values, relations, floats(noise));
  };
  const work = {
    // The largest difference of the logits to the expected ones, over all steps.
    logits(one) {
      const run = runOf(one);
      const expected = floats(one.logits);
      let worst = 0;
      for (let first = 0; first < expected.length; first += run.problem.choices) {
        run.advance().forEach((logit, i) => (worst = Math.max(worst, Math.abs(logit - expected[first + i]))));
      }
      run.end(); // the next case uses its memory
      return worst;
    },
    // The answer after the steps of `oneofmany solve`.
    answer(one) {
      const run = runOf(one);
      do run.advance();
      while (!run.settled(one.patience) && run.step < one.steps);
      run.end();
      return { board: run.board(), steps: run.step };
    },
    // How many memories some runs make, one after the other, and whether all have the same logits.
    memories({ runs, ...one }) {
      const Memory = WebAssembly.Memory;
      let made = 0;
      WebAssembly.Memory = function (...size) {
        made++;
        return new Memory(...size);
      };
      const logits = Array.from({ length: runs }, () => {
        const run = runOf(one);
        const found = [...run.advance()].join();
        run.end();
        return found;
      });
      WebAssembly.Memory = Memory;
      return { made, same: new Set(logits).size === 1 };
    },
    count({ task, size, values, relations }) {
      const search = new Search(problemOf(task, size), values, relations, { keep: 1000 });
      search.run();
      return { total: search.total, listed: search.listed };
    },
    read({ task, text }) {
      try {
        return modules.readBoard(task, text);
      } catch (error) {
        return { error: error.message };
      }
    },
    guess: ({ text }) => modules.guessTask(text),
    linked: ({ text }) => modules.linkedBoard(text),
    link(board) {
      return { hash: modules.toHash(board), board: modules.fromHash(modules.toHash(board)) };
    },
    random: ({ task, size, seed }) => modules.randomQuery(task, size, seed),
    broken: ({ task, size, values, relations }) => modules.broken(problemOf(task, size), values, relations).rules,
  };
  return cases.map(work[kind]);
}
