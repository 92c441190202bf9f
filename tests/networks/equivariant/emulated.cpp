// Blocks on a CPU, of three warps if a kernel does not need another number. The 32 lanes of a warp take turns, and meet at
// every operation of the whole warp. One warp goes as far as it can before the next one begins: up to where the block
// synchronises.
#include <ucontext.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>
#define EMULATED
#define __device__
#define __global__
#define __launch_bounds__(...)

struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct float4 { float x, y, z, w; };
uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

constexpr int LANES = 32, MOST = 8 * LANES;
int THREADS = 3 * LANES;
int thread_now, block_now, blocks_now, left;
ucontext_t contexts[MOST], caller;
std::function<void()> kernel_now;
alignas(16) unsigned char memory_of_block[1 << 18];

void go_to(int next) {
    const int here = thread_now;
    thread_now = next;
    swapcontext(&contexts[here], &contexts[next]);
    thread_now = here;
}

// All lanes of a warp come here once before any of them goes on: they call it equally often.
int lane_now() { return thread_now % LANES; }
void meet() { go_to(thread_now - lane_now() + (lane_now() + 1) % LANES); }
void synchronise() { go_to((thread_now + 1) % THREADS); }

void run_thread() {
    kernel_now();
    if (--left == 0) setcontext(&caller);
    setcontext(&contexts[++thread_now]);
}

void launch(int blocks, std::function<void()> kernel) {
    static std::vector<char> stacks(MOST << 17);
    kernel_now = kernel;
    blocks_now = blocks;
    for (block_now = 0; block_now < blocks; block_now++) {
        std::memset(memory_of_block, 0xff, sizeof memory_of_block);
        left = THREADS;
        for (int thread = 0; thread < THREADS; thread++) {
            getcontext(&contexts[thread]);
            contexts[thread].uc_stack.ss_sp = stacks.data() + (thread << 17);
            contexts[thread].uc_stack.ss_size = 1 << 17;
            makecontext(&contexts[thread], run_thread, 0);
        }
        thread_now = 0;
        swapcontext(&caller, &contexts[0]);
    }
}

void* shared_memory() { return memory_of_block; }
int thread() { return thread_now; }
int threads() { return THREADS; }
int block() { return block_now; }
int blocks() { return blocks_now; }
float low_half(unsigned x) {
    x <<= 16;
    float f;
    std::memcpy(&f, &x, 4);
    return f;
}
float high_half(unsigned x) { return low_half(x >> 16); }
unsigned rounded(float f) {
    unsigned u;
    std::memcpy(&u, &f, 4);
    return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
unsigned pack(float low, float high) { return rounded(low) | rounded(high) << 16; }
float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float inverse_root(float x) { return 1 / std::sqrt(x); }
template <typename T> T from_lane(T x, int lane) {
    static T of_lanes[LANES];
    of_lanes[lane_now()] = x;
    meet();
    const T found = of_lanes[lane & (LANES - 1)];
    meet();
    return found;
}
float across(float x, int mask) { return from_lane(x, lane_now() ^ mask); }

// Entry (row, k) of the first factor is in lane 4 * (row % 8) + k % 8 / 2, register row / 8 + 2 * (k / 8); entry (k, n) of
// the second one in lane 4 * n + k % 8 / 2, register k / 8.
void mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    static unsigned a[LANES][4], b[LANES][2];
    const unsigned of_a[4] = {a0, a1, a2, a3}, of_b[2] = {b0, b1};
    std::memcpy(a[lane_now()], of_a, sizeof of_a);
    std::memcpy(b[lane_now()], of_b, sizeof of_b);
    meet();
    for (int i = 0; i < 4; i++) {
        const int row = lane_now() / 4 + 8 * (i / 2), n = 2 * (lane_now() % 4) + i % 2;
        for (int k = 0; k < 16; k++) {
            const unsigned x = a[4 * (row % 8) + k % 8 / 2][row / 8 + 2 * (k / 8)], y = b[4 * n + k % 8 / 2][k / 8];
            c[i] += k % 2 ? high_half(x) * high_half(y) : low_half(x) * low_half(y);
        }
    }
    meet();
}

void mma_half(float (&c)[4], unsigned a0, unsigned a1, unsigned b) { mma(c, a0, a1, 0, 0, b, 0); }

// Lane l says where row l % 8 of part l / 8 is.
void load_parts(unsigned (&x)[4], const void* row, bool transposed) {
    static const unsigned short* rows[LANES];
    rows[lane_now()] = static_cast<const unsigned short*>(row);
    meet();
    const int g = lane_now() / 4, t = lane_now() % 4;
    for (int i = 0; i < 4; i++) {
        const unsigned short** of = rows + 8 * i;
        x[i] = transposed ? of[2 * t][g] | of[2 * t + 1][g] << 16 : of[g][2 * t] | of[g][2 * t + 1] << 16;
    }
    meet();
}
template <int BYTES> void copy_later(void* to, const void* from, bool there) {
    if (there) std::memcpy(to, from, BYTES);
    else std::memset(to, 0, BYTES);
}
void end_of_copies() {}
template <int left> void wait_for_copies() {}
unsigned masks(unsigned x, int at) {
    return (x >> (8 * at + 7) & 1 ? 0xffffu : 0) | (x >> (8 * at + 15) & 1 ? 0xffff0000u : 0);
}
template <typename T> T load_again(const T* from) { return *from; }
template <typename T> T load_once(const T* from) { return *from; }
template <typename T> void store_again(T* to, T x) { *to = x; }
template <typename T> void store_once(T* to, T x) { *to = x; }
unsigned above(unsigned a, unsigned b) {
    return (low_half(a) > low_half(b) ? 0xffffu : 0) | (high_half(a) > high_half(b) ? 0xffff0000u : 0);
}
unsigned pick(unsigned mask, unsigned a, unsigned b) { return (mask & a) | (~mask & b); }
void ask_for(const void*) {}
unsigned highest_byte(unsigned x) { return (x >> 24) * 0x01010101; }
unsigned low_bytes(unsigned x, unsigned y) {
    return (x & 255) | (x >> 8 & 0xff00) | (y & 255) << 16 | (y << 8 & 0xff000000);
}
unsigned larger(unsigned a, unsigned b) { return pick(above(b, a), b, a); }
unsigned smaller(unsigned a, unsigned b) { return pick(above(b, a), a, b); }

#include "kernels.cu"
#include "resident.cu"
#include "weights.cu"

// Arguments come as whole numbers, pointers too.
template <typename... Arguments> void emulate(void (*kernel)(Arguments...), int blocks, const long long* numbers) {
    int at = 0;
    auto next = [&]<typename T>(T*) -> T {
        const long long number = numbers[at++];
        if constexpr (std::is_pointer_v<T>) return reinterpret_cast<T>(number);
        else return static_cast<T>(number);
    };
    // Braces evaluate from left to right.
    std::tuple<Arguments...> arguments{next(static_cast<Arguments*>(nullptr))...};
    launch(blocks, [&] { std::apply(kernel, arguments); });
}
extern "C" void run_kernel(const char* name, int blocks, const long long* numbers) {
    const std::string of = name;
    if (of == "choices_forward") emulate(choices_forward, blocks, numbers);
    if (of == "choices_backward") emulate(choices_backward, blocks, numbers);
    if (of == "rules_forward") emulate(rules_forward, blocks, numbers);
    if (of == "rules_backward") emulate(rules_backward, blocks, numbers);
    if (of == "relations_forward") emulate(relations_forward, blocks, numbers);
    if (of == "relations_backward") emulate(relations_backward, blocks, numbers);
    THREADS = (of == "weight_sums" ? SUM_WARPS : 3) * LANES;
    if (of == "weight_sums") emulate(weight_sums, blocks, numbers);
    if (of == "resident_forward") emulate(resident_forward, blocks, numbers);
    if (of == "resident_backward") emulate(resident_backward, blocks, numbers);
}
