// codec: layout, decoder and encoder against an independent implementation

#include "blocks.h"

#include <algorithm>
#include <cstring>
#include <random>

static void test_codec() {
    const ggml_type type = type_from_name("tq3_0");

    check(ggml_type_size(type) == 14 && ggml_blck_size(type) == 32, "block size");
    check(ggml_is_quantized(type), "is quantized");
    check(ggml_row_size(type, 4096) == 1792, "row size");

    // decoder: random codes against the dense matrix
    std::mt19937 rng(1);
    std::vector<block> blocks(1000);
    for (auto & b : blocks) {
        b.d = ggml_fp32_to_fp16(std::uniform_real_distribution<float>(0.01f, 4.0f)(rng));
        for (auto & q : b.qs) {
            q = rng();
        }
    }
    const auto dec = decode(blocks);
    for (size_t i = 0; i < blocks.size(); ++i) {
        const double d = ggml_fp16_to_fp32(blocks[i].d);
        double err = 0.0;
        for (int j = 0; j < QK; ++j) {
            double y = 0.0;
            for (int k = 0; k < QK; ++k) {
                y += hadamard(j, k)*centroids[get_code(blocks[i], k)];
            }
            err = std::max(err, fabs(y*sign(j)*d - dec[i*QK + j]));
        }
        check(err < 4e-6*d, "decoded block %zu differs by %g", i, err);
    }

    // encoder: codes against the dense matrix, for one of the scales, except for values at a boundary
    const auto x   = random_normal(QK*4000, 2);
    const auto enc = encode_ref(x);
    for (size_t i = 0; i < enc.size(); ++i) {
        const auto   v   = rotate(x.data() + i*QK);
        const double rms = norm(x.data() + i*QK, QK)/sqrt(32.0);
        bool ok = false;
        for (int k = 0; k < N_SCALES; ++k) {
            bool same = true;
            for (int j = 0; j < QK; ++j) {
                same = same && (near_boundary(v[j], rms*scale(k)) || find_code(v[j], rms*scale(k)) == get_code(enc[i], j));
            }
            ok = ok || same;
        }
        check(ok, "wrong code in block %zu", i);
        const double d = ggml_fp16_to_fp32(enc[i].d);
        check(d > 0.5*rms && d < 1.7*rms, "scale %g of block %zu, rms %g", d, i, rms);
    }

    const auto cpu = encode_set_rows(x);
    for (size_t i = 0; i < enc.size(); ++i) {
        check(memcmp(&cpu[i], &enc[i], sizeof(block)) == 0, "block %zu of SET_ROWS differs from the reference", i);
    }
    check(ggml_validate_row_data(type, enc.data(), enc.size()*sizeof(block)), "validate");
}

static const test_case reg("codec", test_codec);
