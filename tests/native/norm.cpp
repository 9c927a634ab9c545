// norm: a decoded block has the norm of its input

#include "blocks.h"

#include <algorithm>

// blocks with a known shape
static std::vector<float> special_blocks() {
    std::vector<float> x;
    for (float scale : { 1e-4f, 0.05f, 1.0f, 13.0f, 3000.0f }) {
        for (int i = 0; i < QK; ++i) { // one-hot
            for (int j = 0; j < QK; ++j) {
                x.push_back(i == j ? scale : 0.0f);
            }
        }
        for (float s : { 1.0f, -1.0f }) { // parallel to the signs, constant
            for (int j = 0; j < QK; ++j) {
                x.push_back(s*scale*(float) sign(j));
            }
            for (int j = 0; j < QK; ++j) {
                x.push_back(s*scale);
            }
        }
        const auto r = random_normal(QK*200, 3, scale);
        x.insert(x.end(), r.begin(), r.end());
    }
    return x;
}

static void test_norm() {
    const auto x = special_blocks();

    for (auto * encode : { encode_ref, encode_set_rows }) {
        const auto y = decode(encode(x));
        for (size_t i = 0; i < x.size()/QK; ++i) {
            const double nx = norm(x.data() + i*QK, QK);
            const double ny = norm(y.data() + i*QK, QK);
            // fp16 has 11 bits, and fewer where it is subnormal
            const double tol = std::max(nx*ldexp(1.0, -11), ldexp(1.0, -25)*sqrt(32.0)) + nx*1e-5;
            check(fabs(ny - nx) < tol, "%s: block %zu has norm %g instead of %g",
                    encode == encode_ref ? "reference" : "SET_ROWS", i, ny, nx);
        }
    }
}

static const test_case reg("norm", test_norm);
