// The exact enumerator: all solutions of a query, by search over choices and rules, as in exact/kernel.py.
//
// The state is one 32-bit word per rule: the choices that are still open (no rule of these tasks has more than 32).
// Taking a choice removes the other choices of its rules. An exactly-one rule with one open choice takes it, and with
// none it fails. When nothing more follows, the search branches on an exactly-one rule with the fewest open choices:
// first it takes a choice, then it removes that choice from the same state.

function bits(word) {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
const lowest = (word) => 31 - Math.clz32(word & -word);

const structures = new Map();

/** Rules as arrays; exactly-one rules come first. `places` [choice]: pairs of rule and bit, one after the other. */
function structureOf(problem) {
  if (!structures.has(problem)) {
    const rules = [...problem.rules.filter((rule) => rule.exact), ...problem.rules.filter((rule) => !rule.exact)];
    const places = Array.from({ length: problem.choices }, () => []);
    rules.forEach((rule, g) => rule.choices.forEach((choice, i) => places[choice].push(g, 1 << i)));
    structures.set(problem, {
      exact: problem.rules.filter((rule) => rule.exact).length,
      members: rules.map((rule) => Int32Array.from(rule.choices)),
      places: places.map((own) => Int32Array.from(own)),
      full: Int32Array.from(rules, (rule) => (rule.choices.length === 32 ? -1 : (1 << rule.choices.length) - 1)),
    });
  }
  return structures.get(problem);
}

/**
 * A search for the solutions of one query.
 * random: a generator that shuffles the order of the search; none keeps the order of the rules.
 * After `run`: `total` solutions so far, the first `keep` of them in `listed`, how many of them take each choice in
 * `counts` [C], and whether it is `finished`.
 */
export class Search {
  constructor(problem, query, relations, { limit = Infinity, keep = 0, random = null } = {}) {
    Object.assign(this, { problem, limit, keep, random, total: 0, listed: [], finished: false, branches: 0 });
    this.s = structureOf(problem);
    this.counts = new Float64Array(problem.choices);
    const { variables, values } = problem;
    this.larger = Array.from({ length: variables }, () => []);
    this.smaller = Array.from({ length: variables }, () => []);
    for (const [a, b] of relations) {
      this.larger[a].push(b);
      this.smaller[b].push(a);
    }
    this.levels = [];
    this.level = 0;
    this.values = new Int32Array(variables);
    const first = this.#levelAt(0);
    first.open.set(this.s.full);
    first.done.fill(0);
    first.left = variables;
    this.queue = query.flatMap((value, variable) => (value ? [variable * values + value - 1] : []));
    this.failed = !this.#narrow(query, relations, first);
  }

  #levelAt(depth) {
    if (!this.levels[depth]) {
      const open = new Int32Array(this.s.full.length);
      this.levels[depth] = { open, done: new Uint8Array(this.problem.variables), left: 0, tried: 0 };
    }
    return this.levels[depth];
  }

  #isOpen(choice, state) {
    const places = this.s.places[choice];
    return (state.open[places[0]] & places[1]) !== 0;
  }

  /** Remove an open choice from its rules, except one; queue what follows. False if a rule has no choice left. */
  #remove(choice, skip, state) {
    const { places, members, exact } = this.s;
    const own = places[choice];
    const V = this.problem.values;
    for (let i = 0; i < own.length; i += 2) {
      const rule = own[i];
      if (rule === skip) continue;
      const left = state.open[rule] & ~own[i + 1];
      state.open[rule] = left;
      if (rule >= exact || left & (left - 1)) continue;
      if (!left) return false;
      const only = members[rule][lowest(left)];
      if (!state.done[Math.floor(only / V)]) this.queue.push(only);
    }
    return true;
  }

  /** Remove what the relations alone exclude: a < b raises the lowest value of b and lowers the highest of a. */
  #narrow(query, relations, state) {
    const V = this.problem.values;
    const low = query.map((value) => (value ? value - 1 : 0));
    const high = query.map((value) => (value ? value - 1 : V - 1));
    for (let changed = true; changed; ) {
      changed = false;
      for (const [a, b] of relations) {
        if (low[b] <= low[a]) (low[b] = low[a] + 1), (changed = true);
        if (high[a] >= high[b]) (high[a] = high[b] - 1), (changed = true);
        if (low[b] > high[b] || low[a] > high[a]) return false;
      }
    }
    for (let variable = 0; variable < query.length; variable++) {
      for (let value = 0; value < V; value++) {
        if (value >= low[variable] && value <= high[variable]) continue;
        if (!this.#removeIfOpen(variable * V + value, state)) return false;
      }
    }
    return true;
  }

  #removeIfOpen(choice, state) {
    return !this.#isOpen(choice, state) || this.#remove(choice, -1, state);
  }

  /** Take all queued choices and all that follow; false if that is impossible. */
  #propagate(state) {
    const { places, members } = this.s;
    const V = this.problem.values;
    for (let head = 0; head < this.queue.length; head++) {
      const choice = this.queue[head];
      const variable = Math.floor(choice / V);
      if (!this.#isOpen(choice, state)) return false;
      if (state.done[variable]) continue;
      const value = choice % V;
      state.done[variable] = 1;
      state.left--;
      this.values[variable] = value + 1;
      const own = places[choice];
      for (let i = 0; i < own.length; i += 2) {
        const rule = own[i];
        let others = state.open[rule] & ~own[i + 1];
        state.open[rule] = own[i + 1];
        for (; others; others &= others - 1) {
          if (!this.#remove(members[rule][lowest(others)], rule, state)) return false;
        }
      }
      for (const other of this.larger[variable]) {
        for (let v = 0; v <= value; v++) if (!this.#removeIfOpen(other * V + v, state)) return false;
      }
      for (const other of this.smaller[variable]) {
        for (let v = value; v < V; v++) if (!this.#removeIfOpen(other * V + v, state)) return false;
      }
    }
    return true;
  }

  /** A choice to try: of an exactly-one rule with the fewest open choices. */
  #branch(state) {
    let best = -1;
    let fewest = 33;
    for (let rule = 0; rule < this.s.exact && fewest > 2; rule++) {
      const word = state.open[rule];
      if (word & (word - 1) && bits(word) < fewest) (best = rule), (fewest = bits(word));
    }
    let word = state.open[best];
    for (let skip = this.random ? Math.floor(this.random() * fewest) : 0; skip; skip--) word &= word - 1;
    return this.s.members[best][lowest(word)];
  }

  /** Search on for some milliseconds or branches; returns whether the search is finished. */
  run(milliseconds = Infinity, branches = Infinity) {
    const end = performance.now() + milliseconds;
    const last = this.branches + branches;
    while (!this.finished) {
      if (this.branches >= last || (this.branches % 64 === 63 && performance.now() > end)) return false;
      const state = this.levels[this.level];
      if (!this.failed && this.#propagate(state)) {
        if (state.left) {
          this.branches++;
          state.tried = this.#branch(state);
          const next = this.#levelAt(++this.level);
          next.open.set(state.open);
          next.done.set(state.done);
          next.left = state.left;
          this.queue = [state.tried];
          continue;
        }
        this.total++;
        this.values.forEach((value, variable) => this.counts[variable * this.problem.values + value - 1]++);
        if (this.listed.length < this.keep) this.listed.push(Array.from(this.values));
        if (this.total >= this.limit) this.finished = true;
      }
      if (--this.level < 0) {
        this.finished = true;
      } else {
        this.queue = [];
        this.failed = !this.#remove(this.levels[this.level].tried, -1, this.levels[this.level]);
      }
    }
    return true;
  }
}
