// Rows of blocks: what is written must be the bytes of ggml's C code, what is read its values.
#include "blocks.h"
#include "cases.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

static constexpr int ROW = 256, ROWS = 17, INDICES = 9;

static std::vector<int> row_order() {
    std::vector<int> v(INDICES);
    for (int i = 0; i < INDICES; ++i) v[i] = (i * 5 + 3) % ROWS;
    return v;
}

static std::vector<int> each_row(size_t rows) {
    std::vector<int> v(rows);
    std::iota(v.begin(), v.end(), 0);
    return v;
}

// Gaussian rows, with blocks in them that quantizers get wrong: zeros, a single value, equal values, tiny and large
// ones
static Floats difficult_rows(int rows) {
    Floats x = gaussian((size_t) ROW * rows, 1);
    for (int i = 0; i < 32; ++i) {
        x[i] = 0;
        x[32 + i] = i == 5 ? -3.0f : 0;
        x[64 + i] = 0.25f;
        x[96 + i] *= 1e-4f;
        x[128 + i] *= 1e3f;
    }
    return x;
}

// of the values that the C code decodes to numbers
static double error_of(ggml_type type, const Bytes & got, const Bytes & expected) {
    const size_t n = got.size() / ggml_type_size(type) * ggml_blck_size(type);
    const Floats x = dequantized(type, got, n), y = dequantized(type, expected, n);
    Floats seen;
    std::vector<double> wanted;
    for (size_t i = 0; i < n; ++i) {
        if (std::isnan(y[i])) continue;
        seen.push_back(x[i]);
        wanted.push_back(y[i]);
    }
    return nmse(seen, wanted);
}

// codes must be equal; the scale in the first two bytes of a block may be off by METAL_EMULATOR_SCALE_ULP (0)
static Outcome compare_blocks(ggml_type type, const Bytes & got, const Bytes & expected) {
    static const int allowed = getenv("METAL_EMULATOR_SCALE_ULP") ? atoi(getenv("METAL_EMULATOR_SCALE_ULP")) : 0;
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
    return {codes == 0 && worst <= allowed, error_of(type, got, expected), 0,
            std::to_string(codes) + " code bytes and " + std::to_string(scales) + " scales differ, by "
                + std::to_string(worst) + " ulp at most, in " + std::to_string(got.size() / block) + " blocks"};
}

// rows of x to the places of `order`, in a tensor of `rows` rows
template <class Index> static Outcome set_rows(ggml_backend_t backend, ggml_type type, const Floats & x,
                                               const std::vector<int> & order, int rows) {
    Graph g(backend);
    auto dst = g.tensor(type, ROW, rows), src = g.tensor(GGML_TYPE_F32, ROW, (int64_t) order.size());
    auto index = g.tensor(sizeof(Index) == 8 ? GGML_TYPE_I64 : GGML_TYPE_I32, (int64_t) order.size());
    g.allocate(ggml_set_rows(g.context(), dst, src, index));
    Bytes expected(ggml_nbytes(dst), 0);
    set(dst, expected);
    set(src, x);
    set(index, std::vector<Index>(order.begin(), order.end()));
    const bool ran = g.compute();
    const Bytes q = quantized(type, x, ROW);
    const size_t n = ggml_row_size(type, ROW);
    for (size_t i = 0; i < order.size(); ++i) memcpy(&expected[order[i] * n], &q[i * n], n);
    Outcome o = compare_blocks(type, get<uint8_t>(dst), expected);
    o.ok &= ran;
    return o;
}

template <class Index> static Outcome set_some_rows(ggml_backend_t backend, ggml_type type) {
    return set_rows<Index>(backend, type, difficult_rows(INDICES), row_order(), ROWS);
}

static Outcome copy_to(ggml_backend_t backend, ggml_type type, const Floats & x) {
    Graph g(backend);
    const int64_t rows = (int64_t) x.size() / ROW;
    auto dst = g.tensor(type, ROW, rows), src = g.tensor(GGML_TYPE_F32, ROW, rows);
    g.allocate(ggml_cpy(g.context(), src, dst));
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
    const auto order = rows ? row_order() : each_row(ROWS);
    set(src, q);
    if (rows) set(index, order);
    const bool ran = g.compute();
    const Floats x = dequantized(type, q, (size_t) ROW * ROWS);
    std::vector<double> expected;
    for (int i : order) expected.insert(expected.end(), &x[i * ROW], &x[i * ROW] + ROW);
    const double e = nmse(dequantized(to, get<uint8_t>(out), expected.size()), expected),
                 limit = to == GGML_TYPE_F16 ? 1e-7 : 1e-12;
    return {ran && e <= limit, e, limit, ""};
}

std::vector<Case> row_cases(ggml_type type) {
    const std::string name = ggml_type_name(type);
    return {
        {"SET_ROWS i64 " + name, [=](ggml_backend_t b) { return set_some_rows<int64_t>(b, type); }},
        {"SET_ROWS i32 " + name, [=](ggml_backend_t b) { return set_some_rows<int32_t>(b, type); }},
        {"CPY f32 to " + name, [=](ggml_backend_t b) { return copy_to(b, type, difficult_rows(ROWS)); }},
        {"CPY " + name + " to f32", [=](ggml_backend_t b) { return read(b, type, false); }},
        {"CPY " + name + " to f16", [=](ggml_backend_t b) { return read(b, type, false, GGML_TYPE_F16); }},
        {"GET_ROWS " + name, [=](ggml_backend_t b) { return read(b, type, true); }},
    };
}

std::vector<Case> block_cases(ggml_type type) {
    const std::string name = ggml_type_name(type);
    std::vector<Case> cases;
    for (const Sample & s : samples()) {
        cases.push_back({"SET_ROWS i64 " + name + ": " + s.name, [=](ggml_backend_t b) {
                             const Floats x = s.values();
                             return set_rows<int64_t>(b, type, x, each_row(x.size() / ROW), (int) (x.size() / ROW));
                         }});
        if (s.limits)
            cases.push_back(
                {"CPY f32 to " + name + ": " + s.name, [=](ggml_backend_t b) { return copy_to(b, type, s.values()); }});
    }
    return cases;
}
