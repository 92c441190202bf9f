// All steps of whole queries in one block. What choices send and what rules answer stays in the shared memory; the state
// goes through the L2 cache. A row is one choice, or one rule, of one of the block's queries.

// ---- rows in the shared memory --------------------------------------------------------------------------------------

// Where a byte of a row of STRIDE bytes is. A quarter of a warp reads or writes 64 bytes of two neighbouring rows: odd
// rows have their halves of 128 bytes swapped, so that these are in different banks.
template <int STRIDE> __device__ int spot(int row, int byte) {
    return row * STRIDE + (STRIDE % 128 ? byte : byte ^ (row & 1) << 6);
}

// Columns of two rows of 16-bit numbers, which begin at byte `first`.
template <int W, int STRIDE> __device__ void load_near(Packed<W>& x, const char* from, const int row[2], int first, int t) {
    constexpr int pairs = OWN<W> / 2;
    #pragma unroll
    for (int r = 0; r < 2; r++)
        #pragma unroll
        for (int q = 0; q < W / 8; q += pairs) {
            const char* at = from + spot<STRIDE>(row[r], first + 2 * column<W>(q, t, 0));
            if (pairs == 4) {
                const uint4 found = *reinterpret_cast<const uint4*>(at);
                x.v[q][r] = found.x; x.v[q + 1][r] = found.y; x.v[q + 2][r] = found.z; x.v[q + 3][r] = found.w;
            } else {
                const uint2 found = *reinterpret_cast<const uint2*>(at);
                x.v[q][r] = found.x; x.v[q + 1][r] = found.y;
            }
        }
}

template <int W, int STRIDE> __device__ void store_near(const Packed<W>& x, char* to, const int row[2], const Place& p) {
    constexpr int pairs = OWN<W> / 2;
    #pragma unroll
    for (int r = 0; r < 2; r++)
        if (p.inside[r])
            #pragma unroll
            for (int q = 0; q < W / 8; q += pairs) {
                char* at = to + spot<STRIDE>(row[r], 2 * column<W>(q, p.t, 0));
                if (pairs == 4)
                    *reinterpret_cast<uint4*>(at) = make_uint4(x.v[q][r], x.v[q + 1][r], x.v[q + 2][r], x.v[q + 3][r]);
                else
                    *reinterpret_cast<uint2*>(at) = make_uint2(x.v[q][r], x.v[q + 1][r]);
            }
}

// The state between two steps is in the order of the registers, so that a warp reads and writes it without gaps.
template <int W> __device__ void load_state(Tile<W>& x, const float* from, long long tile, int lane) {
    #pragma unroll
    for (int n = 0; n < W / 8; n++) {
        const float4 found = load_again(reinterpret_cast<const float4*>(from) + (tile * (W / 8) + n) * 32 + lane);
        x.v[n][0] = found.x; x.v[n][1] = found.y; x.v[n][2] = found.z; x.v[n][3] = found.w;
    }
}

template <int W> __device__ void store_state(const Tile<W>& x, float* to, long long tile, int lane) {
    #pragma unroll
    for (int n = 0; n < W / 8; n++)
        store_again(
            reinterpret_cast<float4*>(to) + (tile * (W / 8) + n) * 32 + lane,
            make_float4(x.v[n][0], x.v[n][1], x.v[n][2], x.v[n][3])
        );
}

// ---- the forward pass -----------------------------------------------------------------------------------------------

constexpr unsigned ONE = 0x3f80;  // 1 as bfloat16
constexpr int WHOLE = 4;

// A choice's rule, and the share of its answer.
struct alignas(8) Link {
    int rule;
    float share;
};

// What the pooled channels of a rule tell 16 hidden units: their gates and their values.
struct Telling {
    uint4 v[2 * P / 16][2][32];
};

// A block's queries, and where their rows are in global memory.
struct Group {
    int first, queries, B;
    __device__ long long far(int item, int query) const { return (long long)item * B + first + query; }
    // Rows of the shared memory, item * queries + query; the place's become those of the global memory.
    __device__ Place place(int tile, int from, int items, int near[2]) const {
        Place p = place_of(tile, from, items, queries);
        #pragma unroll
        for (int r = 0; r < 2; r++) {
            near[r] = p.row[r];
            p.row[r] = far(p.item[r], p.query[r]);
        }
        return p;
    }
};

// The two largest that the choices of every rule send. A thread takes 8 columns of a rule.
template <bool keep> __device__ void pool_rules(
    const char* spoken, char* to, const short* members, int width, const Part* parts, unsigned short* pooled,
    unsigned short* winners, const Group& group, int G, int step, int steps
) {
    constexpr int CHUNKS = P / 8;
    for (int i = thread(); i < G * group.queries * CHUNKS; i += threads()) {
        const int row = i / CHUNKS, chunk = i % CHUNKS, rule = row / group.queries, query = row % group.queries;
        unsigned best[4], next[4], slot[4], other[4];
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            best[k] = next[k] = LOWEST | LOWEST << 16;
            slot[k] = other[k] = NO_SLOT | NO_SLOT << 16;
        }
        #pragma unroll 3
        for (int s = 0; s < width; s++) {
            const int member = members[rule * width + s];
            if (member < 0) continue;
            const uint4 said =
                *reinterpret_cast<const uint4*>(spoken + spot<2 * P>(member * group.queries + query, 16 * chunk));
            const unsigned x[4] = {said.x, said.y, said.z, said.w};
            #pragma unroll
            for (int k = 0; k < 4; k++) rank(best[k], next[k], slot[k], other[k], x[k], s, keep);
        }
        const uint4 first = make_uint4(best[0], best[1], best[2], best[3]);
        const uint4 second = make_uint4(or_zero(next[0]), or_zero(next[1]), or_zero(next[2]), or_zero(next[3]));
        *reinterpret_cast<uint4*>(to + spot<4 * P>(row, 16 * chunk)) = first;
        *reinterpret_cast<uint4*>(to + spot<4 * P>(row, 2 * P + 16 * chunk)) = second;
        if (keep) {
            const Part* part = parts;
            while (rule >= part->first + part->rules) part++;
            const long long far = group.far(rule, query), kept = far + kept_by_kinds(*part, step, steps, group.B);
            uint4* at = reinterpret_cast<uint4*>(pooled) + kept * 2 * CHUNKS + chunk;
            store_once(at, first);
            store_once(at + CHUNKS, second);
            const uint4 slots =
                make_uint4(slot[0] | other[0] << 8, slot[1] | other[1] << 8, slot[2] | other[2] << 8, slot[3] | other[3] << 8);
            store_once(reinterpret_cast<uint4*>(winners) + far * CHUNKS + chunk, slots);
        }
    }
}

// What rules of one kind tell 16 hidden units: a warp holds these weights in its registers.
__device__ void answer_rules(
    const uint4 (&w)[2 * P / 16][2], const char* pooled, char* answers, const Part& part, int units, const Group& group
) {
    for (int tile = 0; tile < tiles_of(part.rules, group.queries); tile++) {
        int near[2];
        const Place p = group.place(tile, part.first, part.rules, near);
        float sum[4][4] = {};
        #pragma unroll
        for (int half = 0; half < 2; half++) {
            Packed<P> x;
            load_near<P, 4 * P>(x, pooled, near, half * 2 * P, p.t);
            #pragma unroll
            for (int k = 0; k < P / 16; k++)
                #pragma unroll
                for (int n = 0; n < 4; n++) {
                    const uint4 b = w[half * P / 16 + k][n / 2];
                    mma(sum[n], x.v[2 * k][0], x.v[2 * k][1], x.v[2 * k + 1][0], x.v[2 * k + 1][1], n % 2 ? b.z : b.x, n % 2 ? b.w : b.y);
                }
        }
        #pragma unroll
        for (int r = 0; r < 2; r++)
            if (p.inside[r])
                *reinterpret_cast<uint4*>(answers + spot<4 * H>(near[r], 64 * units + 16 * p.t)) = make_uint4(
                    pack(sum[0][2 * r], sum[0][2 * r + 1]), pack(sum[1][2 * r], sum[1][2 * r + 1]),
                    pack(sum[2][2 * r], sum[2][2 * r + 1]), pack(sum[3][2 * r], sum[3][2 * r + 1])
                );
    }
}

// A state becomes what its choice sends: its sum with the query is kept, and multiplied.
__device__ void send(
    Tile<D>& state, const Packed<D>& asked, const ForwardMemory& memory, unsigned short* x, char* spoken, const int near[2],
    const Place& p, int keep, int last
) {
    state.add(asked, 1.f, 1.f);
    const Packed<D> seen = state.packed();
    if (keep) seen.store<true>(x, p, D);
    if (last) return;
    Tile<P> says;
    says.fill(memory.numbers.spoken_bias, p.t);
    multiply(says, seen, memory.weights.spoken, p.lane);
    store_near<P, 2 * P>(says.packed(), spoken, near, p);
}

// Biases of pair `n` of a lane's columns, as sums to begin with.
__device__ void begin_with(float (&sum)[4], const float* bias, int n, int t) {
    sum[0] = sum[2] = bias[column<H>(n, t, 0)];
    sum[1] = sum[3] = bias[column<H>(n, t, 1)];
}

// Gates and values of 16 hidden units, from all rules of a lane's two choices.
struct Units {
    float gates[2][4], values[2][4];
    __device__ void add(const uint4& told, float share, int r) {
        gates[0][2 * r] += share * low_half(told.x);
        gates[0][2 * r + 1] += share * high_half(told.x);
        gates[1][2 * r] += share * low_half(told.y);
        gates[1][2 * r + 1] += share * high_half(told.y);
        values[0][2 * r] += share * low_half(told.z);
        values[0][2 * r + 1] += share * high_half(told.z);
        values[1][2 * r] += share * low_half(told.w);
        values[1][2 * r + 1] += share * high_half(told.w);
    }
    // The answers of two rules, both with share 1: `unit` are the unit matrices by which they are multiplied.
    __device__ void add(const uint4 (&told)[2], const uint4 (&also)[2], unsigned unit) {
        mma(gates[0], told[0].x, told[1].x, also[0].x, also[1].x, unit, unit);
        mma(gates[1], told[0].y, told[1].y, also[0].y, also[1].y, unit, unit);
        mma(values[0], told[0].z, told[1].z, also[0].z, also[1].z, unit, unit);
        mma(values[1], told[0].w, told[1].w, also[0].w, also[1].w, unit, unit);
    }
    __device__ uint4 packed(int r) const {
        return make_uint4(
            pack(gates[0][2 * r], gates[0][2 * r + 1]), pack(gates[1][2 * r], gates[1][2 * r + 1]),
            pack(values[0][2 * r], values[0][2 * r + 1]), pack(values[1][2 * r], values[1][2 * r + 1])
        );
    }
};

// Add to the state what the rules and the choice itself move it by, 16 hidden units after the other. `whole`: every
// choice has the same number of rules, at most WHOLE, all with share 1.
template <bool whole> __device__ void move(
    Tile<D>& moved, const Packed<D>& seen, const char* answers, const Link* links, int degree, const ForwardMemory& memory,
    unsigned short* gate, const Place& p, const Group& group, int keep
) {
    const Forward& w = memory.weights;
    // A lane of the second factor of products that add the columns of two rules: two unit matrices of 8 x 8.
    const unsigned unit = p.lane / 8 == p.t ? ONE << 16 * (p.lane / 4 % 2) : 0;
    int spots[WHOLE][2];
    if (whole)
        #pragma unroll
        for (int j = 0; j < WHOLE; j++)
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                const int rule = links[p.item[r] * degree + (j < degree ? j : 0)].rule;
                spots[j][r] = spot<4 * H>(rule * group.queries + p.query[r], 16 * p.t);
            }
    #pragma unroll 1
    for (int c = 0; c < H / 16; c++) {
        Units units;
        #pragma unroll
        for (int n = 0; n < 2; n++) {
            begin_with(units.gates[n], memory.numbers.gate_bias, 2 * c + n, p.t);
            begin_with(units.values[n], memory.numbers.value_bias, 2 * c + n, p.t);
        }
        if (whole) {
            #pragma unroll
            for (int j = 0; j < WHOLE; j += 2)
                if (j < degree) {
                    uint4 told[2][2];
                    #pragma unroll
                    for (int i = 0; i < 4; i++)
                        told[i / 2][i % 2] = j + i / 2 < degree
                            ? *reinterpret_cast<const uint4*>(answers + (spots[j + i / 2][i % 2] ^ 64 * c))
                            : make_uint4(0, 0, 0, 0);
                    units.add(told[0], told[1], unit);
                }
        } else
            for (int j = 0; j < degree; j++)
                #pragma unroll
                for (int r = 0; r < 2; r++) {
                    const Link link = links[p.item[r] * degree + j];
                    const int at = spot<4 * H>(link.rule * group.queries + p.query[r], 64 * c + 16 * p.t);
                    units.add(*reinterpret_cast<const uint4*>(answers + at), link.share, r);
                }
        #pragma unroll
        for (int k = 0; k < D / 16; k++) {
            const uint4 g = w.gate.v[k][c][p.lane], v = w.value.v[k][c][p.lane];
            const unsigned a[4] = {seen.v[2 * k][0], seen.v[2 * k][1], seen.v[2 * k + 1][0], seen.v[2 * k + 1][1]};
            mma(units.gates[0], a[0], a[1], a[2], a[3], g.x, g.y);
            mma(units.gates[1], a[0], a[1], a[2], a[3], g.z, g.w);
            mma(units.values[0], a[0], a[1], a[2], a[3], v.x, v.y);
            mma(units.values[1], a[0], a[1], a[2], a[3], v.z, v.w);
        }
        if (keep)
            #pragma unroll
            for (int r = 0; r < 2; r++)
                if (p.inside[r])
                    store_once(reinterpret_cast<uint4*>(gate) + p.row[r] * (H / 4) + 4 * c + p.t, units.packed(r));
        unsigned hidden[2][2];
        #pragma unroll
        for (int n = 0; n < 2; n++) {
            #pragma unroll
            for (int i = 0; i < 4; i++) units.gates[n][i] *= sigmoid(units.gates[n][i]) * units.values[n][i];
            hidden[n][0] = pack(units.gates[n][0], units.gates[n][1]);
            hidden[n][1] = pack(units.gates[n][2], units.gates[n][3]);
        }
        #pragma unroll
        for (int n = 0; n < D / 16; n++) {
            const uint4 b = w.state.v[c][n][p.lane];
            mma(moved.v[2 * n], hidden[0][0], hidden[0][1], hidden[1][0], hidden[1][1], b.x, b.y);
            mma(moved.v[2 * n + 1], hidden[0][0], hidden[0][1], hidden[1][0], hidden[1][1], b.z, b.w);
        }
    }
}

extern "C" __global__ void __launch_bounds__(512, 1) resident_forward(
    const float* begin, const unsigned short* query, float* state, float* end, const short* members, int width,
    const Link* links, int degree, int whole, const Part* parts, int kinds, const Forward* weights, const Numbers* numbers,
    const Telling* telling, unsigned short* x, unsigned short* pooled, unsigned short* winners, unsigned short* gate,
    float* scale, float* logits, int B, int C, int G, int queries, int half, int steps, int keep, int every_step
) {
    constexpr int UNITS = H / 16;  // groups of hidden units
    ForwardMemory& memory = *reinterpret_cast<ForwardMemory*>(shared_memory());
    char* one = reinterpret_cast<char*>(shared_memory()) + (sizeof(ForwardMemory) + 127) / 128 * 128;
    char* two = one + half;
    fetch(memory.weights, weights);
    fetch(memory.numbers, numbers);
    synchronise();
    const int warp = thread() / 32, warps = threads() / 32, lane = thread() % 32;
    for (int first = block() * queries; first < B; first += blocks() * queries) {
        const Group group = {first, B - first < queries ? B - first : queries, B};
        const int tiles = tiles_of(C, group.queries);
        const long long stays = (long long)block() * tiles_of(C, queries);  // the first tile of a block's states
        for (int tile = warp; tile < tiles; tile += warps) {
            int near[2];
            const Place p = group.place(tile, 0, C, near);
            Tile<D> now;
            Packed<D> asked;
            now.zero();
            now.add(begin, p);
            asked.load(query, p.row, D, p.t);
            store_state(now, state, stays + tile, lane);
            send(now, asked, memory, x, one, near, p, keep, 0);
        }
        synchronise();
        for (int step = 0; step < steps; step++) {
            const int last = step == steps - 1;
            const long long kept = keep ? (long long)step * C * B : 0, out = every_step ? (long long)step * C * B : 0;
            uint4 told[2 * P / 16][2];
            // `one` holds what choices send, then what rules answer; `two` what rules pool, then what choices send.
            for (int pair = warp; pair < kinds * UNITS || pair == warp; pair += warps) {
                const Part part = parts[pair < kinds * UNITS ? pair / UNITS : 0];
                const Telling& from = telling[part.kind * UNITS + pair % UNITS];
                #pragma unroll
                for (int k = 0; k < 2 * P / 16; k++)
                    #pragma unroll
                    for (int n = 0; n < 2; n++) told[k][n] = from.v[k][n][lane];
                if (pair == warp) {  // the weights arrive meanwhile
                    unsigned short* slots = winners + (keep ? (long long)step * G * B * P : 0);
                    if (keep) pool_rules<true>(one, two, members, width, parts, pooled, slots, group, G, step, steps);
                    else pool_rules<false>(one, two, members, width, parts, pooled, slots, group, G, step, steps);
                    synchronise();
                }
                if (pair < kinds * UNITS) answer_rules(told, two, one, part, pair % UNITS, group);
            }
            synchronise();
            for (int tile = warp; tile < tiles; tile += warps) {
                int near[2];
                const Place p = group.place(tile, 0, C, near);
                Tile<D> moved;
                Packed<D> asked;
                load_state(moved, state, stays + tile, lane);
                asked.load<true>(query, p.row, D, p.t);
                {
                    Packed<D> seen;
                    #pragma unroll
                    for (int n = 0; n < D / 8; n++)
                        #pragma unroll
                        for (int r = 0; r < 2; r++)
                            seen.v[n][r] = pack(
                                moved.v[n][2 * r] + low_half(asked.v[n][r]), moved.v[n][2 * r + 1] + high_half(asked.v[n][r])
                            );
                    unsigned short* own = gate + kept * 2 * H;
                    if (whole) move<true>(moved, seen, one, links, degree, memory, own, p, group, keep);
                    else move<false>(moved, seen, one, links, degree, memory, own, p, group, keep);
                }
                float inverse[2], sums[2];
                normalise(moved, memory.numbers.state_bias, inverse, p.t);
                if (last) moved.store(end, p);
                else store_state(moved, state, stays + tile, lane);
                const float* readout = memory.numbers.readout;
                row_sums<D>(sums, [&](int n, int i) { return moved.v[n][i] * readout[column<D>(n, p.t, i % 2)]; });
                #pragma unroll
                for (int r = 0; r < 2; r++)
                    if (p.t == 0 && p.inside[r]) {
                        logits[out + p.row[r]] = sums[r];
                        if (keep) scale[kept + p.row[r]] = inverse[r];
                    }
                if (!last || keep) send(moved, asked, memory, x + (kept + (long long)C * B) * D, two, near, p, keep, last);
            }
            synchronise();
            char* other = one;
            one = two;
            two = other;
        }
    }
}
