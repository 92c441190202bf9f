// The steps of the equivariant network in bfloat16: one warp handles 16 queries of one choice or rule, all in registers.
//
// A tile [16, W] lies in a warp as the matrix units hold it: lane 4 * g + t has rows g and g + 8. Which column a register
// holds is free, if products and weights agree; `column` makes those of a lane contiguous in memory. D, P and H, and the
// warps of a block with whole queries, are defined by the compiler's options.


#ifndef EMULATED  // the tests run all of this on a CPU

// ---- the device -----------------------------------------------------------------------------------------------------

extern __shared__ uint4 memory_of_block[];
__device__ __forceinline__ void* shared_memory() { return memory_of_block; }
__device__ __forceinline__ int thread() { return threadIdx.x; }
__device__ __forceinline__ int threads() { return blockDim.x; }
__device__ __forceinline__ int block() { return blockIdx.x; }
__device__ __forceinline__ int blocks() { return gridDim.x; }
__device__ __forceinline__ void synchronise() { __syncthreads(); }
__device__ __forceinline__ float low_half(unsigned x) { return __uint_as_float(x << 16); }
__device__ __forceinline__ float high_half(unsigned x) { return __uint_as_float(x & 0xffff0000u); }
__device__ __forceinline__ unsigned pack(float low, float high) {
    unsigned x;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
    return x;
}
template <typename T> __device__ __forceinline__ T from_lane(T x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
__device__ __forceinline__ float across(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
__device__ __forceinline__ float sigmoid(float x) {
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(-1.442695041f * x));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(1.f + x));
    return x;
}
__device__ __forceinline__ float inverse_root(float x) { return rsqrtf(x); }
__device__ __forceinline__ void mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// The same with half of the columns of the first factor: rows of a0, then those of a1.
__device__ __forceinline__ void mma_half(float (&c)[4], unsigned a0, unsigned a1, unsigned b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(b));
}
// The matrix units' layout of four parts of 8 x 8 numbers, each of them transposed: a lane says where 16 bytes of one row are.
__device__ __forceinline__ void load_parts(unsigned (&x)[4], const void* row, bool transposed) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if (transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
// Copies to the shared memory that go on while the block computes, 4 or 16 bytes each; zeros instead if not `there`.
template <int BYTES> __device__ __forceinline__ void copy_later(void* to, const void* from, bool there) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(there ? 16 : 0) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(at), "l"(from), "r"(there ? 4 : 0) : "memory");
}
__device__ __forceinline__ void end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Wait until all but the last `left` groups of copies have come.
template <int left> __device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_group %0;" :: "n"(left) : "memory"); }
// Ask for 32 bytes to come into the L2 cache.
__device__ __forceinline__ void ask_for(const void* at) { asm volatile("prefetch.global.L2 [%0];" :: "l"(at)); }
// What other steps read again should stay in the L2 cache, what goes from one pass to the next should not.
template <typename T> __device__ __forceinline__ T load_again(const T* from) { return __ldcg(from); }
template <typename T> __device__ __forceinline__ T load_once(const T* from) { return __ldcs(from); }
template <typename T> __device__ __forceinline__ void store_again(T* to, T x) { __stcg(to, x); }
template <typename T> __device__ __forceinline__ void store_once(T* to, T x) { __stcs(to, x); }
// All ones or zeros by the highest bits of bytes `at` and `at` + 1, each twice.
__device__ __forceinline__ unsigned masks(unsigned x, int at) {
    unsigned y;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(y) : "r"(x), "r"(at ? 0xbbaa : 0x9988));
    return y;
}
// Of two packed numbers each; `above` gives all ones or zeros.
__device__ __forceinline__ unsigned larger(unsigned a, unsigned b) {
    unsigned x;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(x) : "r"(a), "r"(b));
    return x;
}
__device__ __forceinline__ unsigned smaller(unsigned a, unsigned b) {
    unsigned x;
    asm("min.bf16x2 %0, %1, %2;" : "=r"(x) : "r"(a), "r"(b));
    return x;
}
__device__ __forceinline__ unsigned above(unsigned a, unsigned b) {
#if __CUDA_ARCH__ >= 900
    unsigned x;
    asm("set.gt.u32.bf16x2 %0, %1, %2;" : "=r"(x) : "r"(a), "r"(b));
    return x;
#else
    return (low_half(a) > low_half(b) ? 0xffffu : 0) | (high_half(a) > high_half(b) ? 0xffff0000u : 0);
#endif
}
__device__ __forceinline__ unsigned pick(unsigned mask, unsigned a, unsigned b) { return (mask & a) | (~mask & b); }
// The highest byte four times.
__device__ __forceinline__ unsigned highest_byte(unsigned x) { return __byte_perm(x, 0, 0x3333); }
// The lowest bytes of the halves of x, and then of those of y.
__device__ __forceinline__ unsigned low_bytes(unsigned x, unsigned y) { return __byte_perm(x, y, 0x6420); }

#endif

constexpr unsigned LOWEST = 0xff80, NO_SLOT = 127;  // minus infinity as bfloat16; of no choice

// ---- tiles ----------------------------------------------------------------------------------------------------------

// Contiguous columns of a lane.
template <int W> constexpr int OWN = W / 4 < 8 ? W / 4 : 8;

// The column of register pair `n`, element `j`, of the lanes with t.
template <int W> __device__ int column(int n, int t, int j) {
    constexpr int pairs = OWN<W> / 2;
    return n / pairs * 4 * OWN<W> + t * OWN<W> + n % pairs * 2 + j;
}

// A lane's two rows of a tile: 16 queries of one item (a choice or a rule); of fewer queries, those of several items.
struct Place {
    int lane, t, item[2], query[2];
    long long row[2];  // item * B + query
    bool inside[2];
};

__device__ int tiles_of(int items, int B) { return B < 16 ? (items * B + 15) / 16 : items * ((B + 15) / 16); }

__device__ Place place_of(int tile, int first, int items, int B) {
    Place p;
    p.lane = thread() % 32;
    p.t = p.lane % 4;
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = p.lane / 4 + 8 * r, row = 16 * tile + i;
        const int item = B == 1 ? row : B < 16 ? row / B : tile % items;  // division is slow
        const int query = B == 1 ? 0 : B < 16 ? row % B : 16 * (tile / items) + i;
        p.inside[r] = item < items && query < B;
        p.item[r] = first + (item < items ? item : items - 1);
        p.query[r] = query < B ? query : B - 1;
        p.row[r] = (long long)p.item[r] * B + p.query[r];
    }
    return p;
}

// Two rows of 16-bit numbers, packed in pairs: from [row * stride + offset].
enum Read { READ, READ_AGAIN, READ_ONCE };
template <typename T, Read how> __device__ T load_as(const T* from) {
    return how == READ_AGAIN ? load_again(from) : how == READ_ONCE ? load_once(from) : *from;
}

template <int W> struct Packed {
    unsigned v[W / 8][2];
    template <Read how = READ> __device__ void load(const unsigned short* from, const long long row[2], int stride, int t) {
        constexpr int pairs = OWN<W> / 2;
        #pragma unroll
        for (int r = 0; r < 2; r++)
            #pragma unroll
            for (int q = 0; q < W / 8 / pairs; q++) {
                const unsigned short* at = from + row[r] * stride + column<W>(q * pairs, t, 0);
                if (pairs == 4) {
                    const uint4 x = load_as<uint4, how>(reinterpret_cast<const uint4*>(at));
                    v[q * pairs][r] = x.x; v[q * pairs + 1][r] = x.y; v[q * pairs + 2][r] = x.z; v[q * pairs + 3][r] = x.w;
                } else {
                    const uint2 x = load_as<uint2, how>(reinterpret_cast<const uint2*>(at));
                    v[q * pairs][r] = x.x; v[q * pairs + 1][r] = x.y;
                }
            }
    }
    // Registers that are stored together are no neighbours in products. With a 0 that the compiler does not know, they change
    // places here, and not in every product.
    __device__ void rearrange(unsigned nothing) {
        #pragma unroll
        for (int n = 0; n < W / 8; n++) v[n][0] ^= nothing, v[n][1] ^= nothing;
    }
    template <bool once = false> __device__ void store(unsigned short* to, const Place& p, int stride) const {
        constexpr int pairs = OWN<W> / 2;
        #pragma unroll
        for (int r = 0; r < 2; r++)
            if (p.inside[r])
                #pragma unroll
                for (int q = 0; q < W / 8 / pairs; q++) {
                    unsigned short* at = to + p.row[r] * stride + column<W>(q * pairs, p.t, 0);
                    if (pairs == 4) {
                        const uint4 x = make_uint4(v[q * pairs][r], v[q * pairs + 1][r], v[q * pairs + 2][r], v[q * pairs + 3][r]);
                        if (once) store_once(reinterpret_cast<uint4*>(at), x);
                        else *reinterpret_cast<uint4*>(at) = x;
                    } else {
                        const uint2 x = make_uint2(v[q * pairs][r], v[q * pairs + 1][r]);
                        if (once) store_once(reinterpret_cast<uint2*>(at), x);
                        else *reinterpret_cast<uint2*>(at) = x;
                    }
                }
    }
};

template <int W> struct Tile {
    float v[W / 8][4];  // row g: 0 and 1, row g + 8: 2 and 3
    __device__ void fill(const float* bias, int t) {
        #pragma unroll
        for (int n = 0; n < W / 8; n++)
            #pragma unroll
            for (int j = 0; j < 2; j++) v[n][j] = v[n][2 + j] = bias[column<W>(n, t, j)];
    }
    __device__ void zero() {
        #pragma unroll
        for (int n = 0; n < W / 8; n++) v[n][0] = v[n][1] = v[n][2] = v[n][3] = 0.f;
    }
    __device__ void add(const float* from, const Place& p) {
        #pragma unroll
        for (int r = 0; r < 2; r++)
            #pragma unroll
            for (int n = 0; n < W / 8; n += 2) {
                float4 x = *reinterpret_cast<const float4*>(from + p.row[r] * W + column<W>(n, p.t, 0));
                v[n][2 * r] += x.x; v[n][2 * r + 1] += x.y; v[n + 1][2 * r] += x.z; v[n + 1][2 * r + 1] += x.w;
            }
    }
    __device__ void add(const Packed<W>& x, float first, float second) {
        #pragma unroll
        for (int n = 0; n < W / 8; n++)
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                v[n][2 * r] += (r ? second : first) * low_half(x.v[n][r]);
                v[n][2 * r + 1] += (r ? second : first) * high_half(x.v[n][r]);
            }
    }
    __device__ void store(float* to, const Place& p) const {
        #pragma unroll
        for (int r = 0; r < 2; r++)
            if (p.inside[r])
                #pragma unroll
                for (int n = 0; n < W / 8; n += 2)
                    *reinterpret_cast<float4*>(to + p.row[r] * W + column<W>(n, p.t, 0)) =
                        make_float4(v[n][2 * r], v[n][2 * r + 1], v[n + 1][2 * r], v[n + 1][2 * r + 1]);
    }
    __device__ Packed<W> packed() const {
        Packed<W> x;
        #pragma unroll
        for (int n = 0; n < W / 8; n++)
            #pragma unroll
            for (int r = 0; r < 2; r++) x.v[n][r] = pack(v[n][2 * r], v[n][2 * r + 1]);
        return x;
    }
};

// Gates and values of hidden units. In memory, four gates stand before the four values of the same units.
struct Own {
    Packed<H> gates, values;
    __device__ void load(const unsigned short* from, const Place& p) {
        #pragma unroll
        for (int r = 0; r < 2; r++)
            #pragma unroll
            for (int c = 0; c < H / 16; c++) {
                const uint4 x = *reinterpret_cast<const uint4*>(from + p.row[r] * 2 * H + 2 * column<H>(2 * c, p.t, 0));
                gates.v[2 * c][r] = x.x; gates.v[2 * c + 1][r] = x.y; values.v[2 * c][r] = x.z; values.v[2 * c + 1][r] = x.w;
            }
    }
};

__device__ void store_own(unsigned short* to, const Place& p, const Tile<H>& gates, const Tile<H>& values) {
    #pragma unroll
    for (int r = 0; r < 2; r++)
        if (p.inside[r])
            #pragma unroll
            for (int c = 0; c < H / 8; c += 2)
                *reinterpret_cast<uint4*>(to + p.row[r] * 2 * H + 2 * column<H>(c, p.t, 0)) = make_uint4(
                    pack(gates.v[c][2 * r], gates.v[c][2 * r + 1]), pack(gates.v[c + 1][2 * r], gates.v[c + 1][2 * r + 1]),
                    pack(values.v[c][2 * r], values.v[c][2 * r + 1]), pack(values.v[c + 1][2 * r], values.v[c + 1][2 * r + 1])
                );
}

// Back through the gated layer: from the gradients `d` of two hidden units, and these themselves.
struct Gated {
    unsigned gates, values, hidden;
};
__device__ Gated back_to_gates(unsigned gates, unsigned values, float d0, float d1) {
    float h[2], dg[2], dv[2];
    #pragma unroll
    for (int j = 0; j < 2; j++) {
        const float g = j ? high_half(gates) : low_half(gates), v = j ? high_half(values) : low_half(values);
        const float opened = sigmoid(g), swish = g * opened, d = j ? d1 : d0;
        h[j] = swish * v;
        dg[j] = d * v * (opened + swish - swish * opened);
        dv[j] = d * swish;
    }
    return {pack(dg[0], dg[1]), pack(dv[0], dv[1]), pack(h[0], h[1])};
}

// ---- products -------------------------------------------------------------------------------------------------------

// Weights as the matrix units read them: two fragments of 16 x 8, 32 lanes each (``tables.fragments``).
template <int K, int N> struct Weights {
    uint4 v[K / 16][N / 16][32];
};

// Copy to the shared memory; all threads of the block share the work.
template <typename T> __device__ void fetch(T& to, const void* from) {
    const uint4* source = reinterpret_cast<const uint4*>(from);
    uint4* target = reinterpret_cast<uint4*>(&to);
    for (int i = thread(); i < sizeof(T) / sizeof(uint4); i += threads()) target[i] = source[i];
}

template <int K, int N> __device__ void multiply(Tile<N>& sum, const Packed<K>& x, const Weights<K, N>& w, int lane) {
    #pragma unroll
    for (int k = 0; k < K / 16; k++)
        #pragma unroll
        for (int n = 0; n < N / 16; n++) {
            const uint4 b = w.v[k][n][lane];
            mma(sum.v[2 * n], x.v[2 * k][0], x.v[2 * k][1], x.v[2 * k + 1][0], x.v[2 * k + 1][1], b.x, b.y);
            mma(sum.v[2 * n + 1], x.v[2 * k][0], x.v[2 * k][1], x.v[2 * k + 1][0], x.v[2 * k + 1][1], b.z, b.w);
        }
}

// ---- rows -----------------------------------------------------------------------------------------------------------

// The sums over the columns of both rows, in all lanes of the rows.
template <int W, typename F> __device__ void row_sums(float sums[2], F of) {
    sums[0] = sums[1] = 0.f;
    #pragma unroll
    for (int n = 0; n < W / 8; n++)
        #pragma unroll
        for (int i = 0; i < 4; i++) sums[i / 2] += of(n, i);
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        sums[r] += across(sums[r], 1);
        sums[r] += across(sums[r], 2);
    }
}

// Add a bias, and normalise both rows; `inverse` is what they are multiplied by.
template <int W> __device__ void normalise(Tile<W>& x, const float* bias, float inverse[2], int t) {
    float sums[2];
    #pragma unroll
    for (int n = 0; n < W / 8; n++)
        #pragma unroll
        for (int i = 0; i < 4; i++) x.v[n][i] += bias[column<W>(n, t, i % 2)];
    row_sums<W>(sums, [&](int n, int i) { return x.v[n][i]; });
    const float mean[2] = {sums[0] / W, sums[1] / W};
    #pragma unroll
    for (int n = 0; n < W / 8; n++)
        #pragma unroll
        for (int i = 0; i < 4; i++) x.v[n][i] -= mean[i / 2];
    row_sums<W>(sums, [&](int n, int i) { return x.v[n][i] * x.v[n][i]; });
    #pragma unroll
    for (int r = 0; r < 2; r++) inverse[r] = inverse_root(sums[r] / W + 1e-5f);
    #pragma unroll
    for (int n = 0; n < W / 8; n++)
        #pragma unroll
        for (int i = 0; i < 4; i++) x.v[n][i] *= inverse[i / 2];
}

// ---- one step -------------------------------------------------------------------------------------------------------

struct Forward {
    Weights<D, H> gate, value;
    Weights<H, D> state;
    Weights<D, P> spoken;
};

struct Numbers {
    float spoken_bias[P], gate_bias[H], value_bias[H], state_bias[D], readout[D];
};

struct ForwardMemory {
    Forward weights;
    Numbers numbers;
};

extern "C" __global__ void __launch_bounds__(256, 2) choices_forward(
    float* state, const unsigned short* query, const unsigned short* answers, const int* rules, const float* spread,
    int degree, const unsigned short* relayed, const int* of_variable, const int* most, int ends, int V,
    const Forward* weights, const Numbers* numbers, unsigned short* states, unsigned short* spoken, unsigned short* gate,
    float* scale, float* logits, int B, int C, int keep, int last
) {
    ForwardMemory& memory = *reinterpret_cast<ForwardMemory*>(shared_memory());
    fetch(memory.weights, weights);
    fetch(memory.numbers, numbers);
    synchronise();
    const Forward& w = memory.weights;
    const Numbers& of = memory.numbers;
    const int at_most = ends ? *most : 0;  // ends at a variable
    const int tiles = tiles_of(C, B), warps = threads() / 32;
    for (int tile = block() * warps + thread() / 32; tile < tiles; tile += blocks() * warps) {
        const Place p = place_of(tile, 0, C, B);
        Packed<D> seen, asked;
        {
            Tile<D> before;
            before.zero();
            before.add(state, p);
            asked.load(query, p.row, D, p.t);
            before.add(asked, 1.f, 1.f);
            seen = before.packed();
        }
        Packed<H> hidden;
        {
            Tile<H> gates, values;
            gates.fill(of.gate_bias, p.t);
            values.fill(of.value_bias, p.t);
            for (int j = 0; j < degree; j++) {
                const float shares[2] = {spread[p.item[0] * degree + j], spread[p.item[1] * degree + j]};
                if (shares[0] == 0.f && shares[1] == 0.f) continue;
                long long row[2];
                #pragma unroll
                for (int r = 0; r < 2; r++) row[r] = (long long)rules[p.item[r] * degree + j] * B + p.query[r];
                Packed<H> told, also;
                told.load(answers, row, 2 * H, p.t);
                also.load(answers + H, row, 2 * H, p.t);
                gates.add(told, shares[0], shares[1]);
                values.add(also, shares[0], shares[1]);
            }
            for (int e = 0; e < at_most; e++)
                #pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int end = of_variable[(long long)(p.item[r] / V * ends + e) * B + p.query[r]];
                    if (end < 0) continue;
                    const long long relay = ((long long)p.query[r] * ends + end) * V + p.item[r] % V;
                    const long long row[2] = {relay, relay};
                    Packed<H> told, also;
                    told.load(relayed, row, 2 * H, p.t);
                    also.load(relayed + H, row, 2 * H, p.t);
                    #pragma unroll
                    for (int n = 0; n < H / 8; n++) {
                        gates.v[n][2 * r] += low_half(told.v[n][r]);
                        gates.v[n][2 * r + 1] += high_half(told.v[n][r]);
                        values.v[n][2 * r] += low_half(also.v[n][r]);
                        values.v[n][2 * r + 1] += high_half(also.v[n][r]);
                    }
                }
            multiply(gates, seen, w.gate, p.lane);
            multiply(values, seen, w.value, p.lane);
            if (keep) store_own(gate, p, gates, values);
            #pragma unroll
            for (int n = 0; n < H / 8; n++)
                #pragma unroll
                for (int i = 0; i < 4; i++) gates.v[n][i] *= sigmoid(gates.v[n][i]) * values.v[n][i];
            hidden = gates.packed();
        }
        Tile<D> moved;
        moved.zero();
        moved.add(state, p);
        multiply(moved, hidden, w.state, p.lane);
        float inverse[2], sums[2];
        normalise(moved, of.state_bias, inverse, p.t);
        moved.store(state, p);
        row_sums<D>(sums, [&](int n, int i) { return moved.v[n][i] * of.readout[column<D>(n, p.t, i % 2)]; });
        #pragma unroll
        for (int r = 0; r < 2; r++)
            if (p.t == 0 && p.inside[r]) {
                logits[p.row[r]] = sums[r];
                if (keep) scale[p.row[r]] = inverse[r];
            }
        if (keep) moved.packed().store(states, p, D);
        if (last) continue;
        asked.load(query, p.row, D, p.t);
        moved.add(asked, 1.f, 1.f);
        Tile<P> says;
        says.fill(of.spoken_bias, p.t);
        multiply(says, moved.packed(), w.spoken, p.lane);
        says.packed().store(spoken, p, P);
    }
}

struct Backward {
    Weights<P, D> spoken;
    Weights<H, D> gate, value;
    Weights<D, H> state;
};

struct BackwardMemory {
    Backward weights;
    Numbers numbers;
};

extern "C" __global__ void __launch_bounds__(128, 3) choices_backward(
    float* grad_state, const float* grad_logits, const float* scale, const unsigned short* states, const unsigned short* gate,
    const unsigned short* winners, const unsigned short* grad_pooled, const int* rules,
    const int* slot, int degree, const unsigned short* grad_relayed, const int* of_variable, const int* most, int ends, int V,
    const Backward* weights, const Numbers* numbers, unsigned short* grad_sent, unsigned short* grad_moved,
    unsigned short* grad_units, int B, int C, int last, int first
) {
    BackwardMemory& memory = *reinterpret_cast<BackwardMemory*>(shared_memory());
    fetch(memory.weights, weights);
    fetch(memory.numbers, numbers);
    synchronise();
    const Backward& w = memory.weights;
    const Numbers& of = memory.numbers;
    const int at_most = ends ? *most : 0;  // ends at a variable
    const int tiles = tiles_of(C, B), warps = threads() / 32;
    for (int tile = block() * warps + thread() / 32; tile < tiles; tile += blocks() * warps) {
        const Place p = place_of(tile, 0, C, B);
        Tile<D> grad;
        grad.zero();
        grad.add(grad_state, p);
        if (!last) {
            Tile<P> said;
            said.zero();
            for (int j = 0; j < degree; j++) {
                const int slots[2] = {slot[p.item[0] * degree + j], slot[p.item[1] * degree + j]};
                if (slots[0] < 0 && slots[1] < 0) continue;
                long long row[2];
                #pragma unroll
                for (int r = 0; r < 2; r++) row[r] = (long long)rules[p.item[r] * degree + j] * B + p.query[r];
                Packed<P> both, best, second;
                both.load(winners, row, P, p.t);
                best.load(grad_pooled, row, 2 * P, p.t);
                second.load(grad_pooled + P, row, 2 * P, p.t);
                #pragma unroll
                for (int n = 0; n < P / 8; n++)
                    #pragma unroll
                    for (int r = 0; r < 2; r++) {  // a pair of slots is a 16-bit number: the winner's in the lower byte
                        const unsigned pair = both.v[n][r], own = slots[r];
                        said.v[n][2 * r] += (pair & 255) == own ? low_half(best.v[n][r]) : 0.f;
                        said.v[n][2 * r] += (pair >> 8 & 255) == own ? low_half(second.v[n][r]) : 0.f;
                        said.v[n][2 * r + 1] += (pair >> 16 & 255) == own ? high_half(best.v[n][r]) : 0.f;
                        said.v[n][2 * r + 1] += (pair >> 24) == own ? high_half(second.v[n][r]) : 0.f;
                    }
            }
            for (int e = 0; e < at_most; e++)
                #pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int end = of_variable[(long long)(p.item[r] / V * ends + e) * B + p.query[r]];
                    if (end < 0) continue;
                    const long long relay = ((long long)p.query[r] * ends + end) * V + p.item[r] % V;
                    const long long row[2] = {relay, relay};
                    Packed<P> told;
                    told.load(grad_relayed, row, P, p.t);
                    #pragma unroll
                    for (int n = 0; n < P / 8; n++) {
                        said.v[n][2 * r] += low_half(told.v[n][r]);
                        said.v[n][2 * r + 1] += high_half(told.v[n][r]);
                    }
                }
            const Packed<P> sent = said.packed();
            sent.store(grad_sent, p, P);
            multiply(grad, sent, w.spoken, p.lane);
        }
        if (!first) {
            float of_logits[2], of_scale[2], sums[2], products[2];
            #pragma unroll
            for (int r = 0; r < 2; r++) of_logits[r] = grad_logits[p.row[r]], of_scale[r] = scale[p.row[r]];
            {
                Tile<D> made;
                Packed<D> part;
                made.zero();
                part.load(states, p.row, D, p.t);
                made.add(part, 1.f, 1.f);
                #pragma unroll
                for (int n = 0; n < D / 8; n++)
                    #pragma unroll
                    for (int i = 0; i < 4; i++) grad.v[n][i] += of_logits[i / 2] * of.readout[column<D>(n, p.t, i % 2)];
                row_sums<D>(sums, [&](int n, int i) { return grad.v[n][i]; });
                row_sums<D>(products, [&](int n, int i) { return grad.v[n][i] * made.v[n][i]; });
                #pragma unroll
                for (int n = 0; n < D / 8; n++)
                    #pragma unroll
                    for (int i = 0; i < 4; i++)
                        grad.v[n][i] = (grad.v[n][i] - sums[i / 2] / D - made.v[n][i] * (products[i / 2] / D)) * of_scale[i / 2];
            }
            Tile<H> back;
            back.zero();
            {
                const Packed<D> moved = grad.packed();
                moved.store(grad_moved, p, D);
                multiply(back, moved, w.state, p.lane);
            }
            Own own;
            own.load(gate, p);
            Packed<H>&gates = own.gates, &values = own.values;
            #pragma unroll
            for (int n = 0; n < H / 8; n++)
                #pragma unroll
                for (int r = 0; r < 2; r++) {
                    const Gated made = back_to_gates(gates.v[n][r], values.v[n][r], back.v[n][2 * r], back.v[n][2 * r + 1]);
                    gates.v[n][r] = made.gates;
                    values.v[n][r] = made.values;
                }
            gates.store(grad_units, p, 2 * H);
            values.store(grad_units + H, p, 2 * H);
            multiply(grad, gates, w.gate, p.lane);
            multiply(grad, values, w.value, p.lane);
        }
        grad.store(grad_state, p);
    }
}

// ---- rules ----------------------------------------------------------------------------------------------------------

// Which rules a block handles: all of one kind.
struct Part {
    int first, rules, kind, index, blocks;
};

// What is kept of the rules is sorted by kinds, [kind][steps, rules of the kind, B]: how far a row is from item * B + query.
__device__ long long kept_by_kinds(const Part& part, int step, int steps, int B) {
    return ((long long)(steps - 1) * part.first + (long long)step * part.rules) * B;
}

// Take another pair of numbers into the two largest and, if these are kept, their slots. Of equal ones the first wins.
__device__ void rank(unsigned& best, unsigned& next, unsigned& slot, unsigned& other, unsigned x, unsigned s, bool keep) {
    if (keep) {
        const unsigned wins = above(x, best), beats = above(x, next);
        other = pick(wins, slot, pick(beats, s | s << 16, other));
        slot = pick(wins, s | s << 16, slot);
    }
    next = larger(next, smaller(best, x));
    best = larger(best, x);
}

// The second of a single choice is 0.
__device__ unsigned or_zero(unsigned x) {
    return x & above(x, LOWEST | LOWEST << 16);
}

// The two largest of a rule's choices, and in which slots they are.
struct Pool {
    Packed<P> best, next, slots, others;
    __device__ void clear() {
        #pragma unroll
        for (int n = 0; n < P / 8; n++)
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                best.v[n][r] = next.v[n][r] = LOWEST | LOWEST << 16;
                slots.v[n][r] = others.v[n][r] = NO_SLOT | NO_SLOT << 16;
            }
    }
    __device__ void take(const Packed<P>& said, unsigned slot, bool first, bool second, bool keep) {
        #pragma unroll
        for (int n = 0; n < P / 8; n++)
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                const unsigned x = (r ? second : first) ? said.v[n][r] : LOWEST | LOWEST << 16;
                rank(best.v[n][r], next.v[n][r], slots.v[n][r], others.v[n][r], x, slot, keep);
            }
    }
    // Both slots become one number.
    __device__ void end() {
        #pragma unroll
        for (int n = 0; n < P / 8; n++)
            #pragma unroll
            for (int r = 0; r < 2; r++) {
                next.v[n][r] = or_zero(next.v[n][r]);
                slots.v[n][r] |= others.v[n][r] << 8;
            }
    }
    __device__ void store(unsigned short* pooled, unsigned short* winners, const Place& p) const {
        best.store(pooled, p, 2 * P);
        next.store(pooled + P, p, 2 * P);
        slots.store(winners, p, P);
    }
};

struct Answering {
    Weights<P, 2 * H> largest, second;
};

extern "C" __global__ void __launch_bounds__(256, 2) rules_forward(
    const unsigned short* spoken, const Answering* weights, const int* members, const int* real, int width,
    const Part* parts, unsigned short* pooled, unsigned short* winners, unsigned short* answers, int B, int step, int steps,
    int keep
) {
    const Part part = parts[block()];
    pooled += kept_by_kinds(part, step, steps, B) * 2 * P;
    Answering& w = *reinterpret_cast<Answering*>(shared_memory());
    fetch(w, weights + part.kind);
    synchronise();
    const int tiles = tiles_of(part.rules, B), warps = threads() / 32;
    for (int tile = part.index * warps + thread() / 32; tile < tiles; tile += part.blocks * warps) {
        const Place p = place_of(tile, part.first, part.rules, B);
        Pool pool;
        pool.clear();
        for (int s = 0; s < width; s++) {
            const int there[2] = {real[p.item[0] * width + s], real[p.item[1] * width + s]};
            if (!there[0] && !there[1]) continue;
            long long row[2];
            #pragma unroll
            for (int r = 0; r < 2; r++) row[r] = (long long)members[p.item[r] * width + s] * B + p.query[r];
            Packed<P> said;
            said.load(spoken, row, P, p.t);
            pool.take(said, s, there[0], there[1], keep);
        }
        pool.end();
        if (keep) pool.store(pooled, winners, p);
        Tile<2 * H> answer;
        answer.zero();
        multiply(answer, pool.best, w.largest, p.lane);
        multiply(answer, pool.next, w.second, p.lane);
        answer.packed().store(answers, p, 2 * H);
    }
}

struct Returning {
    Weights<2 * H, P> largest, second;
};

extern "C" __global__ void __launch_bounds__(256, 2) rules_backward(
    const unsigned short* grad_units, const Returning* weights, const int* members, const float* gather, int width,
    const Part* parts, unsigned short* grad_answers, unsigned short* grad_pooled, int B, int step, int steps
) {
    const Part part = parts[block()];
    grad_answers += kept_by_kinds(part, step, steps, B) * 2 * H;
    Returning& w = *reinterpret_cast<Returning*>(shared_memory());
    fetch(w, weights + part.kind);
    synchronise();
    const int tiles = tiles_of(part.rules, B), warps = threads() / 32;
    for (int tile = part.index * warps + thread() / 32; tile < tiles; tile += part.blocks * warps) {
        const Place p = place_of(tile, part.first, part.rules, B);
        Packed<2 * H> sent;
        {
            Tile<2 * H> total;
            total.zero();
            for (int s = 0; s < width; s++) {
                const float shares[2] = {gather[p.item[0] * width + s], gather[p.item[1] * width + s]};
                if (shares[0] == 0.f && shares[1] == 0.f) continue;
                long long row[2];
                #pragma unroll
                for (int r = 0; r < 2; r++) row[r] = (long long)members[p.item[r] * width + s] * B + p.query[r];
                Packed<2 * H> told;
                told.load(grad_units, row, 2 * H, p.t);
                total.add(told, shares[0], shares[1]);
            }
            sent = total.packed();
        }
        sent.store(grad_answers, p, 2 * H);
        Tile<P> back;
        back.zero();
        multiply(back, sent, w.largest, p.lane);
        back.packed().store(grad_pooled, p, 2 * P);
        back.zero();
        multiply(back, sent, w.second, p.lane);
        back.packed().store(grad_pooled + P, p, 2 * P);
    }
}

// ---- relations a < b ------------------------------------------------------------------------------------------------

// A tile is one relation of a query: row d is the rule {a >= d} + {b <= d}. Slots are v for a, V + v for b.
__device__ Place values_of(long long relation, int V) {
    Place p;
    p.lane = thread() % 32;
    p.t = p.lane % 4;
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        p.item[r] = p.lane / 4 + 8 * r;
        p.query[r] = 0;
        p.inside[r] = p.item[r] < V;
        p.row[r] = relation * V + (p.inside[r] ? p.item[r] : V - 1);
    }
    return p;
}

// Sums over the rows up to each one, or from each one on.
template <int W> __device__ void accumulate(Tile<W>& x, int lane, bool backwards) {
    #pragma unroll
    for (int n = 0; n < W / 8; n++)
        #pragma unroll
        for (int j = 0; j < 2; j++) {
            float low = x.v[n][j], high = x.v[n][2 + j];
            const float own[2] = {low, high};
            #pragma unroll
            for (int step = 4; step < 32; step *= 2) {
                const float a = from_lane(low, lane - step), b = from_lane(high, lane - step);
                if (lane >= step) low += a, high += b;
            }
            high += from_lane(low, 28 + lane % 4);
            const float all = from_lane(high, 28 + lane % 4);
            x.v[n][j] = backwards ? all - low + own[0] : low;
            x.v[n][2 + j] = backwards ? all - high + own[1] : high;
        }
}

template <int W> __device__ void scale_rows(Tile<W>& x, const Place& p, float factor) {
    #pragma unroll
    for (int n = 0; n < W / 8; n++)
        #pragma unroll
        for (int i = 0; i < 4; i++) x.v[n][i] = p.inside[i / 2] ? x.v[n][i] * factor : 0.f;
}

extern "C" __global__ void __launch_bounds__(128, 3) relations_forward(
    const unsigned short* spoken, const Answering* weights, unsigned short* pooled, unsigned short* winners,
    unsigned short* relayed, const int* ends, int B, int M, int V, int keep
) {
    Answering& w = *reinterpret_cast<Answering*>(shared_memory());
    fetch(w, weights);
    synchronise();
    const int warps = threads() / 32;
    for (int i = block() * warps + thread() / 32; i < B * M; i += blocks() * warps) {
        const int b = i / M, m = i % M;
        const Place p = values_of(i, V);
        Pool pool;
        pool.clear();
        for (int slot = 0; slot < 2 * V; slot++) {
            const int variable = ends[2 * b * M + (slot < V ? m : M + m)], v = slot % V;
            const long long at = variable < 0 ? 0 : ((long long)variable * V + v) * B + b, row[2] = {at, at};
            Packed<P> said;
            said.load(spoken, row, P, p.t);
            const bool first = slot < V ? v >= p.item[0] : v <= p.item[0], second = slot < V ? v >= p.item[1] : v <= p.item[1];
            pool.take(said, slot, first, second, keep);
        }
        pool.end();
        if (keep) pool.store(pooled, winners, p);
        Tile<2 * H> answer, other;
        answer.zero();
        multiply(answer, pool.best, w.largest, p.lane);
        multiply(answer, pool.next, w.second, p.lane);
        scale_rows(answer, p, 1.f / V);
        other = answer;
        // Choice (a, v) is in the rules d <= v, choice (b, v) in the rules d >= v.
        accumulate(answer, p.lane, false);
        answer.packed().store(relayed, values_of(2 * b * M + m, V), 2 * H);
        accumulate(other, p.lane, true);
        other.packed().store(relayed, values_of(2 * b * M + M + m, V), 2 * H);
    }
}

extern "C" __global__ void __launch_bounds__(128, 2) relations_backward(
    const unsigned short* grad_units, const Returning* weights, const unsigned short* winners, unsigned short* grad_related,
    unsigned short* grad_relayed, const int* ends, int B, int M, int V
) {
    Returning& w = *reinterpret_cast<Returning*>(shared_memory());
    fetch(w, weights);
    synchronise();
    const int warps = threads() / 32;
    for (int i = block() * warps + thread() / 32; i < B * M; i += blocks() * warps) {
        const int b = i / M, m = i % M;
        const Place p = values_of(i, V);
        Packed<2 * H> sent;
        {
            Tile<2 * H> total, of_end;
            total.zero();
            for (int side = 0; side < 2; side++) {
                const int variable = ends[2 * b * M + side * M + m];
                of_end.zero();
                if (variable >= 0) {
                    long long row[2];
                    #pragma unroll
                    for (int r = 0; r < 2; r++) row[r] = ((long long)variable * V + (p.inside[r] ? p.item[r] : 0)) * B + b;
                    Packed<2 * H> told;
                    told.load(grad_units, row, 2 * H, p.t);
                    of_end.add(told, p.inside[0] ? 1.f : 0.f, p.inside[1] ? 1.f : 0.f);
                }
                accumulate(of_end, p.lane, !side);
                #pragma unroll
                for (int n = 0; n < 2 * H / 8; n++)
                    #pragma unroll
                    for (int k = 0; k < 4; k++) total.v[n][k] += of_end.v[n][k];
            }
            scale_rows(total, p, 1.f / V);
            sent = total.packed();
        }
        sent.store(grad_related, p, 2 * H);
        Packed<P> both;
        both.load(winners, p.row, P, p.t);
        for (int side = 0; side < 2; side++) {
            Tile<P> to_end;
            to_end.zero();
            for (int rank = 0; rank < 2; rank++) {
                Tile<P> back;
                back.zero();
                multiply(back, sent, rank ? w.second : w.largest, p.lane);
                for (int d = 0; d < V; d++)  // the rule of value d gave to the choices in its slots
                    #pragma unroll
                    for (int n = 0; n < P / 8; n++) {
                        const int at = 4 * (d % 8) + p.t;
                        const unsigned won = from_lane(d < 8 ? both.v[n][0] : both.v[n][1], at) >> 8 * rank;
                        const float low = from_lane(d < 8 ? back.v[n][0] : back.v[n][2], at);
                        const float high = from_lane(d < 8 ? back.v[n][1] : back.v[n][3], at);
                        #pragma unroll
                        for (int r = 0; r < 2; r++) {
                            const unsigned own = side * V + p.item[r];
                            to_end.v[n][2 * r] += (won & 255) == own ? low : 0.f;
                            to_end.v[n][2 * r + 1] += (won >> 16 & 255) == own ? high : 0.f;
                        }
                    }
            }
            to_end.packed().store(grad_relayed, values_of(2 * b * M + side * M + m, V), P);
        }
    }
}
