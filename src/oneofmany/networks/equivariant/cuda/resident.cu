// All steps of whole queries in one block. What choices send and what rules answer stays in the shared memory; the state
// goes through the L2 cache. A row is one choice, or one rule, of one of the block's queries.
//
// Hidden units, and channels that are sent back, go through the matrix units 16 at a time; a lane holds four of them,
// 16 * c + 4 * t to 16 * c + 4 * t + 3 (``own_k`` and ``own_n`` of ``tables.fragments``).

// ---- rows in the shared memory --------------------------------------------------------------------------------------

// Where a byte of a row of STRIDE bytes is, of rows [queries, G]: 16 bytes change places, in another way for each of eight
// neighbouring rules. Then these are in different banks: the same 16 bytes of eight rows, 64 bytes of two rows, and, if all
// is a quarter as wide, 16 bytes of eight rows.
template <int STRIDE> __device__ int swapped(int number) {
    const int pair = number >> 1 & 3, changed = (pair | (number & 1) << 2) ^ pair << 2;
    return (changed & (STRIDE / 16 - 1)) << 4;
}
template <int STRIDE> __device__ int spot(int rule, int query, int G, int byte) {
    return (query * G + rule) * STRIDE + (byte ^ swapped<STRIDE>(rule ^ query));
}
// The same from a table's number, which is the spot of the rule's first byte in rows of 256 bytes. Its highest byte stays.
template <int STRIDE> __device__ unsigned spot_from(unsigned number, int query, int G, int byte) {
    if (STRIDE == 256) return (number ^ byte ^ swapped<STRIDE>(query)) + query * G * STRIDE;
    return (number & 0xff000000) | spot<STRIDE>(number >> 8 & 0xffff, query, G, byte);
}

// What choices send and hand back is [queries, C + 1]: the last row of a query is what lists are padded with. Here 32 bytes
// of a row change places by the choice and by the query, so that a list can say where a choice's row is. Of neighbouring
// choices, half a warp writes 32 bytes of four rows or 64 bytes of two, and reads 64 bytes of two rows or whole rows.
template <int W> __device__ int turned(int number) { return W < 64 ? 0 : (number & 1) << 6 | (number & 2) << 4; }
template <int W> __device__ int spot_of_choice(int choice, int query, int C, int byte) {
    return (query * (C + 1) + choice) * 2 * W + (byte ^ turned<W>(choice ^ query));
}

// The last row of every query: `filling` in all words.
template <int W> __device__ void fill_padding(char* to, int queries, int C, unsigned filling) {
    for (int i = thread(); i < queries * (W / 8); i += threads())
        *reinterpret_cast<uint4*>(to + spot_of_choice<W>(C, i / (W / 8), C, 16 * (i % (W / 8)))) =
            make_uint4(filling, filling, filling, filling);
}

__device__ void store_sent(const Packed<P>& x, char* to, const Place& p, int C) {
    constexpr int pairs = OWN<P> / 2;
    #pragma unroll
    for (int r = 0; r < 2; r++)
        if (p.inside[r])
            #pragma unroll
            for (int q = 0; q < P / 8; q += pairs) {
                char* at = to + spot_of_choice<P>(p.item[r], p.query[r], C, 2 * column<P>(q, p.t, 0));
                if (pairs == 4)
                    *reinterpret_cast<uint4*>(at) = make_uint4(x.v[q][r], x.v[q + 1][r], x.v[q + 2][r], x.v[q + 3][r]);
                else
                    *reinterpret_cast<uint2*>(at) = make_uint2(x.v[q][r], x.v[q + 1][r]);
            }
}

// A lane of a unit matrix of 8 x 8 times a bfloat16, as a second factor of `mma_half`.
__device__ unsigned unit_matrix(int lane, unsigned factor) {
    return lane / 8 == lane % 4 ? factor << 16 * (lane / 4 % 2) : 0;
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

// Ask for a row of 16-bit numbers; the four lanes of a row share the work.
template <int W> __device__ void ask_for_row(const unsigned short* from, long long row, int t) {
    #pragma unroll
    for (int i = 0; i < W; i += 64)
        if (W >= 64 || 16 * t < W) ask_for(from + row * W + i + 16 * t);
}

// ---- the forward pass -----------------------------------------------------------------------------------------------

constexpr unsigned ONE = 0x3f80;  // 1 as bfloat16
constexpr unsigned NO_NEAR = 15;  // a slot of no choice, in 4 bits
constexpr int FOUR = 4;           // the rules of a choice

// The products of rules of one kind with 16 columns of both halves of their result: a warp holds the weights.
template <int K> struct Slice {
    uint4 v[2 * K / 16][2];
    __device__ void load(const unsigned short* weights, int number, int lane) {
        const uint4* from = reinterpret_cast<const uint4*>(weights) + (long long)number * (2 * K / 16) * 2 * 32 + lane;
        #pragma unroll
        for (int k = 0; k < 2 * K / 16; k++)
            #pragma unroll
            for (int n = 0; n < 2; n++) v[k][n] = from[(2 * k + n) * 32];
    }
};

// Where what is kept of a rule is: the first rule of its kind, and their number.
struct Home {
    int first, rules;
};

// A block's queries. Their rows in global memory are [B, items].
struct Group {
    int first, queries, B, C, G;
    // A tile of choices, with rows in global memory.
    __device__ Place place(int tile) const {
        Place p = place_of(tile, 0, C, queries);
        #pragma unroll
        for (int r = 0; r < 2; r++) p.row[r] = (long long)(first + p.query[r]) * C + p.item[r];
        return p;
    }
    // The same place in what comes from outside, [items, B]. A 0 that the compiler does not know keeps it from computing
    // that long before it is needed, where registers are few.
    __device__ Place outside(Place p, int nothing = 0) const {
        #pragma unroll
        for (int r = 0; r < 2; r++) p.row[r] = (long long)(p.item[r] ^ nothing) * B + first + p.query[r];
        return p;
    }
    // What is kept of the rules is sorted by kinds, [kind][steps, B, rules of the kind].
    __device__ long long kept(const Home& home, int rule, int query, int step, int steps) const {
        const long long before = (long long)steps * B * home.first + ((long long)step * B + first + query) * home.rules;
        return before + rule - home.first;
    }
};

// Four of a rule's choices. Lists are padded to whole fours with C; a number in them is 4 * choice and, below that, how 32
// bytes of its row change places.
struct Four {
    uint2 v;
    // Where a byte of one of their rows is, after the rows of a query; the byte has been turned by the query.
    template <int W> __device__ int at(int j, int byte) const {
        const unsigned x = j / 2 ? v.y : v.x;
        if (W < 64) return ((j % 2 ? x >> 16 : x & 0xffff) >> 2) * 2 * W + byte;
        return (j % 2 ? x >> 11 & 0x1fffe0 : x << 5 & 0x1fffe0) ^ byte;
    }
};
__device__ const Four* list_of(int rule, const unsigned short* lists, int width) {
    return reinterpret_cast<const Four*>(lists) + rule * ((width + 3) / 4);
}

// The two largest that the choices of every rule send. A thread takes 8 columns of a rule.
template <bool keep> __device__ void pool_rules(
    const char* spoken, char* to, const unsigned short* members, int width, const Home* homes, unsigned short* pooled,
    unsigned char* winners, const Group& group, int G, int step, int steps
) {
    constexpr int CHUNKS = P / 8;
    for (int i = thread(); i < G * group.queries * CHUNKS; i += threads()) {
        const int row = i / CHUNKS, chunk = i % CHUNKS, rule = group.queries == 1 ? row : row / group.queries;
        const int query = row - rule * group.queries;
        const char* from = spoken + query * (group.C + 1) * 2 * P;
        const int byte = 16 * chunk ^ turned<P>(query);
        const Four* list = list_of(rule, members, width);
        Home home = {};
        if (keep) home = homes[rule];
        unsigned best[4], next[4], slot[4], other[4];
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            best[k] = next[k] = LOWEST | LOWEST << 16;
            slot[k] = other[k] = NO_NEAR | NO_NEAR << 16;
        }
        auto take = [&](const uint4& said, unsigned s) {
            const unsigned x[4] = {said.x, said.y, said.z, said.w};
            #pragma unroll
            for (int k = 0; k < 4; k++) rank(best[k], next[k], slot[k], other[k], x[k], s, keep);
        };
        Four some = *list;
        int s = 0;
        #pragma unroll 1
        for (; s + FOUR <= width; s += FOUR) {  // all threads agree on that; padding sends what is never larger
            uint4 said[FOUR];
            #pragma unroll
            for (int j = 0; j < FOUR; j++) said[j] = *reinterpret_cast<const uint4*>(from + some.at<P>(j, byte));
            if (s + FOUR < width) some = *++list;
            #pragma unroll
            for (int j = 0; j < FOUR; j++) take(said[j], s + j);
        }
        #pragma unroll
        for (int j = 0; j < FOUR - 1; j++)
            if (s + j < width) take(*reinterpret_cast<const uint4*>(from + some.at<P>(j, byte)), s + j);
        const uint4 first = make_uint4(best[0], best[1], best[2], best[3]);
        const uint4 second = make_uint4(or_zero(next[0]), or_zero(next[1]), or_zero(next[2]), or_zero(next[3]));
        *reinterpret_cast<uint4*>(to + spot<4 * P>(rule, query, G, 16 * chunk)) = first;
        *reinterpret_cast<uint4*>(to + spot<4 * P>(rule, query, G, 2 * P + 16 * chunk)) = second;
        if (keep) {
            uint4* at = reinterpret_cast<uint4*>(pooled) + group.kept(home, rule, query, step, steps) * 2 * CHUNKS + chunk;
            store_once(at, first);
            store_once(at + CHUNKS, second);
            #pragma unroll
            for (int k = 0; k < 4; k++) slot[k] |= other[k] << 4;
            const uint2 both = make_uint2(low_bytes(slot[0], slot[1]), low_bytes(slot[2], slot[3]));
            const long long row = (long long)(group.first + query) * G + rule;
            store_once(reinterpret_cast<uint2*>(winners) + row * CHUNKS + chunk, both);
        }
    }
}

// Products of rules of one kind, [rules, 2 * K] and [2 * K, 2 * N]: columns 16 * c to 16 * c + 15 of both halves of the
// result. In memory, four of a lane's columns of the first half stand before those of the second.
template <int K, int N> __device__ void answer_tiles(
    const Slice<K>& w, const char* from, char* to, const Part& part, int c, int tile, int end, const Group& group
) {
    const int lane = thread() % 32;
    for (; tile < end; tile++) {
        const Place p = place_of(tile, part.first, part.rules, group.queries);
        int spots[2];
        #pragma unroll
        for (int r = 0; r < 2; r++) spots[r] = spot<4 * K>(p.item[r], p.query[r], group.G, 0);
        // A lane says where row lane % 16 of the tile is.
        const int low = from_lane(spots[0], 4 * (lane % 8)), high = from_lane(spots[1], 4 * (lane % 8));
        const int at = (lane / 8 % 2 ? high : low) ^ lane / 16 * 16;
        float sum[4][4] = {};
        #pragma unroll
        for (int k = 0; k < 2 * K / 16; k++) {
            unsigned x[4];
            load_parts(x, from + (at ^ 32 * k), false);  // rows begin at multiples of their size
            #pragma unroll
            for (int n = 0; n < 4; n++) {
                const uint4 b = w.v[k][n / 2];
                mma(sum[n], x[0], x[1], x[2], x[3], n % 2 ? b.z : b.x, n % 2 ? b.w : b.y);
            }
        }
        #pragma unroll
        for (int r = 0; r < 2; r++)
            if (p.inside[r])
                *reinterpret_cast<uint4*>(to + spot<4 * N>(p.item[r], p.query[r], group.G, 64 * c + 16 * p.t)) = make_uint4(
                    pack(sum[0][2 * r], sum[0][2 * r + 1]), pack(sum[1][2 * r], sum[1][2 * r + 1]),
                    pack(sum[2][2 * r], sum[2][2 * r + 1]), pack(sum[3][2 * r], sum[3][2 * r + 1])
                );
    }
}

// What a warp does of that: `count` tiles, one after the other, of all kinds of rules and of all slices of a kind's columns.
struct Share {
    int slice, tile, count;
};
__device__ Share share_of(const Part* parts, int kinds, int slices, int queries) {
    int total = 0;
    for (int kind = 0; kind < kinds; kind++) total += slices * tiles_of(parts[kind].rules, queries);
    const int warp = thread() / 32, warps = threads() / 32, begin = total * warp / warps;
    Share share = {0, begin, total * (warp + 1) / warps - begin};
    while (share.tile >= tiles_of(parts[share.slice / slices].rules, queries))
        share.tile -= tiles_of(parts[share.slice++ / slices].rules, queries);
    return share;
}

// The products of all rules. `before` runs while the first weights arrive.
template <int K, int N, typename F> __device__ void answer_rules(
    const Share& share, const unsigned short* weights, const char* from, char* to, const Part* parts, const Group& group,
    F before
) {
    int slice = share.slice, tile = share.tile, left = share.count;
    for (bool first = true; first || left; first = false) {
        const Part part = parts[slice / (N / 16)];
        const int c = slice % (N / 16), tiles = tiles_of(part.rules, group.queries);
        Slice<K> w;
        w.load(weights, part.kind * (N / 16) + c, thread() % 32);
        if (first) before();
        const int end = tiles < tile + left ? tiles : tile + left;
        answer_tiles<K, N>(w, from, to, part, c, tile, end, group);
        left -= end - tile;
        tile = 0;
        slice++;
    }
}

// A state is kept, and becomes what its choice sends.
__device__ void send(
    Tile<D>& state, const Packed<D>& asked, const ForwardMemory& memory, unsigned short* states, char* spoken,
    const Place& p, int C, int keep, int last
) {
    if (keep) state.packed().store<true>(states, p, D);
    if (last) return;
    state.add(asked, 1.f, 1.f);
    Tile<P> says;
    says.fill(memory.numbers.spoken_bias, p.t);
    multiply(says, state.packed(), memory.weights.spoken, p.lane);
    store_sent(says.packed(), spoken, p, C);
}

// Biases of a lane's four hidden units, as sums to begin with.
__device__ void begin_with(float (&sum)[2][4], const float* bias, int c, int t) {
    const float4 b = *reinterpret_cast<const float4*>(bias + 16 * c + 4 * t);
    sum[0][0] = sum[0][2] = b.x; sum[0][1] = sum[0][3] = b.y; sum[1][0] = sum[1][2] = b.z; sum[1][1] = sum[1][3] = b.w;
}

// Gates and values of 16 hidden units, from all rules of a lane's two choices.
struct Units {
    float gates[2][4], values[2][4];
    // What rules tell both choices; `told` are sums of a row's gates and of its values.
    __device__ void add(const float (&told)[2][2][4]) {
        #pragma unroll
        for (int i = 0; i < 8; i++) {
            const int r = i / 4, n = i / 2 % 2, j = i % 2;
            gates[n][2 * r + j] += told[r][0][2 * n + j];
            values[n][2 * r + j] += told[r][1][2 * n + j];
        }
    }
    __device__ uint4 packed(int r) const {
        return make_uint4(
            pack(gates[0][2 * r], gates[0][2 * r + 1]), pack(gates[1][2 * r], gates[1][2 * r + 1]),
            pack(values[0][2 * r], values[0][2 * r + 1]), pack(values[1][2 * r], values[1][2 * r + 1])
        );
    }
};

// Add to the state what the rules and the choice itself move it by, 16 hidden units after the other. `shares` are those of
// a choice's rules, as unit matrices: the matrix units add what rules tell, in the order in which it lies in the memory.
__device__ void move(
    Tile<D>& moved, const Packed<D>& seen, const char* answers, const uint4* links, const unsigned (&shares)[FOUR],
    const ForwardMemory& memory, unsigned short* gate, const Place& p, const Group& group, int keep
) {
    const Forward& w = memory.weights;
    int from[2][FOUR];
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        const uint4 rules = links[p.item[r]];
        const unsigned of[FOUR] = {rules.x, rules.y, rules.z, rules.w};
        #pragma unroll
        for (int j = 0; j < FOUR; j++) from[r][j] = spot_from<4 * H>(of[j], p.query[r], group.G, 16 * p.t);
    }
    uint4* kept[2];
    #pragma unroll
    for (int r = 0; r < 2; r++) kept[r] = reinterpret_cast<uint4*>(gate) + p.row[r] * (H / 4) + p.t;
    #pragma unroll 1
    for (int c = 0; c < H / 16; c++) {
        float told[2][2][4] = {};
        #pragma unroll
        for (int r = 0; r < 2; r++)
            #pragma unroll
            for (int j = 0; j < FOUR; j++) {
                const uint4 x = *reinterpret_cast<const uint4*>(answers + (from[r][j] ^ 64 * c));
                mma_half(told[r][0], x.x, x.y, shares[j]);
                mma_half(told[r][1], x.z, x.w, shares[j]);
            }
        Units units;
        begin_with(units.gates, memory.numbers.gate_bias, c, p.t);
        begin_with(units.values, memory.numbers.value_bias, c, p.t);
        #pragma unroll
        for (int k = 0; k < D / 16; k++) {
            const uint4 g = w.gate.v[k][c][p.lane], v = w.value.v[k][c][p.lane];
            const unsigned a[4] = {seen.v[2 * k][0], seen.v[2 * k][1], seen.v[2 * k + 1][0], seen.v[2 * k + 1][1]};
            mma(units.gates[0], a[0], a[1], a[2], a[3], g.x, g.y);
            mma(units.gates[1], a[0], a[1], a[2], a[3], g.z, g.w);
            mma(units.values[0], a[0], a[1], a[2], a[3], v.x, v.y);
            mma(units.values[1], a[0], a[1], a[2], a[3], v.z, v.w);
        }
        units.add(told);
        if (keep) {
            const uint4 of_rows[2] = {units.packed(0), units.packed(1)};
            #pragma unroll
            for (int r = 0; r < 2; r++)
                if (p.inside[r]) store_once(kept[r] + 4 * c, of_rows[r]);
        }
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

extern "C" __global__ void __launch_bounds__(32 * FORWARD_WARPS, 1) resident_forward(
    const float* begin, float* state, const unsigned short* given, unsigned short* query, float* end,
    const unsigned short* members, int width,
    const uint4* links, const unsigned short* shares, const Home* homes, const Part* parts, int kinds,
    const Forward* weights, const Numbers* numbers,
    const unsigned short* answering, unsigned short* states, unsigned short* pooled, unsigned char* winners, unsigned short* gate,
    float* scale, float* logits, int B, int C, int G, int queries, int half, int steps, int keep, int every_step
) {
    ForwardMemory& memory = *reinterpret_cast<ForwardMemory*>(shared_memory());
    char* one = reinterpret_cast<char*>(shared_memory()) + (sizeof(ForwardMemory) + 127) / 128 * 128;
    char* two = one + half;
    fetch(memory.weights, weights);
    fetch(memory.numbers, numbers);
    synchronise();
    const int warp = thread() / 32, warps = threads() / 32, lane = thread() % 32;
    unsigned units[FOUR];
    #pragma unroll
    for (int j = 0; j < FOUR; j++) units[j] = unit_matrix(lane, shares[j]);
    for (int first = block() * queries; first < B; first += blocks() * queries) {
        const Group group = {first, B - first < queries ? B - first : queries, B, C, G};
        const int tiles = tiles_of(C, group.queries);
        const Share share = share_of(parts, kinds, H / 16, group.queries);
        const long long stays = (long long)block() * tiles_of(C + 1, queries);  // the first tile of a block's states
        for (int tile = warp; tile < tiles; tile += warps) {
            const Place p = group.place(tile);
            Tile<D> now;
            Packed<D> asked;
            now.zero();
            const Place outside = group.outside(p);
            now.add(begin, outside);
            asked.load(given, outside.row, D, p.t);
            asked.store(query, p, D);
            store_state(now, state, stays + tile, lane);
            send(now, asked, memory, states, one, p, C, keep, 0);
        }
        fill_padding<P>(one, group.queries, C, LOWEST | LOWEST << 16);
        synchronise();
        for (int step = 0; step < steps; step++) {
            const int last = step == steps - 1;
            const long long kept = keep ? (long long)step * C * B : 0, out = every_step ? (long long)step * C * B : 0;
            // `one` holds what choices send, then what rules answer; `two` what rules pool, then what choices send.
            answer_rules<P, H>(share, answering, two, one, parts, group, [&] {
                unsigned char* slots = winners + (keep ? (long long)step * G * B * P : 0);
                if (keep) pool_rules<true>(one, two, members, width, homes, pooled, slots, group, G, step, steps);
                else pool_rules<false>(one, two, members, width, homes, pooled, slots, group, G, step, steps);
                synchronise();
            });
            // A tile's state and query arrive while the block waits for all answers, or while the tile before it is
            // normalised and sends. The same thread has stored the state.
            Tile<D> coming;
            Packed<D> with;
            auto bring = [&](int tile) {
                load_state(coming, state, stays + tile, lane);
                with.load<READ_AGAIN>(query, group.place(tile).row, D, lane % 4);
            };
            bring(warp < tiles ? warp : tiles - 1);
            synchronise();
            #pragma unroll 1
            for (int tile = warp; tile < tiles; tile += warps) {
                const Place p = group.place(tile);
                Tile<D> moved = coming;
                const Packed<D> asked = with;
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
                    move(moved, seen, one, links, units, memory, own, p, group, keep);
                }
                if (tile + warps < tiles) bring(tile + warps);
                else coming.zero();
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
                if (!last || keep) send(moved, asked, memory, states + (kept + (long long)C * B) * D, two, p, C, keep, last);
            }
            fill_padding<P>(two, group.queries, C, LOWEST | LOWEST << 16);
            synchronise();
            char* other = one;
            one = two;
            two = other;
        }
    }
}

// ---- the backward pass ----------------------------------------------------------------------------------------------

// Of four columns, where the nibbles of a slot differ: the highest bit of a column's byte, for the largest and the second.
__device__ void compare(unsigned winners, unsigned own, unsigned& best, unsigned& second) {
    second = ((winners ^ own) & 0x77777777) + 0x77777777 | (winners ^ own);
    best = second << 4;
}

// As ``Packed::rearrange``, for a first factor of a product that is stored as well.
__device__ void rearrange(unsigned (&x)[2][2], unsigned nothing) {
    #pragma unroll
    for (int i = 0; i < 4; i++) x[i / 2][i % 2] ^= nothing;
}

// Back to what choices sent: from the rules in which they were the largest or the second; and on to the state.
__device__ void back_to_sent(
    Tile<D>& grad, const char* grad_pooled, const char* winners, const uint4* slots, const Backward& w,
    unsigned short* grad_sent, const Place& p, const Group& group, unsigned nothing
) {
    const unsigned unit = unit_matrix(p.lane, ONE), same = unit ^ nothing;  // two registers, as a product needs them
    unsigned from[2][FOUR];  // the slot twice in the highest byte, below it where the rule's row is
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        const uint4 found = slots[p.item[r]];
        const unsigned of[FOUR] = {found.x, found.y, found.z, found.w};
        #pragma unroll
        for (int j = 0; j < FOUR; j++) from[r][j] = spot_from<4 * P>(of[j], p.query[r], group.G, 16 * p.t);
    }
    #pragma unroll 2
    for (int c = 0; c < P / 16; c++) {
        float said[2][4] = {};
        #pragma unroll
        for (int j = 0; j < FOUR; j++) {
            unsigned first[2][2], second[2][2];
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                const unsigned at = from[r][j] & 0xffffff ^ 64 * c;
                const uint4 back = *reinterpret_cast<const uint4*>(grad_pooled + at);
                unsigned best, next;
                compare(*reinterpret_cast<const unsigned*>(winners + at / 4), highest_byte(from[r][j]), best, next);
                first[0][r] = back.x & ~masks(best, 0);
                first[1][r] = back.y & ~masks(best, 2);
                second[0][r] = back.z & ~masks(next, 0);
                second[1][r] = back.w & ~masks(next, 2);
            }
            #pragma unroll
            for (int n = 0; n < 2; n++) mma(said[n], first[n][0], first[n][1], second[n][0], second[n][1], unit, same);
        }
        unsigned sent[2][2];
        #pragma unroll
        for (int r = 0; r < 2; r++) {
            #pragma unroll
            for (int n = 0; n < 2; n++) sent[n][r] = pack(said[n][2 * r], said[n][2 * r + 1]);
            if (p.inside[r])
                store_once(reinterpret_cast<uint2*>(grad_sent + p.row[r] * P) + 4 * c + p.t, make_uint2(sent[0][r], sent[1][r]));
        }
        rearrange(sent, nothing);
        #pragma unroll
        for (int n = 0; n < D / 16; n++) {
            const uint4 b = w.spoken.v[c][n][p.lane];
            mma(grad.v[2 * n], sent[0][0], sent[0][1], sent[1][0], sent[1][1], b.x, b.y);
            mma(grad.v[2 * n + 1], sent[0][0], sent[0][1], sent[1][0], sent[1][1], b.z, b.w);
        }
    }
}

// Back through the normalisation: from the gradient of a step's state to that of what was normalised.
__device__ void back_to_moved(
    Tile<D>& grad, const float* readout, const float of_logits[2], const float of_scale[2],
    const Packed<D>& state, const Place& p
) {
    auto made = [&](int n, int i) { return i % 2 ? high_half(state.v[n][i / 2]) : low_half(state.v[n][i / 2]); };
    float sums[2], products[2];
    #pragma unroll
    for (int n = 0; n < D / 8; n++)
        #pragma unroll
        for (int i = 0; i < 4; i++) grad.v[n][i] += of_logits[i / 2] * readout[column<D>(n, p.t, i % 2)];
    row_sums<D>(sums, [&](int n, int i) { return grad.v[n][i]; });
    row_sums<D>(products, [&](int n, int i) { return grad.v[n][i] * made(n, i); });
    float mean[2], along[2];
    #pragma unroll
    for (int r = 0; r < 2; r++) mean[r] = sums[r] / D * of_scale[r], along[r] = products[r] / D * of_scale[r];
    #pragma unroll
    for (int n = 0; n < D / 8; n++)
        #pragma unroll
        for (int i = 0; i < 4; i++)
            grad.v[n][i] = grad.v[n][i] * of_scale[i / 2] - mean[i / 2] - made(n, i) * along[i / 2];
}

// Back through the gated layer, 16 hidden units after the other. The gradients of gates go to the shared memory, those of
// values wait in the L2 cache, in the same order.
__device__ void back_to_units(
    Tile<D>& grad, const Backward& w, const unsigned short* gate, unsigned short* grad_moved,
    char* grad_gates, char* grad_values, const Place& p, int C, unsigned nothing
) {
    uint4 kept[2][2];  // of these 16 units and of the next ones, of both rows
    auto load_gates = [&](uint4 (&to)[2], int c) {
        #pragma unroll
        for (int r = 0; r < 2; r++)
            to[r] = load_once(reinterpret_cast<const uint4*>(gate) + p.row[r] * (H / 4) + 4 * c + p.t);
    };
    load_gates(kept[0], 0);
    if (H > 16) load_gates(kept[1], 1);
    Packed<D> moved = grad.packed();
    moved.store<true>(grad_moved, p, D);
    moved.rearrange(nothing);
    #pragma unroll 1
    for (int even = 0; even < H / 16; even += 2)
        #pragma unroll
        for (int c = even; c < even + (H < 32 ? 1 : 2); c++) {
            uint4(&own)[2] = kept[c - even];
            float back[2][4] = {};
            #pragma unroll
            for (int k = 0; k < D / 16; k++) {
                const uint4 b = w.state.v[k][c][p.lane];
                mma(back[0], moved.v[2 * k][0], moved.v[2 * k][1], moved.v[2 * k + 1][0], moved.v[2 * k + 1][1], b.x, b.y);
                mma(back[1], moved.v[2 * k][0], moved.v[2 * k][1], moved.v[2 * k + 1][0], moved.v[2 * k + 1][1], b.z, b.w);
            }
            unsigned gates[2][2], values[2][2];
            #pragma unroll
            for (int r = 0; r < 2; r++)
                #pragma unroll
                for (int n = 0; n < 2; n++) {
                    const unsigned of_gates = n ? own[r].y : own[r].x, of_values = n ? own[r].w : own[r].z;
                    const Gated made = back_to_gates(of_gates, of_values, back[n][2 * r], back[n][2 * r + 1]);
                    gates[n][r] = made.gates;
                    values[n][r] = made.values;
                }
            if (c + 2 < H / 16) load_gates(own, c + 2);
            const uint2 of_rows[2][2] = {  // of gates and of values
                {make_uint2(gates[0][0], gates[1][0]), make_uint2(gates[0][1], gates[1][1])},
                {make_uint2(values[0][0], values[1][0]), make_uint2(values[0][1], values[1][1])},
            };
            rearrange(gates, nothing);
            rearrange(values, nothing);
            #pragma unroll
            for (int n = 0; n < D / 16; n++) {
                const uint4 g = w.gate.v[c][n][p.lane], v = w.value.v[c][n][p.lane];
                mma(grad.v[2 * n], gates[0][0], gates[0][1], gates[1][0], gates[1][1], g.x, g.y);
                mma(grad.v[2 * n + 1], gates[0][0], gates[0][1], gates[1][0], gates[1][1], g.z, g.w);
                mma(grad.v[2 * n], values[0][0], values[0][1], values[1][0], values[1][1], v.x, v.y);
                mma(grad.v[2 * n + 1], values[0][0], values[0][1], values[1][0], values[1][1], v.z, v.w);
            }
            #pragma unroll
            for (int r = 0; r < 2; r++)  // after the products: no weights are read before what is stored above them
                if (p.inside[r]) {
                    const int at = spot_of_choice<H>(p.item[r], p.query[r], C, 32 * c + 8 * p.t);
                    *reinterpret_cast<uint2*>(grad_gates + at) = of_rows[0][r];
                    store_again(reinterpret_cast<uint2*>(grad_values + at), of_rows[1][r]);
                }
        }
}

// What the choices of every rule hand back for one half (0 gates, 1 values) of its answer, times their share. A warp takes
// 32 units of 16 rules at a time, a lane 8 of them.
__device__ void sum_members(
    const char* units, char* to, const unsigned short* givers, const float* scales, int width, const Home* homes,
    unsigned short* grad_answers, const Group& group, int G, int half, int step, int steps
) {
    constexpr int COLUMNS = (H + 31) / 32;
    const unsigned unit = unit_matrix(thread() % 32, ONE);
    for (int i = thread() / 32; i < tiles_of(G, group.queries) * COLUMNS; i += threads() / 32) {
        const Place p = place_of(i / COLUMNS, 0, G, group.queries);
        const int begin = 32 * (i % COLUMNS) + 8 * p.t;
        const Four* lists[2];
        const char* from[2];
        int byte[2];
        Four some[2];
        #pragma unroll
        for (int r = 0; r < 2; r++) {
            lists[r] = list_of(p.item[r], givers, width);
            from[r] = units + p.query[r] * (group.C + 1) * 2 * H;
            byte[r] = (H < 32 && begin >= H ? 0 : 2 * begin) ^ turned<H>(p.query[r]);
            some[r] = *lists[r];
        }
        float sum[2][2][4] = {};
        auto add = [&](int r, const uint4& x) {
            mma_half(sum[r][0], x.x, x.y, unit);
            mma_half(sum[r][1], x.z, x.w, unit);
        };
        int s = 0;
        #pragma unroll 1
        for (; s + FOUR <= width; s += FOUR) {
            uint4 x[FOUR][2];
            #pragma unroll
            for (int j = 0; j < 2 * FOUR; j++)
                x[j / 2][j % 2] = *reinterpret_cast<const uint4*>(from[j % 2] + some[j % 2].at<H>(j / 2, byte[j % 2]));
            #pragma unroll
            for (int r = 0; r < 2; r++)
                if (s + FOUR < width) some[r] = *++lists[r];
            #pragma unroll
            for (int j = 0; j < 2 * FOUR; j++) add(j % 2, x[j / 2][j % 2]);
        }
        #pragma unroll
        for (int j = 0; j < FOUR - 1; j++)
            if (s + j < width)
                #pragma unroll
                for (int r = 0; r < 2; r++) add(r, *reinterpret_cast<const uint4*>(from[r] + some[r].at<H>(j, byte[r])));
        #pragma unroll
        for (int r = 0; r < 2; r++) {
            if (!p.inside[r] || begin >= H) continue;
            const float scale = scales[p.item[r]];
            const long long kept = group.kept(homes[p.item[r]], p.item[r], p.query[r], step, steps);
            const float(&of)[2][4] = sum[r];
            const uint4 all = make_uint4(
                pack(scale * of[0][0], scale * of[0][1]), pack(scale * of[0][2], scale * of[0][3]),
                pack(scale * of[1][0], scale * of[1][1]), pack(scale * of[1][2], scale * of[1][3])
            );
            *reinterpret_cast<uint4*>(to + spot<4 * H>(p.item[r], p.query[r], G, 2 * (half * H + begin))) = all;
            store_once(reinterpret_cast<uint4*>(grad_answers + kept * 2 * H + half * H + begin), all);
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * BACKWARD_WARPS, 1) resident_backward(
    float* grad_state, float* between, const float* grad_logits, const float* scale,
    const unsigned short* states, const unsigned short* gate, const unsigned char* winners, const unsigned short* givers,
    const float* scales, int width, const uint4* slots, const Home* homes, const Part* parts, int kinds,
    const Backward* weights, const Numbers* numbers, const unsigned short* returning, unsigned short* grad_sent,
    unsigned short* grad_moved, unsigned short* grad_answers, int B, int C, int G, int queries, int of_choices, int of_rules,
    int steps, int given
) {
    BackwardMemory& memory = *reinterpret_cast<BackwardMemory*>(shared_memory());
    // What choices hand back, of_choices bytes, and what rules hand back, of_rules bytes, take turns at both ends.
    char* bottom = reinterpret_cast<char*>(shared_memory()) + (sizeof(BackwardMemory) + 127) / 128 * 128;
    char* won = bottom + of_choices + of_rules;
    fetch(memory.weights, weights);
    fetch(memory.numbers, numbers);
    synchronise();
    const int warp = thread() / 32, warps = threads() / 32, lane = thread() % 32;
    // What stays in the L2 cache: gradients of the block's states, and of values.
    between += (long long)block() * tiles_of(C + 1, queries) * 16 * (D + H / 2);
    char* grad_values = reinterpret_cast<char*>(between + tiles_of(C + 1, queries) * 16 * D);
    fill_padding<H>(grad_values, queries, C, 0);
    const long long rows = (long long)C * B;
    for (int first = block() * queries; first < B; first += blocks() * queries) {
        const Group group = {first, B - first < queries ? B - first : queries, B, C, G};
        const int tiles = tiles_of(C, group.queries);
        const Share share = share_of(parts, kinds, P / 16, group.queries);
        bool low = true;  // whether what rules hand back is at the bottom
        for (int step = steps - 1; step >= -1; step--) {
            char* of_rule = low ? bottom : bottom + of_choices;
            char* of_choice = low ? bottom + of_rules : bottom;
            for (int tile = warp; tile < tiles; tile += warps) {
                const Place p = group.place(tile);
                const unsigned short* of_state = states + (step + 1) * rows * D;
                const unsigned short* of_gates = gate + step * rows * 2 * H;
                const float *of_logits = grad_logits + step * rows, *of_scale = scale + step * rows;
                if (step >= 0)
                    #pragma unroll
                    for (int r = 0; r < 2; r++) {
                        // All these are far away, and there are no registers to wait for them in: while the tile goes
                        // back to what was sent, they come into the L2 cache.
                        ask_for_row<D>(of_state, p.row[r], p.t);
                        ask_for_row<2 * H>(of_gates, p.row[r], p.t);
                        ask_for((p.t % 2 ? of_logits : of_scale) + p.row[r]);
                    }
                Tile<D> grad;
                if (step == steps - 1) {
                    grad.zero();
                    if (given) grad.add(grad_state, group.outside(p));
                } else {
                    load_state(grad, between, tile, lane);
                    back_to_sent(
                        grad, of_rule, won, slots, memory.weights, grad_sent + (step + 1) * rows * P, p, group,
                        steps >> 31
                    );
                }
                if (step < 0) {
                    grad.store(grad_state, group.outside(p, steps >> 31));
                    continue;
                }
                Packed<D> state;
                state.load<READ_ONCE>(of_state, p.row, D, p.t);
                const float logits[2] = {of_logits[p.row[0]], of_logits[p.row[1]]};
                const float inverse[2] = {of_scale[p.row[0]], of_scale[p.row[1]]};
                back_to_moved(grad, memory.numbers.readout, logits, inverse, state, p);
                back_to_units(
                    grad, memory.weights, of_gates, grad_moved + step * rows * D, of_choice, grad_values, p, C, steps >> 31
                );
                store_state(grad, between, tile, lane);
            }
            fill_padding<H>(of_choice, group.queries, C, 0);
            synchronise();
            if (step < 0) break;
            const Group& g = group;
            for (int asked = 0; asked < g.queries; asked++)  // the winners of this step
                for (int i = thread(); i < G * P / 4; i += threads()) {
                    const long long from = ((long long)step * B + first + asked) * G * P + 4 * i;
                    copy_later<4>(won + spot<4 * P>(i / (P / 4), asked, G, 16 * (i % (P / 4))) / 4, winners + from, true);
                }
            sum_members(of_choice, of_rule, givers, scales, width, homes, grad_answers, g, G, 0, step, steps);
            synchronise();
            for (int i = thread(); i < (C + 1) * g.queries * H / 8; i += threads())  // the values instead of the gates
                copy_later<16>(of_choice + 16 * i, grad_values + 16 * i, true);
            end_of_copies();
            wait_for_copies<0>();
            synchronise();
            char* to = low ? bottom + of_choices : bottom;  // at the other end than what it is made from
            sum_members(of_choice, of_rule, givers, scales, width, homes, grad_answers, g, G, 1, step, steps);
            answer_rules<H, P>(share, returning, of_rule, to, parts, group, [] { synchronise(); });
            synchronise();
            low = !low;
        }
    }
}
