// FLASH_ATTN_EXT on the CPU: the tiles and the split over the KV length against the row-by-row path (use_ref) and against sums in double,
// for all pairs of cache types, and what a NaN in the cache reaches

#include "ggml.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

static const char * k_types[] = { "f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "tq3_0" };

static ggml_type type_by_name(const std::string & name) {
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const char * s = ggml_type_name((ggml_type) i);
        if (s && name == s) {
            return (ggml_type) i;
        }
    }
    return GGML_TYPE_COUNT;
}

struct shape {
    ggml_type tk;
    ggml_type tv;
    int     d;           // head size
    int64_t n_q;         // batch
    int     n_kv_heads;
    int     gqa;
    int64_t n_kv;
    int     n_stream;
    bool    mask;
    bool    sinks;
    float   softcap;
    float   max_bias;

    std::string str() const {
        char buf[256];
        snprintf(buf, sizeof(buf), "%s/%s d=%d n_q=%d heads=%dx%d n_kv=%d streams=%d mask=%d sinks=%d softcap=%g max_bias=%g",
            ggml_type_name(tk), ggml_type_name(tv), d, (int) n_q, n_kv_heads, gqa, (int) n_kv, n_stream, mask, sinks, softcap, max_bias);
        return buf;
    }
};

struct problem {
    shape s;
    std::vector<float>       q;
    std::vector<uint8_t>     k, v;   // rows: [stream][key][head], as in the KV cache
    std::vector<ggml_fp16_t> mask;   // [stream][row][key]
    std::vector<float>       sinks;

    size_t row_size(ggml_type t) const { return ggml_row_size(t, s.d); }
    uint8_t * k_row(int st, int64_t key, int head) { return k.data() + ((st*s.n_kv + key)*s.n_kv_heads + head)*row_size(s.tk); }
    uint8_t * v_row(int st, int64_t key, int head) { return v.data() + ((st*s.n_kv + key)*s.n_kv_heads + head)*row_size(s.tv); }
    bool masked(int st, int64_t row, int64_t key) const {
        return s.mask && ggml_fp16_to_fp32(mask[(st*s.n_q + row)*s.n_kv + key]) == -INFINITY;
    }
};

static std::vector<uint8_t> convert(ggml_type type, const std::vector<float> & x, int64_t n) {
    std::vector<uint8_t> y(ggml_row_size(type, n)*(x.size()/n));
    if (type == GGML_TYPE_F32) {
        memcpy(y.data(), x.data(), y.size());
    } else {
        ggml_quantize_chunk(type, x.data(), y.data(), 0, x.size()/n, n, nullptr);
    }
    return y;
}

static std::vector<float> to_float(ggml_type type, const uint8_t * x, int n) {
    std::vector<float> y(n);
    if (type == GGML_TYPE_F32) {
        memcpy(y.data(), x, n*sizeof(float));
    } else {
        ggml_get_type_traits(type)->to_float(x, y.data(), n);
    }
    return y;
}

static problem make_problem(const shape & s, uint32_t seed) {
    problem p;
    p.s = s;

    std::mt19937 rng(seed);
    std::normal_distribution<float> normal;

    const size_t n_rows = (size_t) s.n_stream*s.n_kv*s.n_kv_heads;
    std::vector<float> x(n_rows*s.d);
    for (float & f : x) { f = normal(rng); }
    p.k = convert(s.tk, x, s.d);
    for (float & f : x) { f = normal(rng) + 0.5f; }
    p.v = convert(s.tv, x, s.d);

    p.q.resize((size_t) s.n_stream*s.n_kv_heads*s.gqa*s.n_q*s.d);
    for (float & f : p.q) { f = 2*normal(rng); }

    if (s.mask) {
        p.mask.resize(s.n_stream*s.n_q*s.n_kv);
        // causal, some keys of other sequences, whole tiles without a key, values other than 0 and -inf for ALiBi
        for (int st = 0; st < s.n_stream; ++st) {
            for (int64_t i = 0; i < s.n_q; ++i) {
                for (int64_t j = 0; j < s.n_kv; ++j) {
                    const bool visible = j <= s.n_kv - s.n_q + i && rng()%8 != 0 && (j/64)%5 != (i/64)%7;
                    const float dist = s.max_bias > 0 ? -0.01f*std::abs(double(s.n_kv - s.n_q + i - j)) : 0.0f;
                    p.mask[(st*s.n_q + i)*s.n_kv + j] = ggml_fp32_to_fp16(visible ? dist : -INFINITY);
                }
            }
        }
    }
    if (s.sinks) {
        p.sinks.resize(s.n_kv_heads*s.gqa);
        for (float & f : p.sinks) { f = 3*normal(rng); }
    }
    return p;
}

static std::vector<float> compute(const problem & p, bool use_ref, int n_threads) {
    const shape & s = p.s;
    const int n_heads = s.n_kv_heads*s.gqa;

    ggml_context * ctx = ggml_init({ ggml_tensor_overhead()*16 + ggml_graph_overhead(), nullptr, true });
    ggml_tensor * q  = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, s.d, s.n_q, n_heads, s.n_stream);
    ggml_tensor * k0 = ggml_new_tensor_4d(ctx, s.tk, s.d, s.n_kv_heads, s.n_kv, s.n_stream);
    ggml_tensor * v0 = ggml_new_tensor_4d(ctx, s.tv, s.d, s.n_kv_heads, s.n_kv, s.n_stream);
    ggml_tensor * m  = s.mask ? ggml_new_tensor_4d(ctx, GGML_TYPE_F16, s.n_kv, s.n_q, 1, s.n_stream) : nullptr;
    ggml_tensor * sn = s.sinks ? ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n_heads) : nullptr;

    ggml_tensor * out = ggml_flash_attn_ext(ctx, q, ggml_permute(ctx, k0, 0, 2, 1, 3), ggml_permute(ctx, v0, 0, 2, 1, 3), m, 1.0f/sqrtf(s.d), s.max_bias, s.softcap);
    if (sn) {
        ggml_flash_attn_ext_add_sinks(out, sn);
    }

    ggml_cgraph * gf = ggml_new_graph(ctx);
    ggml_build_forward_expand(gf, out);

    ggml_backend_t backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, n_threads);
    ggml_backend_cpu_set_use_ref(backend, use_ref);
    ggml_backend_buffer_t buf = ggml_backend_alloc_ctx_tensors(ctx, backend);

    ggml_backend_tensor_set(q,  p.q.data(), 0, ggml_nbytes(q));
    ggml_backend_tensor_set(k0, p.k.data(), 0, ggml_nbytes(k0));
    ggml_backend_tensor_set(v0, p.v.data(), 0, ggml_nbytes(v0));
    if (m)  { ggml_backend_tensor_set(m,  p.mask.data(),  0, ggml_nbytes(m)); }
    if (sn) { ggml_backend_tensor_set(sn, p.sinks.data(), 0, ggml_nbytes(sn)); }

    std::vector<float> y(ggml_nelements(out), 12345.0f);
    ggml_backend_tensor_set(out, y.data(), 0, ggml_nbytes(out));

    if (ggml_backend_graph_compute(backend, gf) != GGML_STATUS_SUCCESS) {
        fprintf(stderr, "graph failed: %s\n", s.str().c_str());
        exit(1);
    }
    ggml_backend_tensor_get(out, y.data(), 0, ggml_nbytes(out));

    ggml_backend_buffer_free(buf);
    ggml_backend_free(backend);
    ggml_free(ctx);
    return y; // [stream][row][head][d]
}

// one row of the result in double, from the values as they are stored
static std::vector<double> exact(problem & p, int st, int64_t row, int head) {
    const shape & s = p.s;
    const int n_heads = s.n_kv_heads*s.gqa;
    const int kv_head = head/s.gqa;
    const float * q = p.q.data() + ((st*n_heads + head)*s.n_q + row)*s.d;

    const int n_head_log2 = 1 << (int) floor(log2(n_heads));
    const double m0 = pow(2.0, -s.max_bias/n_head_log2);
    const double m1 = pow(2.0, -s.max_bias/2/n_head_log2);
    const double slope = s.max_bias > 0 ? head < n_head_log2 ? pow(m0, head + 1) : pow(m1, 2*(head - n_head_log2) + 1) : 1.0;

    std::vector<double> score(s.n_kv, -INFINITY);
    double max = s.sinks ? p.sinks[head] : -INFINITY;
    for (int64_t j = 0; j < s.n_kv; ++j) {
        if (p.masked(st, row, j)) {
            continue;
        }
        const std::vector<float> k = to_float(s.tk, p.k_row(st, j, kv_head), s.d);
        double sum = 0;
        for (int i = 0; i < s.d; ++i) { sum += (double) k[i]*q[i]; }
        sum /= sqrt(s.d);
        if (s.softcap != 0) { sum = s.softcap*tanh(sum/s.softcap); }
        if (s.mask) { sum += slope*ggml_fp16_to_fp32(p.mask[(st*s.n_q + row)*s.n_kv + j]); }
        score[j] = sum;
        max = std::max(max, sum);
    }

    std::vector<double> y(s.d, 0.0);
    double total = s.sinks ? exp(p.sinks[head] - max) : 0.0;
    for (int64_t j = 0; j < s.n_kv; ++j) {
        if (score[j] == -INFINITY) {
            continue;
        }
        const double w = exp(score[j] - max);
        const std::vector<float> v = to_float(s.tv, p.v_row(st, j, kv_head), s.d);
        for (int i = 0; i < s.d; ++i) { y[i] += w*v[i]; }
        total += w;
    }
    for (double & f : y) { f = total == 0 ? 0 : f/total; }
    return y;
}

template <typename A, typename B>
static double nmse(const A * a, const B * b, size_t n) {
    double err = 0, ref = 0;
    for (size_t i = 0; i < n; ++i) {
        err += ((double) a[i] - b[i])*((double) a[i] - b[i]);
        ref += (double) b[i]*b[i];
    }
    return ref == 0 ? (err == 0 ? 0 : INFINITY) : err/ref; // NaN stays NaN
}

static int n_passed = 0;
static int n_failed = 0;

static void check(bool ok, const std::string & what) {
    if (ok) {
        n_passed++;
    } else {
        n_failed++;
        printf("FAILED %s\n", what.c_str());
    }
}

static double worst_exact[2] = { 0, 0 }; // [query in 8 bits or f16, query in f32]
static double worst_ref      = 0;

static bool is_float(ggml_type t) { return t == GGML_TYPE_F32; }

static void test_equal(const shape & s, uint32_t seed, int n_threads) {
    problem p = make_problem(s, seed);

    const std::vector<float> ref = compute(p, true,  2);
    const std::vector<float> got = compute(p, false, n_threads);

    // the row-by-row path rounds the query to 8 bits, and sums F16 values in F16
    const double e = nmse(got.data(), ref.data(), ref.size());
    worst_ref = std::max(worst_ref, e);
    check(e < 1e-3, s.str() + ": against the row-by-row path, nmse " + std::to_string(e));

    // 64 rows and more are taken with the query in F32
    const bool f32 = s.n_q >= 64 || is_float(s.tk);
    const int n_heads = s.n_kv_heads*s.gqa;
    std::mt19937 rng(seed);
    std::vector<double> want;
    std::vector<float>  have;
    for (int i = 0; i < 6; ++i) {
        const int     st   = rng()%s.n_stream;
        const int64_t row  = i == 0 ? s.n_q - 1 : rng()%s.n_q;
        const int     head = i == 0 ? n_heads - 1 : rng()%n_heads;
        const std::vector<double> y = exact(p, st, row, head);
        want.insert(want.end(), y.begin(), y.end());
        const float * g = got.data() + ((st*s.n_q + row)*n_heads + head)*s.d;
        have.insert(have.end(), g, g + s.d);
    }
    const double ex = nmse(have.data(), want.data(), want.size());
    worst_exact[f32] = std::max(worst_exact[f32], ex);
    check(ex < (f32 ? 1e-9 : 5e-4), s.str() + ": against double, nmse " + std::to_string(ex*1e9) + "e-9");
}

static void poison(ggml_type type, uint8_t * row, int from) {
    const float x = NAN;
    switch (type) {
        case GGML_TYPE_F32:  memcpy(row + from*sizeof(float), &x, sizeof(x)); break;
        case GGML_TYPE_F16:  { const ggml_fp16_t h = 0x7e00; memcpy(row + from*2, &h, 2); } break;
        case GGML_TYPE_BF16: { const ggml_bf16_t h = ggml_fp32_to_bf16(x); memcpy(row + from*2, &h, 2); } break;
        default:             { const ggml_fp16_t h = 0x7e00; memcpy(row + from/ggml_blck_size(type)*ggml_type_size(type), &h, 2); } break; // scale of the block
    }
}

// rows of two sequences in turn; the cell of one of them holds NaN in K or in V
static void test_nan(ggml_type type, bool in_k, int64_t n_q, int64_t cell, int64_t n_kv, bool alone, int n_threads) {
    shape s = { type, type, 64, n_q, 2, 3, n_kv, 1, true, false, 0, 0 };
    problem p = make_problem(s, 7);
    for (int64_t i = 0; i < n_q; ++i) {
        for (int64_t j = 0; j < n_kv; ++j) {
            // alone: the NaN cell is the only one its rows see
            const bool seen = i%2 == 1 ? (alone ? j == cell : true) : j != cell;
            p.mask[i*n_kv + j] = ggml_fp32_to_fp16(seen ? 0.0f : -INFINITY);
        }
    }
    problem clean = p;
    poison(type, in_k ? p.k_row(0, cell, 1) : p.v_row(0, cell, 1), 32);

    for (const bool use_ref : { true, false }) {
        const std::vector<float> y0 = compute(clean, use_ref, n_threads);
        const std::vector<float> y1 = compute(p,     use_ref, n_threads);

        bool untouched = true;
        bool reached   = true;
        for (int64_t i = 0; i < n_q; ++i) {
            for (int h = 0; h < 6; ++h) {
                const float * a = y0.data() + (i*6 + h)*64;
                const float * b = y1.data() + (i*6 + h)*64;
                if (i%2 == 1 && h/3 == 1) {
                    for (int d = in_k ? 0 : 32; d < (in_k ? 64 : 33); ++d) { reached = reached && std::isnan(b[d]); }
                } else {
                    untouched = untouched && nmse(b, a, 64) < 1e-12;
                }
            }
        }
        const std::string what = std::string(ggml_type_name(type)) + (in_k ? " K" : " V") + " n_q=" + std::to_string(n_q) + " cell=" + std::to_string(cell)
            + " n_kv=" + std::to_string(n_kv) + (alone ? " alone" : "") + (use_ref ? " row by row" : " tiles") + " threads=" + std::to_string(n_threads);
        check(untouched, "a masked NaN changes other rows: " + what);
        check(reached,   "a NaN does not reach the result: " + what);
    }
}

// test-fa-paths [step]: every step-th case, for an emulator
int main(int argc, char ** argv) {
    const uint32_t step = argc > 1 ? std::max(1, atoi(argv[1])) : 1;

    const int     dims[]    = { 64, 96, 128, 256 };
    const int64_t batches[] = { 1, 2, 7, 16, 63, 64, 65, 512 };
    const int     gqas[]    = { 1, 3, 4, 8 };
    const int64_t lengths[] = { 512, 64, 513, 700, 63, 1024, 65, 1 }; // around the borders of tiles and of the split (512)

    std::vector<ggml_type> types;
    for (const char * name : k_types) {
        const ggml_type t = type_by_name(name);
        if (t == GGML_TYPE_COUNT) {
            printf("%s: not a type of this library\n", name);
        } else {
            types.push_back(t);
        }
    }

    // all pairs of types; head size, batch and group in all combinations over the pairs
    uint32_t n = 0;
    for (const ggml_type tk : types) {
        for (const ggml_type tv : types) {
            for (const int64_t n_q : batches) {
                const uint32_t r = n*2654435761u >> 8;
                shape s = {};
                s.tk         = tk;
                s.tv         = tv;
                s.d          = dims[n%4];
                s.n_q        = n_q;
                s.gqa        = gqas[(n/4 + n/32)%4];
                s.n_kv_heads = n_q > 64 ? 1 : 2;
                s.n_kv       = n_q > 64 ? 600 : std::max(n_q, lengths[r%8]);
                s.n_stream   = r/8%3 == 0 && n_q <= 64 ? 2 : 1;
                s.mask       = n_q > 1 || r/32%2;
                s.sinks      = r/64%2;
                s.softcap    = r/128%3 == 0 ? 5.0f : 0.0f;
                s.max_bias   = s.mask && r/512%3 == 0 ? 8.0f : 0.0f;
                if (n%step == 0) {
                    test_equal(s, n, 1 + n%3);
                }
                n++;
            }
        }
    }

    for (const ggml_type t : types) {
        for (const bool in_k : { true, false }) {
            for (const int64_t n_q : { 2, 3, 7, 16, 63, 64, 65, 130 }) {
                if (n++%step != 0) {
                    continue;
                }
                test_nan(t, in_k, n_q, 70, 600, false, 1 + n_q%3);
                test_nan(t, in_k, n_q, 70, 600, true,  1 + n_q%3);
            }
            test_nan(t, in_k, 4,  5,   40,  false, 2);
            test_nan(t, in_k, 64, 639, 640, false, 2);
        }
    }

    printf("types %d, worst nmse: %.1e against the row-by-row path, %.1e against double (%.1e with the query in f32)\n",
        (int) types.size(), worst_ref, worst_exact[0], worst_exact[1]);
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed ? 1 : 0;
}
