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

// Columns of one of these matrices; its width is known when the kernel runs, or before that if all have the same.
constexpr bool ALIKE = D == P && D == H;
struct Columns {
    int offset, of_row, swapped, first;
    bool made;
    template <int W> __device__ static Columns of(int offset, int column, bool made) {
        return {offset, W, SWAPPED<W>, column / 8, made};
    }
    __device__ int width() const { return ALIKE ? D : of_row; }
    __device__ unsigned short* at(Stage& s, Made& m, int row, int chunk) const {
        const int changed = (first + chunk) ^ (row & (ALIKE ? SWAPPED<D> : swapped));
        return (made ? m.gates : s.sent) + offset + row * width() + 8 * changed;
    }
};

// 16 of the columns whose rows a warp adds up.
__device__ Columns columns_of(int part, bool own) {
    if (!own) return Columns::of<D>(SPAN * P, 16 * part, false);
    if (16 * part < P) return Columns::of<P>(0, 16 * part, false);
    return Columns::of<H>(16 * part < P + H ? 0 : SPAN * H, (16 * part - P) % H, true);
}

// Where a block is: the first of its rows, and how many stages of these came before. To count costs less than to divide.
struct Turn {
    int first, step;
    __device__ void next(int steps) {
        if (++step < steps + 2) return;
        step = 0;
        first += blocks() * SPAN;
    }
};

// Neighbouring threads copy what is next to each other, and every one the same columns of all its rows. Only `left` rows
// are there; nothing is read of the others, which become zeros.
template <int W> __device__ void copy_rows(unsigned short* to, const unsigned short* from, int left) {
    constexpr int GROUP = SWAPPED<W> + 1, AT_ONCE = 32 * SUM_WARPS / GROUP;
    const int row = thread() / GROUP, chunk = thread() % GROUP;
    to += place_in<W>(row, chunk);
    from += row * W + 8 * chunk;
    #pragma unroll
    for (int i = 0; i < (SPAN + AT_ONCE - 1) / AT_ONCE; i++)
        if (AT_ONCE <= SPAN || row < SPAN)
            #pragma unroll
            for (int k = 0; k < W / 8; k += GROUP)
                copy_later<16>(to + i * AT_ONCE * W + 8 * k, from + i * AT_ONCE * W + 8 * k, row + i * AT_ONCE < left);
}

// 16 rows and 16 columns, as a first factor of a product or, transposed, as a second one.
template <int W, bool transposed> __device__ void take(unsigned (&x)[4], const unsigned short* from, int row, int column, int lane) {
    load_parts(x, from + place_in<W>(row + lane % 16, column / 8 + lane / 16), transposed);
}

// Two summands that fit into bfloat16 make up a number, up to 2^-17 of it: `whole` and this one, of two numbers each.
__device__ unsigned rest_of(float x, float y, unsigned whole) { return pack(x - low_half(whole), y - high_half(whole)); }

// Of every block the sums, [OUT, D] and [D, H], of grad_own [OUT], of grad_moved [D], and in parts [128 / D, D] the states
// times the gradients of their logits; the gradients of queries, [C, B, D] from rows b * C + c.
extern "C" __global__ void __launch_bounds__(32 * SUM_WARPS, 1) weight_sums(
    const unsigned short* sent, const unsigned short* grad_moved, const unsigned short* gate, const unsigned short* states,
    const unsigned short* query, const float* grad_logits, const SumWeights* weights, unsigned short* grad_query, float* sums,
    int rows, int C, int steps
) {
    constexpr int COLUMNS = D / 16;
    Stage* stages = reinterpret_cast<Stage*>(shared_memory());
    Made* makes = reinterpret_cast<Made*>(stages + STAGES);
    const int warp = thread() / 32, lane = thread() % 32, g = lane / 4, t = lane % 4;
    const bool own = warp < OWN_WARPS;
    const int begin = (own ? warp : warp - OWN_WARPS) * PARTS_OF_WARP, end = own ? PARTS_OF_OWN : PARTS_OF_MOVED;
    Columns first[PARTS_OF_WARP];
    #pragma unroll
    for (int i = 0; i < PARTS_OF_WARP; i++) first[i] = columns_of(begin + i < end ? begin + i : end - 1, own);
    const Columns second = own ? Columns::of<D>(SPAN * (P + D), 0, false) : Columns::of<H>(2 * SPAN * H, 0, true);
    // Products of a part with the second matrix, its sums over steps alone (16 columns and 8 rows), and over rows as well.
    float products[PARTS_OF_WARP][WIDEST / 8][4] = {}, over_steps[PARTS_OF_WARP][TILES][2][4] = {};
    float alone[PARTS_OF_WARP][2] = {}, read[2][4] = {};
    const unsigned unit = unit_matrix(lane, ONE);
    const int units = warp % UNITS_APART, columns = warp % COLUMNS;  // 16 of each

    // What a choice sees is its state and its query: the states of all steps are multiplied, then the query by what has been
    // added up over steps. Stage `steps` brings the last states only, the one after it the query.
    auto bring = [&](Stage& to, const Turn& turn) {
        const int left = rows - turn.first, step = turn.step;
        if (left > 0) {
            const long long first = (long long)step * rows + turn.first;
            copy_rows<D>(to.seen, step <= steps ? states + first * D : query + (long long)turn.first * D, left);
            if (step < steps) {
                copy_rows<P>(to.sent, sent + first * P, left);
                copy_rows<D>(to.moved, grad_moved + first * D, left);
                const int row = 16 * (warp / UNITS_APART) + g;
                const unsigned short* from = gate + (first + row) * 2 * H + 32 * units + 8 * t;
                #pragma unroll
                for (int i = 0; i < 2 * TIMES; i++) {
                    const int after = 16 * (i / 2 * ROWS_APART) + 8 * (i % 2);
                    const bool there = (TILES % ROWS_APART == 0 || row + after < SPAN) && row + after < left;
                    copy_later<16>(&to.gate[i / 2][i % 2][thread()], from + after * 2 * H, there);
                }
            }
            if (thread() < SPAN && step && step <= steps)
                copy_later<4>(to.of_logits + thread(), grad_logits + first - rows + thread(), thread() < left);
        }
        end_of_copies();
    };
    auto make = [&](const Stage& s, Made& to) {
        #pragma unroll 1  // there are no registers for more
        for (int i = 0; i < TIMES; i++) {
            const int tile = warp / UNITS_APART + i * ROWS_APART;
            if (tile >= TILES) continue;
            unsigned a[D / 16][4];  // all at once: a load and the product after it would wait for each other
            #pragma unroll
            for (int k = 0; k < D / 16; k++) take<D, false>(a[k], s.moved + 16 * tile * D, 0, 16 * k, lane);
            float back[2][4] = {};
            #pragma unroll
            for (int k = 0; k < D / 16; k++) {
                const uint4 b = weights->state.v[k][units][lane];
                mma(back[0], a[k][0], a[k][1], a[k][2], a[k][3], b.x, b.y);
                mma(back[1], a[k][0], a[k][1], a[k][2], a[k][3], b.z, b.w);
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
    auto add = [&](const Turn& turn, Stage& s, Made& now, Stage& then, Made& next) {
        const int step = turn.step;
        if (step < steps || (step > steps && own)) {
            const unsigned short *of_first[PARTS_OF_WARP], *of_second[WIDEST / 16];  // in the first tile
            #pragma unroll
            for (int i = 0; i < PARTS_OF_WARP; i++)
                of_first[i] = first[i].at(s, now, lane % 8 + lane / 16 * 8, lane / 8 % 2);
            #pragma unroll
            for (int n = 0; n < WIDEST / 16; n++) of_second[n] = second.at(s, now, lane % 16, 2 * n + lane / 16);
            unsigned a[2][PARTS_OF_WARP][4], b[2][WIDEST / 16][4] = {};
            auto load = [&](int k) {
                #pragma unroll
                for (int n = 0; n < WIDEST / 16; n++)
                    if (16 * n < second.width()) load_parts(b[k % 2][n], of_second[n] + 16 * k * second.width(), true);
                #pragma unroll
                for (int i = 0; i < PARTS_OF_WARP; i++)
                    load_parts(a[k % 2][i], of_first[i] + 16 * k * first[i].width(), true);
            };
            load(0);
            #pragma unroll
            for (int k = 0; k < TILES; k++) {
                if (k + 1 < TILES) load(k + 1);  // it arrives during the products of this tile
                #pragma unroll
                for (int i = 0; i < PARTS_OF_WARP; i++) {
                    const unsigned(&x)[4] = a[k % 2][i];
                    #pragma unroll
                    for (int n = 0; n < WIDEST / 8; n++) {
                        const unsigned* y = b[k % 2][n / 2] + n % 2 * 2;
                        mma(products[i][n], x[0], x[1], x[2], x[3], y[0], y[1]);
                    }
                    mma(over_steps[i][k][0], x[0], x[1], x[2], x[3], unit, 0);
                    mma(over_steps[i][k][1], x[0], x[1], x[2], x[3], 0, unit);
                }
            }
        }
        if (step == steps)  // the sums over steps take the place of what comes in no more
            #pragma unroll
            for (int i = 0; i < PARTS_OF_WARP * TILES * 4; i++) {
                const int part = i / 4 / TILES, tile = i / 4 % TILES, n = i / 2 % 2, chunk = i % 2;
                const float low = over_steps[part][tile][n][2 * chunk], high = over_steps[part][tile][n][2 * chunk + 1];
                const unsigned both = pack(low, high);
                #pragma unroll
                for (int j = 0; j < 2; j++)
                    if (own) first[part].at(then, next, 16 * tile + 8 * n + 2 * t + j, chunk)[g] = both >> 16 * j;
                alone[part][chunk] += low + high;
            }
        if (step && step <= steps)  // the readout: the larger halves of the logits' gradients in rows 0 to 7, then the rests
            #pragma unroll 1
            for (int tile = warp / COLUMNS; tile < TILES; tile += SUM_WARPS / COLUMNS) {
                const float* d = s.of_logits + 16 * tile + 2 * t;
                const unsigned low = pack(d[0], d[1]), high = pack(d[8], d[9]);
                const unsigned of_low = rest_of(d[0], d[1], low), of_high = rest_of(d[8], d[9], high);
                unsigned b[4];
                take<D, true>(b, s.seen + 16 * tile * D, 0, 16 * columns, lane);
                mma(read[0], low, of_low, high, of_high, b[0], b[1]);
                mma(read[1], low, of_low, high, of_high, b[2], b[3]);
            }
        if (step > steps) {
            #pragma unroll 1
            for (int tile = warp / COLUMNS; tile < TILES; tile += SUM_WARPS / COLUMNS) {
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
                    const int row = turn.first + 16 * tile + g + 8 * r;
                    const long long to = (long long)(row % C) * (rows / C) + row / C;
                    const unsigned low = pack(asked[0][2 * r], asked[0][2 * r + 1]);
                    const unsigned high = pack(asked[1][2 * r], asked[1][2 * r + 1]);
                    if (row < rows)
                        *reinterpret_cast<uint2*>(grad_query + to * D + column<D>(2 * columns, t, 0)) = make_uint2(low, high);
                }
            }
            #pragma unroll
            for (int i = 0; i < PARTS_OF_WARP * TILES * 8; i++)
                over_steps[i / 8 / TILES][i / 8 % TILES][i / 4 % 2][i % 4] = 0.f;
        }
    };
    Turn now = {block() * SPAN, -1}, then = {block() * SPAN, 0}, ahead = then;
    #pragma unroll 1
    for (int i = 0; i < STAGES - 2; i++) {
        bring(stages[i], ahead);
        ahead.next(steps);
    }
    #pragma unroll 1
    for (unsigned number = 0; now.first < rows; number++) {  // of the stage that comes `then`
        wait_for_copies<STAGES - 3>();
        synchronise();
        bring(stages[(number + STAGES - 2) % STAGES], ahead);
        Stage &before = stages[(number + STAGES - 1) % STAGES], &after = stages[number % STAGES];
        Made &made = makes[number % 2 ^ 1], &next = makes[number % 2];
        // Half of the warps make units first and the other half last, so that not all of them need the same at once.
        const bool more = then.first < rows && then.step < steps, early = warp < SUM_WARPS / 2;
        if (more && early) make(after, next);
        if (now.step >= 0) add(now, before, made, after, next);
        if (more && !early) make(after, next);
        now = then;
        then.next(steps);
        ahead.next(steps);
    }
    float* to = sums + (long long)block() * (OUT * D + D * H + OUT + D + SUM_WARPS / COLUMNS * D);
    float* of_rows = to + OUT * D + D * H;
    #pragma unroll
    for (int i = 0; i < PARTS_OF_WARP; i++) {
        const int before = (own ? 0 : OUT) + 16 * (begin + i);  // rows of both matrices
        float* at = to + (own ? before * D : OUT * D + (before - OUT) * H);
        const int N = own ? D : H;
        #pragma unroll
        for (int r = 0; r < 2; r++) {
            float sum = alone[i][r];
            sum += across(sum, 1);
            sum += across(sum, 2);
            if (begin + i < end && t == 0) of_rows[before + g + 8 * r] = sum;
            #pragma unroll
            for (int n = 0; n < WIDEST / 8; n++)
                #pragma unroll
                for (int j = 0; j < 2; j++)
                    if (begin + i < end && 8 * n < N) at[(g + 8 * r) * N + 8 * n + 2 * t + j] = products[i][n][2 * r + j];
        }
    }
    #pragma unroll
    for (int n = 0; n < 2; n++)
        #pragma unroll
        for (int j = 0; j < 2; j++) {
            const float sum = read[n][j] + read[n][2 + j];
            if (g == 0) of_rows[OUT + D + warp / COLUMNS * D + 16 * columns + 8 * n + 2 * t + j] = sum;
        }
}
