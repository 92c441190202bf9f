// Runs an equivariant network on one query, step by step: the formulas of networks/equivariant in kernel.wasm.

const pad = (rows) => Math.ceil(rows / 4) * 4;

/** Rules as index arrays, in the order of their kinds; the rows of a kind are padded to a multiple of 4. */
function tablesOf(problem) {
  const kinds = [];
  const rules = [];
  let row = 0;
  for (const kind of problem.kinds) {
    const own = problem.rules.filter((rule) => rule.kind === kind);
    if (own.length) kinds.push({ kind, row, rows: pad(own.length) });
    own.forEach((rule, i) => rules.push({ ...rule, row: row + i }));
    row += pad(own.length);
  }
  const widest = Math.max(...rules.map((rule) => rule.choices.length));
  const members = new Int32Array(rules.length * widest);
  const ofChoice = Array.from({ length: problem.choices }, () => []);
  rules.forEach((rule, g) => {
    members.set(rule.choices, g * widest);
    rule.choices.forEach((choice) => ofChoice[choice].push(rule));
  });
  const most = Math.max(...ofChoice.map((own) => own.length));
  const rows = new Int32Array(problem.choices * most);
  const weight = new Float32Array(problem.choices * most);
  ofChoice.forEach((own, choice) => {
    own.forEach((rule, j) => {
      rows[choice * most + j] = rule.row;
      weight[choice * most + j] = 1 / own.filter((other) => other.kind === rule.kind).length;
    });
  });
  const sizes = Int32Array.from(rules, (rule) => rule.choices.length);
  const row_ = Int32Array.from(rules, (rule) => rule.row);
  return { kinds, count: rules.length, pooledRows: row, widest, members, sizes, row: row_, most, rows, weight };
}

const tables = new Map();
const idle = new WeakMap(); // kernels at rest, by module: each { memory, functions }

/** A kernel with a memory of zeros: one at rest, or a new one. Browsers have room for few memories at a time. */
function kernelOf(module) {
  const rested = idle.get(module)?.pop();
  if (rested) {
    new Uint8Array(rested.memory.buffer).fill(0, rested.functions.__heap_base.value);
    return rested;
  }
  const memory = new WebAssembly.Memory({ initial: 2 });
  return { memory, functions: new WebAssembly.Instance(module, { env: { memory } }).exports };
}

/** A matrix [inner, columns] in panels of 8 columns, as the kernel's product takes it. */
function packed(inner, columns, at) {
  const made = new Float32Array(inner * columns);
  for (let c = 0; c < columns; c++) {
    for (let k = 0; k < inner; k++) made[(c >> 3) * inner * 8 + k * 8 + (c & 7)] = at(k, c);
  }
  return made;
}

/** A network: its tensors by name ({ shape, data: Float32Array }), its kinds of rules and its number of steps. */
export class Network {
  constructor({ tensors, kinds, steps }) {
    const choice = tensors["step.block.choice.weight"];
    const update = tensors["step.block.update.weight"];
    const rule = tensors["step.block.rule"];
    const [out, D] = choice.shape;
    const H = update.shape[1];
    const P = out - 2 * H;
    Object.assign(this, { D, P, H, kinds, steps, readout: tensors["step.readout"].data });
    this.embed = { weight: tensors["embed.weight"].data, bias: tensors["embed.bias"].data };
    this.choice = packed(D, out, (k, c) => choice.data[c * D + k]);
    const bias = tensors["step.block.choice.bias"].data;
    this.spokenBias = bias.slice(0, P);
    this.ownBias = bias.slice(P);
    this.rules = kinds.map((_, i) => packed(2 * P, 2 * H, (k, c) => rule.data[(i * 2 * P + k) * 2 * H + c]));
    this.update = packed(H, D, (k, c) => update.data[c * H + k]);
    this.updateBias = tensors["step.block.update.bias"].data;
  }
}

/**
 * A network at work on one query of a problem.
 * query: R numbers, 0 = blank; relations: pairs; noise: Float32Array [C]. `logits` [C] are those of the last step.
 * `end` it when it is done: the next run then uses its memory.
 */
export class Run {
  constructor(module, network, problem, query, relations, noise) {
    if (!tables.has(problem)) tables.set(problem, tablesOf(problem));
    const t = tables.get(problem);
    const { D, P, H } = network;
    const C = problem.choices;
    const M = relations.length;
    const rows = pad(C);
    const related = pad(M * problem.values);
    const { memory, functions } = kernelOf(module);
    Object.assign(this, { module, memory, kernel: functions });
    this.next = this.kernel.__heap_base.value;
    Object.assign(this, { network, problem, query, t, M, related, rows, step: 0, since: 0 });

    const place = (data) => this.#place(data);
    const room = (length) => this.#room(length);
    this.at = {
      choice: place(network.choice), spokenBias: place(network.spokenBias), ownBias: place(network.ownBias),
      update: place(network.update), updateBias: place(network.updateBias), readout: place(network.readout),
      rules: network.rules.map(place), members: place(t.members), sizes: place(t.sizes), row: place(t.row),
      ruleRows: place(t.rows), weight: place(t.weight), relations: place(Int32Array.from(relations.flat())),
      state: room(rows * D), x: room(rows * D), query: room(rows * D), change: room(rows * D),
      out: room(rows * (P + 2 * H)), hidden: room(rows * H), logits: room(C),
      pooled: room(t.pooledRows * 2 * P), said: room(t.pooledRows * 2 * H),
      relatedPooled: room(related * 2 * P), relatedSaid: room(related * 2 * H),
    };
    this.#embed(noise);
    this.answer = new Int32Array(problem.variables).fill(-1);
  }

  /** Hand the memory over to the next run; this one cannot go on. */
  end() {
    if (!idle.has(this.module)) idle.set(this.module, []);
    if (this.memory) idle.get(this.module).push({ memory: this.memory, functions: this.kernel });
    this.memory = this.kernel = this.logits = null;
  }

  /** Room for some floats, aligned to 16 bytes; returns its address. */
  #room(length) {
    const address = Math.ceil(this.next / 16) * 16;
    this.next = address + 4 * length;
    const lacking = this.next - this.memory.buffer.byteLength;
    if (lacking > 0) this.memory.grow(Math.ceil(lacking / 65536));
    return address;
  }

  #place(data) {
    const address = this.#room(data.length);
    new data.constructor(this.memory.buffer, address, data.length).set(data);
    return address;
  }

  #embed(noise) {
    const { D, embed } = this.network;
    const { choices, values } = this.problem;
    const [state, query, x] = ["state", "query", "x"].map(
      (name) => new Float32Array(this.memory.buffer, this.at[name], choices * D),
    );
    for (let c = 0; c < choices; c++) {
      const given = this.query[Math.floor(c / values)] === (c % values) + 1 ? 1 : 0;
      for (let i = 0; i < D; i++) {
        const own = given * embed.weight[2 * i] + noise[c] * embed.weight[2 * i + 1] + embed.bias[i];
        state[c * D + i] = query[c * D + i] = own;
        x[c * D + i] = 2 * own;
      }
    }
  }

  /** Run one step; returns its logits, a view of length C that the next step overwrites. */
  advance() {
    const { network: n, problem, kernel: k, at, t, M, rows } = this;
    const { D, P, H } = n;
    const C = problem.choices;
    const V = problem.values;
    const stride = P + 2 * H;
    k.product(at.x, at.choice, at.out, rows, D, stride);
    k.pool(at.out, at.members, at.sizes, at.row, at.spokenBias, at.pooled, t.count, t.widest, P, stride);
    for (const { kind, row, rows: own } of t.kinds) {
      const weights = at.rules[n.kinds.indexOf(kind)];
      k.product(at.pooled + row * 8 * P, weights, at.said + row * 8 * H, own, 2 * P, 2 * H);
    }
    if (M) {
      const weights = at.rules[n.kinds.indexOf("inequality")];
      k.pool_relations(at.out, at.relations, at.spokenBias, at.relatedPooled, M, V, P, stride);
      k.product(at.relatedPooled, weights, at.relatedSaid, this.related, 2 * P, 2 * H);
      k.spread_relations(at.relatedSaid, at.relations, at.out, M, V, P, 2 * H, stride);
    }
    k.gate(at.out, at.said, at.ruleRows, at.weight, at.ownBias, at.hidden, C, t.most, P, H);
    k.product(at.hidden, at.update, at.change, rows, H, D);
    k.update(at.state, at.change, at.updateBias, at.query, at.x, at.readout, at.logits, C, D);
    this.step++;
    this.logits = new Float32Array(this.memory.buffer, at.logits, C);
    this.#read();
    return this.logits;
  }

  #read() {
    const V = this.problem.values;
    for (let r = 0; r < this.answer.length; r++) {
      let taken = 0;
      for (let v = 1; v < V; v++) if (this.logits[r * V + v] > this.logits[r * V + taken]) taken = v;
      if (this.answer[r] !== taken) this.since = this.step;
      this.answer[r] = taken;
    }
  }

  /** Whether the answer has not changed for `patience` steps; 0 is never. */
  settled(patience) {
    return patience > 0 && this.step - this.since >= patience;
  }

  /** The board that the network answers: values 1..V, with the givens. */
  board() {
    return Array.from(this.answer, (value, r) => this.query[r] || value + 1);
  }

  /** The probability of every choice, Float32Array [C]. */
  belief() {
    const V = this.problem.values;
    const made = new Float32Array(this.logits.length);
    for (let first = 0; first < made.length; first += V) {
      let most = -Infinity;
      let total = 0;
      for (let v = 0; v < V; v++) most = Math.max(most, this.logits[first + v]);
      for (let v = 0; v < V; v++) total += made[first + v] = Math.exp(this.logits[first + v] - most);
      for (let v = 0; v < V; v++) made[first + v] /= total;
    }
    return made;
  }
}
