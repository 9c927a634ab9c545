// Attention for one pair of cache types.
#include "cases.h"

#include <cmath>

static constexpr double FLASH_LIMIT = 5e-4; // as in test-backend-ops

static Floats causal_mask(const Attention & a) {
    Floats m((size_t) a.queries * a.kv);
    for (int i = 0; i < a.queries; ++i)
        for (int j = 0; j < a.kv; ++j)
            m[(size_t) i * a.kv + j] = j <= a.kv - a.queries + i ? -0.0625f * (j % 7) : -INFINITY;
    return m;
}

static Outcome flash_attention(ggml_backend_t backend, const Pair & pair, const Attention & a) {
    Graph g(backend);
    auto q = g.tensor(GGML_TYPE_F32, a.dk, a.queries, a.heads), k = g.tensor(pair.k, a.dk, a.kv, a.kv_heads),
         v = g.tensor(pair.v, a.dv, a.kv, a.kv_heads);
    auto mask = a.mask ? g.tensor(GGML_TYPE_F16, a.kv, a.queries) : nullptr;
    auto sinks = a.sinks ? g.tensor(GGML_TYPE_F32, a.heads) : nullptr;
    auto out = ggml_flash_attn_ext(g.context(), q, k, v, mask, a.scale(), a.max_bias, a.softcap);
    if (sinks) ggml_flash_attn_ext_add_sinks(out, sinks);
    ggml_prec_set_acc(out, GGML_PREC_F32);
    const auto device = ggml_backend_get_device(backend);
    if (!ggml_backend_dev_supports_op(device, out)) return {false, NAN, FLASH_LIMIT, "not supported"};
    g.allocate(out);

    AttentionData x;
    x.q = gaussian((size_t) a.dk * a.queries * a.heads, 2);
    const Bytes kq = quantized(pair.k, gaussian((size_t) a.dk * a.kv * a.kv_heads, 1), a.dk);
    const Bytes vq = quantized(pair.v, gaussian((size_t) a.dv * a.kv * a.kv_heads, 1), a.dv);
    x.k = dequantized(pair.k, kq, (size_t) a.dk * a.kv * a.kv_heads);
    x.v = dequantized(pair.v, vq, (size_t) a.dv * a.kv * a.kv_heads);
    set(q, x.q);
    set(k, kq);
    set(v, vq);
    if (mask) {
        x.mask = causal_mask(a);
        set(mask, quantized(GGML_TYPE_F16, x.mask, a.kv));
    }
    if (sinks) set(sinks, x.sinks = gaussian(a.heads, 1));
    const bool ran = g.compute();
    const double e = nmse(get<float>(out), attention(a, x));
    return {ran && e <= FLASH_LIMIT, e, FLASH_LIMIT, ""};
}

static std::vector<Case> attention_cases(const Pair & pair, const std::vector<Attention> & all) {
    std::vector<Case> cases;
    const std::string k = ggml_type_name(pair.k), v = ggml_type_name(pair.v);
    for (const Attention & a : all)
        cases.push_back({a.name(k, v), [=](ggml_backend_t b) { return flash_attention(b, pair, a); }});
    return cases;
}

// Which kernel variant a shape reaches depends on the tuning table: tests/metal asserts the dispatched names.
std::vector<Case> vec_cases(const Pair & pair, int dk, int dv) {
    std::vector<Attention> all = {
        {dk, dv, 1, 1, 1, 1024},                      // one query over many entries
        {dk, dv, 4, 2, 3, 200, true},                 // padding kernel, grouped heads, queries that do not fill a tile
        {dk, dv, 1, 1, 1, 4096 + 77, true},           // four SIMD groups, split work groups and the reduction
        {dk, dv, 3, 3, 2, 96, true, true, 8.0f, 0},   // sinks, ALiBi with a head count that is no power of two
        {dk, dv, 2, 2, 1, 64, true, false, 0, 10.0f}, // soft cap
        {dk, dv, 1, 1, 2, 70},                        // padding without a mask
    };
    return attention_cases(pair, all);
}

// one query over many entries, for counting what a kernel executes
std::vector<Case> long_case(const Pair & pair, int dk, int dv) {
    return attention_cases(pair, {{dk, dv, 1, 1, 1, 4096, true}});
}

// The least that shows the kernels of a head size to be right: vec and matrix form, and the vec variant for long
// caches, which the tuning table may choose from 1,024 entries on.
std::vector<Case> size_cases(const Pair & pair, int dk, int dv) {
    return attention_cases(
        pair, {{dk, dv, 2, 1, 2, 70, true}, {dk, dv, 1, 1, 20, 40, true}, {dk, dv, 1, 1, 1, 1024 + 1, true}});
}

std::vector<Case> matrix_cases(const Pair & pair, int dk, int dv) {
    std::vector<Attention> all = {
        {dk, dv, 2, 1, 24, 128},                     // below 32 queries: the quantized cache is read directly
        {dk, dv, 2, 1, 27, 100, true},               // padding and block-mask kernels
        {dk, dv, 1, 1, 40, 96, true, true, 8.0f, 0}, // from 32 queries on, f16 copies of some types are made first
        {dk, dv, 1, 1, 21, 64, true, false, 0, 10.0f},
    };
    return attention_cases(pair, all);
}
