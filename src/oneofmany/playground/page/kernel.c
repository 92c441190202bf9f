// One step of the equivariant network in WebAssembly with SIMD: the formulas of networks/equivariant/cpu_kernels.py for
// one query. engine.mjs lays out the memory and calls these functions. Built into kernel.wasm by `make kernel`.
//
// Channels are a multiple of 4 and columns of a product a multiple of 8. Rows of a product are padded to a multiple
// of 4. D: channels of a state, P: channels that a rule pools, H: hidden units. `out` [C, P + 2H] is the product of the
// choices without bias: what they say to their rules, then their own part of the update.

#include <wasm_simd128.h>

#define EXPORT __attribute__((visibility("default")))
#define LOAD(p) wasm_v128_load(p)
#define STORE(p, v) wasm_v128_store(p, v)
#define ADD wasm_f32x4_add
#define SUB wasm_f32x4_sub
#define MUL wasm_f32x4_mul
#define MAX(a, b) wasm_f32x4_pmax(a, b)
#define MIN(a, b) wasm_f32x4_pmin(a, b)
#define ALL(x) wasm_f32x4_splat(x)

typedef v128_t vec;

// out [rows, columns] = left [rows, inner] @ right; right is packed in panels of 8 columns: [columns / 8, inner, 8].
EXPORT void product(const float *left, const float *right, float *out, int rows, int inner, int columns) {
  for (int c = 0; c < columns; c += 8, right += 8 * inner) {
    for (int r = 0; r < rows; r += 4) {
      const float *a = left + r * inner, *b = a + inner, *d = b + inner, *e = d + inner;
      vec a0 = ALL(0), a1 = a0, b0 = a0, b1 = a0, d0 = a0, d1 = a0, e0 = a0, e1 = a0;
      for (int k = 0; k < inner; k++) {
        vec first = LOAD(right + 8 * k), second = LOAD(right + 8 * k + 4), x;
        x = wasm_v128_load32_splat(a + k), a0 = ADD(a0, MUL(x, first)), a1 = ADD(a1, MUL(x, second));
        x = wasm_v128_load32_splat(b + k), b0 = ADD(b0, MUL(x, first)), b1 = ADD(b1, MUL(x, second));
        x = wasm_v128_load32_splat(d + k), d0 = ADD(d0, MUL(x, first)), d1 = ADD(d1, MUL(x, second));
        x = wasm_v128_load32_splat(e + k), e0 = ADD(e0, MUL(x, first)), e1 = ADD(e1, MUL(x, second));
      }
      float *o = out + r * columns + c;
      STORE(o, a0), STORE(o + 4, a1), o += columns;
      STORE(o, b0), STORE(o + 4, b1), o += columns;
      STORE(o, d0), STORE(o + 4, d1), o += columns;
      STORE(o, e0), STORE(o + 4, e1);
    }
  }
}

// The two largest over each rule's choices, plus the bias: pooled [rows, 2P]. The second of a single choice is 0.
EXPORT void pool(const float *out, const int *members, const int *sizes, const int *row, const float *bias,
                 float *pooled, int rules, int widest, int P, int stride) {
  for (int g = 0; g < rules; g++, members += widest) {
    float *best = pooled + row[g] * 2 * P;
    for (int p = 0; p < P; p += 4) {
      vec one = LOAD(out + members[0] * stride + p), two = ALL(-__builtin_inff()), shift = LOAD(bias + p);
      for (int w = 1; w < sizes[g]; w++) {
        vec other = LOAD(out + members[w] * stride + p);
        two = MAX(two, MIN(one, other));
        one = MAX(one, other);
      }
      STORE(best + p, ADD(one, shift));
      STORE(best + P + p, sizes[g] == 1 ? ALL(0) : ADD(two, shift));
    }
  }
}

// The two largest over {a >= d} + {b <= d} for each relation a < b and value d: pooled [M * V, 2P].
EXPORT void pool_relations(const float *out, const int *relations, const float *bias, float *pooled, int M, int V,
                           int P, int stride) {
  for (int m = 0; m < M; m++) {
    const float *small = out + relations[2 * m] * V * stride, *large = out + relations[2 * m + 1] * V * stride;
    float *rows = pooled + m * V * 2 * P;
    for (int p = 0; p < P; p += 4) {
      const vec none = ALL(-__builtin_inff()), shift = LOAD(bias + p);
      vec one = none, two = none;
      for (int d = V - 1; d >= 0; d--) {
        vec a = LOAD(small + d * stride + p);
        two = MAX(two, MIN(one, a));
        one = MAX(one, a);
        STORE(rows + d * 2 * P + p, one), STORE(rows + d * 2 * P + P + p, two);
      }
      one = two = none;
      for (int d = 0; d < V; d++) {
        vec b = LOAD(large + d * stride + p), *best = (vec *)(rows + d * 2 * P + p);
        vec *second = (vec *)(rows + d * 2 * P + P + p);
        two = MAX(two, MIN(one, b));
        one = MAX(one, b);
        STORE(second, ADD(MAX(MAX(LOAD(second), two), MIN(LOAD(best), one)), shift));
        STORE(best, ADD(MAX(LOAD(best), one), shift));
      }
    }
  }
}

// Add the answers [M * V, 2H], divided by V: choice (a, v) is in the rules d <= v, (b, v) in the rules d >= v.
EXPORT void spread_relations(const float *said, const int *relations, float *out, int M, int V, int P, int H2,
                             int stride) {
  const vec share = ALL(1.0f / V);
  for (int m = 0; m < M; m++, said += V * H2) {
    float *small = out + relations[2 * m] * V * stride + P, *large = out + relations[2 * m + 1] * V * stride + P;
    for (int i = 0; i < H2; i += 4) {
      vec total = ALL(0);
      for (int v = 0; v < V; v++) {
        total = ADD(total, MUL(share, LOAD(said + v * H2 + i)));
        STORE(small + v * stride + i, ADD(LOAD(small + v * stride + i), total));
      }
      total = ALL(0);
      for (int v = V - 1; v >= 0; v--) {
        total = ADD(total, MUL(share, LOAD(said + v * H2 + i)));
        STORE(large + v * stride + i, ADD(LOAD(large + v * stride + i), total));
      }
    }
  }
}

static inline vec polynomial(vec z, const float *coefficients, int degree) {
  vec value = ALL(coefficients[0]);
  for (int i = 1; i <= degree; i++) value = ADD(MUL(value, z), ALL(coefficients[i]));
  return value;
}

// (1 + tanh(x / 2)) / 2 by a rational function, within 3e-7.
static inline vec sigmoid(vec x) {
  static const float over[] = {-2.76076847742355e-16f, 2.00018790482477e-13f, -8.60467152213735e-11f,
                               5.12229709037114e-08f, 1.48572235717979e-05f, 6.37261928875436e-04f,
                               4.89352455891786e-03f};
  static const float under[] = {1.19825839466702e-06f, 1.18534705686654e-04f, 2.26843463243900e-03f,
                                4.89352518554385e-03f};
  const float most = 7.90531110763549805f;
  vec y = MIN(MAX(MUL(x, ALL(0.5f)), ALL(-most)), ALL(most)), z = MUL(y, y);
  vec ratio = wasm_f32x4_div(MUL(y, polynomial(z, over, 6)), polynomial(z, under, 3));
  return ADD(ALL(0.5f), MUL(ALL(0.5f), ratio));
}

// Add the answers of each choice's rules to its own part, and open the gate: hidden [C, H].
EXPORT void gate(const float *out, const float *said, const int *rows, const float *weight, const float *bias,
                 float *hidden, int C, int most, int P, int H) {
  for (int c = 0; c < C; c++, rows += most, weight += most, hidden += H) {
    const float *own = out + c * (P + 2 * H) + P;
    for (int i = 0; i < H; i += 4) {
      vec opening = ADD(LOAD(own + i), LOAD(bias + i)), value = ADD(LOAD(own + H + i), LOAD(bias + H + i));
      for (int j = 0; j < most; j++) {
        const float *answer = said + rows[j] * 2 * H + i;
        vec share = ALL(weight[j]);
        opening = ADD(opening, MUL(share, LOAD(answer)));
        value = ADD(value, MUL(share, LOAD(answer + H)));
      }
      STORE(hidden + i, MUL(MUL(opening, sigmoid(opening)), value));
    }
  }
}

static inline float sum(vec x) {
  return (wasm_f32x4_extract_lane(x, 0) + wasm_f32x4_extract_lane(x, 1)) +
         (wasm_f32x4_extract_lane(x, 2) + wasm_f32x4_extract_lane(x, 3));
}

// Normalise state + change, add the query for the next step (x), and read the logits [C].
EXPORT void update(float *state, const float *change, const float *bias, const float *query, float *x,
                   const float *readout, float *logits, int C, int D) {
  for (int c = 0; c < C; c++, state += D, change += D, query += D, x += D) {
    vec total = ALL(0), squares = ALL(0), logit = ALL(0);
    for (int i = 0; i < D; i += 4) {
      vec moved = ADD(LOAD(state + i), ADD(LOAD(change + i), LOAD(bias + i)));
      STORE(state + i, moved);
      total = ADD(total, moved);
    }
    vec mean = ALL(sum(total) / D);
    for (int i = 0; i < D; i += 4) {
      vec off = SUB(LOAD(state + i), mean);
      squares = ADD(squares, MUL(off, off));
    }
    vec scale = ALL(1.0f / __builtin_sqrtf(sum(squares) / D + 1e-5f));
    for (int i = 0; i < D; i += 4) {
      vec row = MUL(SUB(LOAD(state + i), mean), scale);
      STORE(state + i, row);
      STORE(x + i, ADD(row, LOAD(query + i)));
      logit = ADD(logit, MUL(row, LOAD(readout + i)));
    }
    logits[c] = sum(logit);
  }
}
