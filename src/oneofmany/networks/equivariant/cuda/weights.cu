// Gradients that are sums over all steps, in one pass over what the backward pass has left: of the choices' weights, biases
// and readout over all rows, and of every row's query.
//
// A block takes SPAN rows through all steps, before it goes on to other rows. Their numbers come to the shared memory a few
// stages ahead. The matrix units multiply the transposed rows: every warp keeps the sums of 32 rows of the weight matrices
// in its registers, in all of the block's work, so that the order of sums is fixed.

constexpr int OUT = P + 2 * H, SPAN = 64, STAGES = 3, SUM_WARPS = 8;
constexpr int WIDEST = D > H ? D : H;
constexpr int PARTS_OF_OWN = OUT / 16, PARTS = (OUT + D) / 16;  // parts of 16 units: of grad_own, then of grad_moved
constexpr int PARTS_OF_WARP = (PARTS + SUM_WARPS - 1) / SUM_WARPS;

// What the rows of a step bring.
struct Stage {
    unsigned short own[SPAN * OUT], moved[SPAN * D], seen[SPAN * D], hidden[SPAN * H];
    float of_logits[SPAN];
};

// Where 8 columns of a row are: neighbouring rows have them in different banks.
template <int W> constexpr int SWAPPED = W % 64 == 0 ? 7 : W % 32 == 0 ? 3 : 1;
template <int W> __device__ int place_in(int row, int chunk) { return row * W + 8 * (chunk ^ (row & SWAPPED<W>)); }


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

// 16 rows and 16 columns, as a first factor of a product or, transposed, as a first or a second one.
enum Factor { AS_IT_IS, FIRST, SECOND };
template <int W, Factor as> __device__ void take(unsigned (&x)[4], const unsigned short* from, int row, int column, int lane) {
    const int low = lane / 8 % 2, high = lane / 16;
    const int at = row + lane % 8 + 8 * (as == FIRST ? high : low), chunk = column / 8 + (as == FIRST ? low : high);
    load_parts(x, from + place_in<W>(at, chunk), as != AS_IT_IS);
}

// The sum of rows of two matrices, [16 columns of the first, N columns of the second] and, last, [16, 1]: of the first alone.
struct Products {
    float v[WIDEST / 8 + 1][4];
    __device__ void zero() {
        #pragma unroll
        for (int n = 0; n <= WIDEST / 8; n++) v[n][0] = v[n][1] = v[n][2] = v[n][3] = 0.f;
    }
    __device__ void add(const unsigned (&a)[4], const unsigned (&b)[WIDEST / 16][4], unsigned one) {
        #pragma unroll
        for (int n = 0; n < WIDEST / 16; n++) {
            mma(v[2 * n], a[0], a[1], a[2], a[3], b[n][0], b[n][1]);
            mma(v[2 * n + 1], a[0], a[1], a[2], a[3], b[n][2], b[n][3]);
        }
        mma(v[WIDEST / 8], a[0], a[1], a[2], a[3], one, one);
    }
    template <int N> __device__ void store(float* to, float* alone, int lane) const {
        const int g = lane / 4, t = lane % 4;
        #pragma unroll
        for (int i = 0; i < 4; i++) {
            #pragma unroll
            for (int n = 0; n < N / 8; n++) to[(g + 8 * (i / 2)) * N + 8 * n + 2 * t + i % 2] = v[n][i];
            if (t == 0 && i % 2 == 0) alone[g + 8 * (i / 2)] = v[WIDEST / 8][i];
        }
    }
};

// Two summands that fit into bfloat16 make up a number, up to 2^-17 of it.
__device__ unsigned in_two(float x, float y, bool rest) {
    const unsigned whole = pack(x, y);
    return rest ? pack(x - low_half(whole), y - high_half(whole)) : whole;
}

// Of every block the sums, [OUT, D] and [D, H], of `own` [OUT], `moved` [D], and in parts
// [128 / D, D] the states times the gradients of their logits; the gradients of queries [rows, D].
extern "C" __global__ void __launch_bounds__(32 * SUM_WARPS, 1) weight_sums(
    const unsigned short* grad_own, const unsigned short* grad_moved, const unsigned short* hidden, const unsigned short* x,
    const unsigned short* query, const float* grad_logits, const Weights<OUT, D>* weights, float* grad_query, float* sums,
    int rows, int steps
) {
    constexpr unsigned ONES = 0x3f803f80;
    constexpr int COLUMNS = D / 16, TILES = SPAN / 16, TILES_OF_WARP = (TILES * COLUMNS + SUM_WARPS - 1) / SUM_WARPS;
    Stage* stages = reinterpret_cast<Stage*>(shared_memory());
    const int warp = thread() / 32, lane = thread() % 32, g = lane / 4, t = lane % 4;
    // A warp makes 16 columns of the queries' gradients; it holds their weights.
    const int columns = warp % COLUMNS;
    uint4 w[OUT / 16];
    #pragma unroll
    for (int k = 0; k < OUT / 16; k++) w[k] = weights->v[k][columns][lane];
    Products products[PARTS_OF_WARP];
    #pragma unroll
    for (int i = 0; i < PARTS_OF_WARP; i++) products[i].zero();
    float asked[TILES_OF_WARP][2][4], read[2][4] = {};
    const unsigned one = g ? 0 : ONES;

    // Stage `steps` brings the last states only, the one after it the query.
    const int spans = (rows + SPAN - 1) / SPAN, mine = (spans - block() + blocks() - 1) / blocks(), all = mine * (steps + 2);
    auto bring = [&](int number) {
        if (number < all) {
            Stage& to = stages[number % STAGES];
            const int step = number % (steps + 2);
            const long long first = (long long)(block() + number / (steps + 2) * blocks()) * SPAN;
            const long long before = (long long)step * rows;
            copy_rows<D>(to.seen, step <= steps ? x + before * D : query, first, rows);
            if (step < steps) {
                copy_rows<OUT>(to.own, grad_own + before * OUT, first, rows);
                copy_rows<D>(to.moved, grad_moved + before * D, first, rows);
                copy_rows<H>(to.hidden, hidden + before * H, first, rows);
            }
            if (thread() < SPAN) {
                const bool there = first + thread() < rows;
                const float* from = grad_logits + (there ? first + thread() : 0);
                if (step <= steps)
                    copy_later<4>(to.of_logits + thread(), step ? from + before - rows : from, there && step);
                else {  // states are what is seen less the query
                    float sum = 0.f;
                    for (int s = 0; s < steps; s++) sum -= from[(long long)s * rows];
                    to.of_logits[thread()] = there ? sum : 0.f;
                }
            }
        }
        end_of_copies();
    };
    #pragma unroll 1
    for (int i = 0; i < STAGES - 1; i++) bring(i);
    for (int number = 0; number < all; number++) {
        wait_for_copies<STAGES - 2>();
        synchronise();
        bring(number + STAGES - 1);
        const Stage& s = stages[number % STAGES];
        const int step = number % (steps + 2);
        if (step == 0)
            #pragma unroll
            for (int i = 0; i < TILES_OF_WARP * 8; i++) asked[i / 8][i / 4 % 2][i % 4] = 0.f;
        if (step < steps)
            #pragma unroll 1
            for (int k = 0; k < SPAN; k += 16) {
                unsigned a[4], b[WIDEST / 16][4];
                #pragma unroll
                for (int i = 0; i < PARTS_OF_WARP; i++) {
                    const int part = warp * PARTS_OF_WARP + i;
                    if (part >= PARTS) continue;
                    const bool own = part < PARTS_OF_OWN;
                    if (i == 0 || part == PARTS_OF_OWN)
                        #pragma unroll
                        for (int n = 0; n < WIDEST / 16; n++)
                            if (own && n < D / 16) take<D, SECOND>(b[n], s.seen, k, 16 * n, lane);
                            else if (D == H || (!own && n < H / 16)) take<H, SECOND>(b[n], s.hidden, k, 16 * n, lane);
                            else b[n][0] = b[n][1] = b[n][2] = b[n][3] = 0;
                    if (own) take<OUT, FIRST>(a, s.own, k, 16 * part, lane);
                    else take<D, FIRST>(a, s.moved, k, 16 * (part - PARTS_OF_OWN), lane);
                    products[i].add(a, b, one);
                }
            }
        #pragma unroll
        for (int i = 0; i < TILES_OF_WARP; i++) {
            const int tile = warp / COLUMNS + i * (SUM_WARPS / COLUMNS);
            if (tile >= TILES) continue;
            if (step) {  // the readout: the larger halves of the logits' gradients in row 0, the rests in row 1
                const float* d = s.of_logits + 16 * tile + 2 * t;
                const unsigned low = g < 2 ? in_two(d[0], d[1], g) : 0, high = g < 2 ? in_two(d[8], d[9], g) : 0;
                unsigned b[4];
                take<D, SECOND>(b, s.seen, 16 * tile, 16 * columns, lane);
                mma(read[0], low, 0, high, 0, b[0], b[1]);
                mma(read[1], low, 0, high, 0, b[2], b[3]);
            }
            if (step < steps)
                #pragma unroll
                for (int k = 0; k < OUT / 16; k++) {
                    unsigned a[4];
                    take<OUT, AS_IT_IS>(a, s.own, 16 * tile, 16 * k, lane);
                    mma(asked[i][0], a[0], a[1], a[2], a[3], w[k].x, w[k].y);
                    mma(asked[i][1], a[0], a[1], a[2], a[3], w[k].z, w[k].w);
                }
            if (step == steps)
                #pragma unroll
                for (int r = 0; r < 2; r++) {
                    const long long row = (long long)(block() + number / (steps + 2) * blocks()) * SPAN + 16 * tile + g + 8 * r;
                    if (row < rows)
                        *reinterpret_cast<float4*>(grad_query + row * D + column<D>(2 * columns, t, 0)) = make_float4(
                            asked[i][0][2 * r], asked[i][0][2 * r + 1], asked[i][1][2 * r], asked[i][1][2 * r + 1]
                        );
                }
        }
    }
    float* to = sums + (long long)block() * (OUT * D + D * H + OUT + D + SUM_WARPS / COLUMNS * D);
    float* alone = to + OUT * D + D * H;
    #pragma unroll
    for (int i = 0; i < PARTS_OF_WARP; i++) {
        const int part = warp * PARTS_OF_WARP + i;
        if (part >= PARTS) continue;
        if (part < PARTS_OF_OWN) products[i].store<D>(to + part * 16 * D, alone + 16 * part, lane);
        else products[i].store<H>(to + OUT * D + (part - PARTS_OF_OWN) * 16 * H, alone + 16 * part, lane);
    }
    #pragma unroll
    for (int n = 0; n < 2; n++)
        #pragma unroll
        for (int j = 0; j < 2; j++) {
            const float sum = read[n][j] + across(read[n][j], 4);
            if (g == 0) alone[OUT + D + warp / COLUMNS * D + 16 * columns + 8 * n + 2 * t + j] = sum;
        }
}
