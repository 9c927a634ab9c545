#include "cases.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

static constexpr double FLASH_LIMIT = 5e-4; // as in test-backend-ops

// ---- rows

static constexpr int ROW = 256, ROWS = 17, INDICES = 9;

static std::vector<int> row_order() {
    std::vector<int> v(INDICES);
    for (int i = 0; i < INDICES; ++i) v[i] = (i*5 + 3) % ROWS;
    return v;
}

// Gaussian rows, with blocks in them that quantizers get wrong: zeros, a single value, equal values, tiny and large ones
static Floats difficult_rows(int rows) {
    Floats x = gaussian((size_t) ROW*rows, 1);
    for (int i = 0; i < 32; ++i) {
        x[i] = 0;
        x[32 + i] = i == 5 ? -3.0f : 0;
        x[64 + i] = 0.25f;
        x[96 + i] *= 1e-4f;
        x[128 + i] *= 1e3f;
    }
    return x;
}

// codes must be equal; the scale in the first two bytes of a block may be off by METAL_HOST_SCALE_ULP (0)
static Outcome compare_blocks(ggml_type type, const Bytes & got, const Bytes & expected) {
    static const int allowed = getenv("METAL_HOST_SCALE_ULP") ? atoi(getenv("METAL_HOST_SCALE_ULP")) : 0;
    const size_t block = ggml_type_size(type);
    size_t codes = 0, scales = 0;
    int worst = 0;
    for (size_t b = 0; b < got.size(); b += block) {
        for (size_t i = 2; i < block; ++i) codes += got[b + i] != expected[b + i];
        int16_t x, y;
        memcpy(&x, &got[b], 2);
        memcpy(&y, &expected[b], 2);
        scales += x != y;
        worst = std::max(worst, std::abs(x - y));
    }
    const size_t n = got.size()/block*ggml_blck_size(type);
    const Floats reference = dequantized(type, expected, n);
    const double e = nmse(dequantized(type, got, n), {reference.begin(), reference.end()});
    return {codes == 0 && worst <= allowed, e, 0, std::to_string(codes) + " code bytes and " + std::to_string(scales) + " scales differ, by "
            + std::to_string(worst) + " ulp at most, in " + std::to_string(got.size()/block) + " blocks"};
}

template <class Index> static Outcome set_rows(ggml_backend_t backend, ggml_type type) {
    Graph g(backend);
    auto dst = g.tensor(type, ROW, ROWS), src = g.tensor(GGML_TYPE_F32, ROW, INDICES);
    auto index = g.tensor(sizeof(Index) == 8 ? GGML_TYPE_I64 : GGML_TYPE_I32, INDICES);
    g.allocate(ggml_set_rows(g.context(), dst, src, index));
    const Floats x = difficult_rows(INDICES);
    const auto order = row_order();
    Bytes expected(ggml_nbytes(dst), 0);
    set(dst, expected);
    set(src, x);
    set(index, std::vector<Index>(order.begin(), order.end()));
    const bool ran = g.compute();
    const Bytes q = quantized(type, x, ROW);
    const size_t n = ggml_row_size(type, ROW);
    for (int i = 0; i < INDICES; ++i) memcpy(&expected[order[i]*n], &q[i*n], n);
    Outcome o = compare_blocks(type, get<uint8_t>(dst), expected);
    o.ok &= ran;
    return o;
}

static Outcome copy_to(ggml_backend_t backend, ggml_type type) {
    Graph g(backend);
    auto dst = g.tensor(type, ROW, ROWS), src = g.tensor(GGML_TYPE_F32, ROW, ROWS);
    g.allocate(ggml_cpy(g.context(), src, dst));
    const Floats x = difficult_rows(ROWS);
    set(src, x);
    const bool ran = g.compute();
    Outcome o = compare_blocks(type, get<uint8_t>(dst), quantized(type, x, ROW));
    o.ok &= ran;
    return o;
}

// GET_ROWS, or CPY to a type
static Outcome read(ggml_backend_t backend, ggml_type type, bool rows, ggml_type to = GGML_TYPE_F32) {
    Graph g(backend);
    auto src = g.tensor(type, ROW, ROWS), index = rows ? g.tensor(GGML_TYPE_I32, INDICES) : nullptr;
    auto out = rows ? ggml_get_rows(g.context(), src, index) : ggml_cpy(g.context(), src, g.tensor(to, ROW, ROWS));
    g.allocate(out);
    const Bytes q = quantized(type, difficult_rows(ROWS), ROW);
    auto order = row_order();
    set(src, q);
    if (rows) {
        set(index, order);
    } else {
        order.clear();
        for (int i = 0; i < ROWS; ++i) order.push_back(i);
    }
    const bool ran = g.compute();
    const Floats x = dequantized(type, q, (size_t) ROW*ROWS);
    std::vector<double> expected;
    for (int i : order) expected.insert(expected.end(), &x[i*ROW], &x[i*ROW] + ROW);
    const double e = nmse(dequantized(to, get<uint8_t>(out), expected.size()), expected), limit = to == GGML_TYPE_F16 ? 1e-7 : 1e-12;
    return {ran && e <= limit, e, limit, ""};
}

std::vector<Case> row_cases(ggml_type type) {
    const std::string name = ggml_type_name(type);
    return {
        {"SET_ROWS i64 " + name, [=](ggml_backend_t b) { return set_rows<int64_t>(b, type); }},
        {"SET_ROWS i32 " + name, [=](ggml_backend_t b) { return set_rows<int32_t>(b, type); }},
        {"CPY f32 to " + name,   [=](ggml_backend_t b) { return copy_to(b, type); }},
        {"CPY " + name + " to f32", [=](ggml_backend_t b) { return read(b, type, false); }},
        {"CPY " + name + " to f16", [=](ggml_backend_t b) { return read(b, type, false, GGML_TYPE_F16); }},
        {"GET_ROWS " + name,     [=](ggml_backend_t b) { return read(b, type, true); }},
    };
}

// ---- attention

static Floats causal_mask(const Attention & a) {
    Floats m((size_t) a.queries*a.kv);
    for (int i = 0; i < a.queries; ++i) for (int j = 0; j < a.kv; ++j) m[(size_t) i*a.kv + j] = j <= a.kv - a.queries + i ? -0.0625f*(j % 7) : -INFINITY;
    return m;
}

static Outcome flash_attention(ggml_backend_t backend, const Pair & pair, const Attention & a) {
    Graph g(backend);
    auto q = g.tensor(GGML_TYPE_F32, a.dk, a.queries, a.heads), k = g.tensor(pair.k, a.dk, a.kv, a.kv_heads), v = g.tensor(pair.v, a.dv, a.kv, a.kv_heads);
    auto mask = a.mask ? g.tensor(GGML_TYPE_F16, a.kv, a.queries) : nullptr;
    auto sinks = a.sinks ? g.tensor(GGML_TYPE_F32, a.heads) : nullptr;
    auto out = ggml_flash_attn_ext(g.context(), q, k, v, mask, a.scale(), a.max_bias, a.softcap);
    if (sinks) ggml_flash_attn_ext_add_sinks(out, sinks);
    ggml_prec_set_acc(out, GGML_PREC_F32);
    const auto device = ggml_backend_get_device(backend);
    if (!ggml_backend_dev_supports_op(device, out)) return {false, NAN, FLASH_LIMIT, "not supported"};
    g.allocate(out);

    AttentionData x;
    x.q = gaussian((size_t) a.dk*a.queries*a.heads, 2);
    const Bytes kq = quantized(pair.k, gaussian((size_t) a.dk*a.kv*a.kv_heads, 1), a.dk);
    const Bytes vq = quantized(pair.v, gaussian((size_t) a.dv*a.kv*a.kv_heads, 1), a.dv);
    x.k = dequantized(pair.k, kq, (size_t) a.dk*a.kv*a.kv_heads);
    x.v = dequantized(pair.v, vq, (size_t) a.dv*a.kv*a.kv_heads);
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
    for (const Attention & a : all) cases.push_back({a.name(k, v), [=](ggml_backend_t b) { return flash_attention(b, pair, a); }});
    return cases;
}

// Which kernel variant a shape reaches depends on the tuning table: tests/metal asserts the dispatched names.
std::vector<Case> vec_cases(const Pair & pair, int dk, int dv) {
    std::vector<Attention> all = {
        {dk, dv, 1, 1, 1, 1024},                            // one query over many entries
        {dk, dv, 4, 2, 3, 200, true},                       // padding kernel, grouped heads, queries that do not fill a tile
        {dk, dv, 1, 1, 1, 4096 + 77, true},                 // four SIMD groups, split work groups and the reduction
        {dk, dv, 3, 3, 2, 96, true, true, 8.0f, 0},         // sinks, ALiBi with a head count that is no power of two
        {dk, dv, 2, 2, 1, 64, true, false, 0, 10.0f},       // soft cap
    };
    return attention_cases(pair, all);
}

// one query over many entries, for counting what a kernel executes
std::vector<Case> long_case(const Pair & pair, int dk, int dv) { return attention_cases(pair, {{dk, dv, 1, 1, 1, 4096, true}}); }

// The least that shows the kernels of a head size to be right: vec and matrix form, and the vec variant for long caches, which the tuning
// table may choose from 1,024 entries on.
std::vector<Case> size_cases(const Pair & pair, int dk, int dv) {
    return attention_cases(pair, {{dk, dv, 2, 1, 2, 70, true}, {dk, dv, 1, 1, 20, 40, true}, {dk, dv, 1, 1, 1, 1024 + 1, true}});
}

std::vector<Case> matrix_cases(const Pair & pair, int dk, int dv) {
    std::vector<Attention> all = {
        {dk, dv, 2, 1, 24, 128},                            // below 32 queries: the quantized cache is read directly
        {dk, dv, 2, 1, 27, 100, true},                      // padding and block-mask kernels
        {dk, dv, 1, 1, 40, 96, true, true, 8.0f, 0},        // from 32 queries on, f16 copies of some types are made first
        {dk, dv, 1, 1, 21, 64, true, false, 0, 10.0f},
    };
    return attention_cases(pair, all);
}
