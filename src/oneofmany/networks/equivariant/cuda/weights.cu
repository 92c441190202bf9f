// Gradients that are sums over all steps, in one pass over what both passes have left: of the choices' weights, biases and
// readout over all rows, and of every row's query.
//
// A block takes SPAN rows through all steps, before it goes on to other rows. Their numbers come to the shared memory a few
// stages ahead. Gradients of gates and values, and hidden units, are made again from what moves a choice: to make them costs
// less than to write and to read them. The matrix units multiply the transposed rows: every warp keeps the sums of a few
// rows of the weight matrices in its registers, in all of the block's work, so that the order of sums is fixed.

constexpr int OUT = P + 2 * H, SUM_WARPS = 8, TILES = SPAN / 16;
constexpr int STAGES = SPAN / 32 + 2;  // GPUs with little shared memory have a SPAN of 32
constexpr int WIDEST = D > H ? D : H;
// Parts of 16 rows of the weight matrices: a warp has some of grad_own (what is sent, gates, values), or some of grad_moved.
constexpr int PARTS_OF_OWN = OUT / 16, PARTS_OF_MOVED = D / 16;
constexpr int PARTS_OF_WARP = (PARTS_OF_OWN + PARTS_OF_MOVED + SUM_WARPS - 1) / SUM_WARPS;
constexpr int OWN_WARPS = (PARTS_OF_OWN + PARTS_OF_WARP - 1) / PARTS_OF_WARP;
static_assert(OWN_WARPS + (PARTS_OF_MOVED + PARTS_OF_WARP - 1) / PARTS_OF_WARP <= SUM_WARPS);
// To make units again, a warp takes 16 units of every ROWS_APART-th tile.
constexpr int UNITS_APART = H / 16, ROWS_APART = SUM_WARPS / UNITS_APART, TIMES = (TILES + ROWS_APART - 1) / ROWS_APART;

struct SumWeights {
    Weights<OUT, D> own;
    Weights<D, H> state;
};

// What the rows of a step bring. Gates and values are for the thread that copies them, of rows g and g + 8 of its tiles.
struct Stage {
    unsigned short sent[SPAN * P], moved[SPAN * D], seen[SPAN * D];
    uint4 gate[TIMES][2][32 * SUM_WARPS];
    float of_logits[SPAN];
};

// What is made of them: gradients of gates and of values; hidden units.
struct Made {
    unsigned short gates[SPAN * H], values[SPAN * H], hidden[SPAN * H];
};

// Where 8 columns of a row are: neighbouring rows have them in different banks.
template <int W> constexpr int SWAPPED = W % 64 == 0 ? 7 : W % 32 == 0 ? 3 : 1;
template <int W> __device__ int place_in(int row, int chunk) { return row * W + 8 * (chunk ^ (row & SWAPPED<W>)); }

// Columns of one of these matrices; its width is known when the kernel runs.
struct Columns {
    int offset, width, swapped, first;
    bool made;
    template <int W> __device__ static Columns of(int offset, int column, bool made) {
        return {offset, W, SWAPPED<W>, column / 8, made};
    }
    __device__ unsigned short* at(Stage& s, Made& m, int row, int chunk) const {
        return (made ? m.gates : s.sent) + offset + row * width + 8 * ((first + chunk) ^ (row & swapped));
    }
};

// 16 of the columns whose rows a warp adds up.
__device__ Columns columns_of(int part, bool own) {
    if (!own) return Columns::of<D>(SPAN * P, 16 * part, false);
    if (16 * part < P) return Columns::of<P>(0, 16 * part, false);
    return Columns::of<H>(16 * part < P + H ? 0 : SPAN * H, (16 * part - P) % H, true);
}

// Neighbouring threads copy what is next to each other, and every one the same columns of all its rows.
template <int W> __device__ void copy_rows(unsigned short* to, const unsigned short* from, long long first, long long rows) {
    constexpr int GROUP = SWAPPED<W> + 1, AT_ONCE = 32 * SUM_WARPS / GROUP;
    const int row = thread() / GROUP, chunk = thread() % GROUP;
    to += place_in<W>(row, chunk);
    from += (first + row) * W + 8 * chunk;
    #pragma unroll
    for (int i = 0; i < (SPAN + AT_ONCE - 1) / AT_ONCE; i++)
        if (AT_ONCE <= SPAN || row < SPAN) {
            const bool there = first + row + i * AT_ONCE < rows;
            #pragma unroll
            for (int k = 0; k < W / 8; k += GROUP)
                copy_later<16>(to + i * AT_ONCE * W + 8 * k, there ? from + (long long)i * AT_ONCE * W + 8 * k : from, there);
        }
}

// 16 rows and 16 columns, as a first factor of a product or, transposed, as a second one.
template <int W, bool transposed> __device__ void take(unsigned (&x)[4], const unsigned short* from, int row, int column, int lane) {
    load_parts(x, from + place_in<W>(row + lane % 16, column / 8 + lane / 16), transposed);
}

// Two summands that fit into bfloat16 make up a number, up to 2^-17 of it.
__device__ unsigned in_two(float x, float y, bool rest) {
    const unsigned whole = pack(x, y);
    return rest ? pack(x - low_half(whole), y - high_half(whole)) : whole;
}

// Of every block the sums, [OUT, D] and [D, H], of grad_own [OUT], of grad_moved [D], and in parts [128 / D, D] the states
// times the gradients of their logits; the gradients of queries, [C, B, D] from rows b * C + c.
extern "C" __global__ void __launch_bounds__(32 * SUM_WARPS, 1) weight_sums(
    const unsigned short* sent, const unsigned short* grad_moved, const unsigned short* gate, const unsigned short* states,
    const unsigned short* query, const float* grad_logits, const SumWeights* weights, unsigned short* grad_query, float* sums,
    int rows, int C, int steps
) {
    constexpr int COLUMNS = D / 16, TILES_OF_WARP = (TILES * COLUMNS + SUM_WARPS - 1) / SUM_WARPS;
    Stage* stages = reinterpret_cast<Stage*>(shared_memory());
    Made* makes = reinterpret_cast<Made*>(stages + STAGES);
    const int warp = thread() / 32, lane = thread() % 32, g = lane / 4, t = lane % 4;
    const bool own = warp < OWN_WARPS;
    const int begin = (own ? warp : warp - OWN_WARPS) * PARTS_OF_WARP, end = own ? PARTS_OF_OWN : PARTS_OF_MOVED;
    Columns first[PARTS_OF_WARP];
    #pragma unroll
    for (int i = 0; i < PARTS_OF_WARP; i++) first[i] = columns_of(begin + i < end ? begin + i : end - 1, own);
    const Columns second = own ? Columns::of<D>(SPAN * (P + D), 0, false) : Columns::of<H>(2 * SPAN * H, 0, true);
    // Products of a part with the second matrix, its sums over steps alone, and over rows as well.
    float products[PARTS_OF_WARP][WIDEST / 8][4] = {}, over_steps[PARTS_OF_WARP][TILES][2][4] = {}, alone[PARTS_OF_WARP][2][2] = {};
    float read[2][4] = {};
    const unsigned unit = unit_matrix(lane, ONE);
    const int units = warp % UNITS_APART, columns = warp % COLUMNS;  // 16 of each

    // What a choice sees is its state and its query: the states of all steps are multiplied, then the query by what has been
    // added up over steps. Stage `steps` brings the last states only, the one after it the query.
    const int spans = (rows + SPAN - 1) / SPAN, mine = (spans - block() + blocks() - 1) / blocks(), all = mine * (steps + 2);
    auto bring = [&](int number) {
        if (number < all) {
            Stage& to = stages[number % STAGES];
            const int step = number % (steps + 2);
            const long long first = (long long)(block() + number / (steps + 2) * blocks()) * SPAN;
            const long long before = (long long)step * rows;
            copy_rows<D>(to.seen, step <= steps ? states + before * D : query, first, rows);
            if (step < steps) {
                copy_rows<P>(to.sent, sent + before * P, first, rows);
                copy_rows<D>(to.moved, grad_moved + before * D, first, rows);
                #pragma unroll
                for (int i = 0; i < 2 * TIMES; i++) {
                    const int row = 16 * (warp / UNITS_APART + i / 2 * ROWS_APART) + g + 8 * (i % 2);
                    const bool there = row < SPAN && first + row < rows;
                    const unsigned short* from = gate + (before + first + (there ? row : 0)) * 2 * H + 32 * units + 8 * t;
                    copy_later<16>(&to.gate[i / 2][i % 2][thread()], from, there);
                }
            }
            if (thread() < SPAN && step && step <= steps) {
                const bool there = first + thread() < rows;
                copy_later<4>(to.of_logits + thread(), grad_logits + before - rows + (there ? first + thread() : 0), there);
            }
        }
        end_of_copies();
    };
    auto make = [&](const Stage& s, Made& to) {
        #pragma unroll 1  // there are no registers for more
        for (int i = 0; i < TIMES; i++) {
            const int tile = warp / UNITS_APART + i * ROWS_APART;
            if (tile >= TILES) continue;
            float back[2][4] = {};
            #pragma unroll
            for (int k = 0; k < D / 16; k++) {
                unsigned a[4];
                take<D, false>(a, s.moved, 16 * tile, 16 * k, lane);
                const uint4 b = weights->state.v[k][units][lane];
                mma(back[0], a[0], a[1], a[2], a[3], b.x, b.y);
                mma(back[1], a[0], a[1], a[2], a[3], b.z, b.w);
            }
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                const uint4 kept = s.gate[i][r][thread()];
                const Gated low = back_to_gates(kept.x, kept.z, back[0][2 * r], back[0][2 * r + 1]);
                const Gated high = back_to_gates(kept.y, kept.w, back[1][2 * r], back[1][2 * r + 1]);
                const int at = place_in<H>(16 * tile + g + 8 * r, 2 * units + t / 2) + 4 * (t % 2);
                *reinterpret_cast<uint2*>(to.gates + at) = make_uint2(low.gates, high.gates);
                *reinterpret_cast<uint2*>(to.values + at) = make_uint2(low.values, high.values);
                *reinterpret_cast<uint2*>(to.hidden + at) = make_uint2(low.hidden, high.hidden);
            }
        }
    };
    auto add = [&](int number, Stage& s, Made& now, Stage& then, Made& next) {
        const int step = number % (steps + 2);
        if (step < steps || (step > steps && own))
            #pragma unroll
            for (int k = 0; k < TILES; k++) {
                unsigned b[WIDEST / 16][4] = {};
                #pragma unroll
                for (int n = 0; n < WIDEST / 16; n++)
                    if (16 * n < second.width)
                        load_parts(b[n], second.at(s, now, 16 * k + lane % 16, 2 * n + lane / 16), true);
                #pragma unroll
                for (int i = 0; i < PARTS_OF_WARP; i++) {
                    unsigned a[4];
                    load_parts(a, first[i].at(s, now, 16 * k + lane % 8 + lane / 16 * 8, lane / 8 % 2), true);
                    #pragma unroll
                    for (int n = 0; n < WIDEST / 8; n++)
                        mma(products[i][n], a[0], a[1], a[2], a[3], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
                    // The same registers are a second factor: rows times columns of the part.
                    mma(over_steps[i][k][0], unit, 0, 0, unit, a[0], a[2]);
                    mma(over_steps[i][k][1], unit, 0, 0, unit, a[1], a[3]);
                }
            }
        if (step == steps)  // the sums over steps take the place of what comes in no more
            #pragma unroll
            for (int i = 0; i < PARTS_OF_WARP * TILES * 4; i++) {
                const int part = i / 4 / TILES, tile = i / 4 % TILES, n = i / 2 % 2, r = i % 2;
                const float(&sum)[4] = over_steps[part][tile][n];
                unsigned* to = reinterpret_cast<unsigned*>(first[part].at(then, next, 16 * tile + g + 8 * r, n)) + t;
                if (own) *to = pack(sum[2 * r], sum[2 * r + 1]);
                #pragma unroll
                for (int j = 0; j < 2; j++) alone[part][n][j] += sum[2 * r + j];
            }
        if (step > steps)
            #pragma unroll
            for (int i = 0; i < PARTS_OF_WARP * TILES * 8; i++) over_steps[i / 8 / TILES][i / 8 % TILES][i / 4 % 2][i % 4] = 0.f;
        #pragma unroll
        for (int i = 0; i < TILES_OF_WARP; i++) {
            const int tile = warp / COLUMNS + i * (SUM_WARPS / COLUMNS);
            if (tile >= TILES) continue;
            if (step && step <= steps) {  // the readout: the larger halves of the logits' gradients in row 0, the rests in row 1
                const float* d = s.of_logits + 16 * tile + 2 * t;
                const unsigned low = g < 2 ? in_two(d[0], d[1], g) : 0, high = g < 2 ? in_two(d[8], d[9], g) : 0;
                unsigned b[4];
                take<D, true>(b, s.seen, 16 * tile, 16 * columns, lane);
                mma(read[0], low, 0, high, 0, b[0], b[1]);
                mma(read[1], low, 0, high, 0, b[2], b[3]);
            }
            if (step <= steps) continue;
            float asked[2][4] = {};
            #pragma unroll
            for (int k = 0; k < OUT; k += 16) {
                unsigned a[4];
                if (k < P) take<P, false>(a, s.sent, 16 * tile, k, lane);
                else take<H, false>(a, k < P + H ? now.gates : now.values, 16 * tile, (k - P) % H, lane);
                const uint4 b = weights->own.v[k / 16][columns][lane];
                mma(asked[0], a[0], a[1], a[2], a[3], b.x, b.y);
                mma(asked[1], a[0], a[1], a[2], a[3], b.z, b.w);
            }
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                const int row = (block() + number / (steps + 2) * blocks()) * SPAN + 16 * tile + g + 8 * r;
                const long long to = (long long)(row % C) * (rows / C) + row / C;
                if (row < rows)
                    *reinterpret_cast<uint2*>(grad_query + to * D + column<D>(2 * columns, t, 0)) =
                        make_uint2(pack(asked[0][2 * r], asked[0][2 * r + 1]), pack(asked[1][2 * r], asked[1][2 * r + 1]));
            }
        }
    };
    #pragma unroll 1
    for (int i = 0; i < STAGES - 2; i++) bring(i);
    for (int number = -1; number < all; number++) {
        wait_for_copies<STAGES - 3>();
        synchronise();
        bring(number + STAGES - 1);
        Stage& then = stages[(number + 1) % STAGES];
        Made& now = makes[(number + 1) % 2 ^ 1], &next = makes[(number + 1) % 2];
        // Half of the warps make units first and the other half last, so that not all of them need the same at once.
        const bool more = number + 1 < all && (number + 1) % (steps + 2) < steps, early = warp < SUM_WARPS / 2;
        if (more && early) make(then, next);
        if (number >= 0) add(number, stages[number % STAGES], now, then, next);
        if (more && !early) make(then, next);
    }
    float* to = sums + (long long)block() * (OUT * D + D * H + OUT + D + SUM_WARPS / COLUMNS * D);
    float* of_rows = to + OUT * D + D * H;
    #pragma unroll
    for (int i = 0; i < PARTS_OF_WARP; i++) {
        const int before = (own ? 0 : OUT) + 16 * (begin + i);  // rows of both matrices
        float* at = to + (own ? before * D : OUT * D + (before - OUT) * H);
        const int N = own ? D : H;
        #pragma unroll
        for (int j = 0; j < 4; j++) {
            float sum = alone[i][j / 2][j % 2];
            #pragma unroll
            for (int mask = 4; mask < 32; mask *= 2) sum += across(sum, mask);
            if (begin + i < end && g == 0) of_rows[before + 8 * (j / 2) + 2 * t + j % 2] = sum;
            #pragma unroll
            for (int n = 0; n < WIDEST / 8; n++)
                if (begin + i < end && 8 * n < N) at[(g + 8 * (j / 2)) * N + 8 * n + 2 * t + j % 2] = products[i][n][j];
        }
    }
    #pragma unroll
    for (int n = 0; n < 2; n++)
        #pragma unroll
        for (int j = 0; j < 2; j++) {
            const float sum = read[n][j] + across(read[n][j], 4);
            if (g == 0) of_rows[OUT + D + warp / COLUMNS * D + 16 * columns + 8 * n + 2 * t + j] = sum;
        }
}
