// fast: query type, dot product and attention of the CPU backend in the rotated domain

#include "attention.h"
#include "blocks.h"

#include <algorithm>

// one large value per block: quantized as it is, it takes the precision of all others
static std::vector<float> outlier_queries(int64_t n, int64_t n_rows) {
    auto x = random_normal(n*n_rows, 21);
    for (int64_t i = 0; i < n*n_rows; i += QK) {
        x[i + (i/QK) % QK] = (i/QK) % 2 ? 60.0f : -60.0f;
    }
    return x;
}

static void test_mul_mat(ggml_backend_t backend, ggml_type type, int64_t n) {
    const int64_t n_k = 96;
    const int64_t n_q = 3;

    const auto q = outlier_queries(n, n_q);
    const auto k = encode_ref(random_normal(n*n_k, 22));
    const auto y = decode(k);

    ggml_init_params params = { 8*ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true };
    ggml_context_ptr ctx { ggml_init(params) };

    ggml_tensor * tk  = ggml_new_tensor_2d(ctx.get(), type, n, n_k);
    ggml_tensor * tq  = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, n, n_q);
    ggml_tensor * dst = ggml_mul_mat(ctx.get(), tk, tq);
    ggml_cgraph * gf  = ggml_new_graph(ctx.get());
    ggml_build_forward_expand(gf, dst);

    ggml_backend_buffer_ptr buf { ggml_backend_alloc_ctx_tensors(ctx.get(), backend) };
    ggml_backend_tensor_set(tk, k.data(), 0, ggml_nbytes(tk));
    ggml_backend_tensor_set(tq, q.data(), 0, ggml_nbytes(tq));
    ggml_backend_graph_compute(backend, gf);

    std::vector<float> res(n_k*n_q);
    ggml_backend_tensor_get(dst, res.data(), 0, ggml_nbytes(dst));

    // error in units of |q| |k|
    double err = 0.0;
    for (int64_t i = 0; i < n_q; ++i) {
        for (int64_t j = 0; j < n_k; ++j) {
            double sum = 0.0;
            for (int64_t l = 0; l < n; ++l) {
                sum += (double) q[i*n + l]*y[j*n + l];
            }
            const double e = (res[i*n_k + j] - sum)/(norm(&q[i*n], n)*norm(&y[j*n], n));
            err += e*e/(n_k*n_q);
        }
    }
    printf("  MUL_MAT, rows of %3d: rms error of a dot product %.2e of |q| |k|\n", (int) n, sqrt(err));
    check(sqrt(err)*sqrt(n/32.0) < 1.2e-3, "MUL_MAT, rows of %d: error %g", (int) n, sqrt(err));
}

// a cell that holds NaN and is not masked has to be seen in the result, wherever the others are
static void test_nan_cell(ggml_backend_t backend, ggml_type type_k, ggml_type type_v, int64_t n_kv, int64_t n_visible) {
    const int64_t hs = 64;

    ggml_init_params params = { 16*ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true };
    ggml_context_ptr ctx_ptr { ggml_init(params) };
    ggml_context * ctx = ctx_ptr.get();

    ggml_tensor * k    = ggml_new_tensor_3d(ctx, type_k,        hs, n_kv, 1);
    ggml_tensor * v    = ggml_new_tensor_3d(ctx, type_v,        hs, n_kv, 1);
    ggml_tensor * q    = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, hs, 1,    1);
    ggml_tensor * mask = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, n_kv, 1);
    ggml_tensor * out  = ggml_flash_attn_ext(ctx, q, k, v, mask, 1.0f/sqrtf(hs), 0.0f, 0.0f);

    ggml_cgraph * gf = ggml_new_graph(ctx);
    ggml_build_forward_expand(gf, out);

    ggml_backend_buffer_ptr buf { ggml_backend_alloc_ctx_tensors(ctx, backend) };

    for (ggml_tensor * t : { k, v }) {
        auto x = random_normal(hs*n_kv, 31);
        if (t == k) {
            x[hs*(n_visible - 1)] = NAN;
        }
        std::vector<uint8_t> data(ggml_nbytes(t));
        ggml_quantize_chunk(t->type, x.data(), data.data(), 0, n_kv, hs, nullptr);
        ggml_backend_tensor_set(t, data.data(), 0, data.size());
    }
    std::vector<ggml_fp16_t> dm(n_kv, ggml_fp32_to_fp16(-INFINITY));
    std::fill(dm.begin(), dm.begin() + n_visible, ggml_fp32_to_fp16(0.0f));

    ggml_backend_tensor_set(q,    random_normal(hs, 32).data(), 0, ggml_nbytes(q));
    ggml_backend_tensor_set(mask, dm.data(),                    0, ggml_nbytes(mask));

    std::vector<float> res(hs);
    if (check(ggml_backend_graph_compute(backend, gf) == GGML_STATUS_SUCCESS, "compute")) {
        ggml_backend_tensor_get(out, res.data(), 0, ggml_nbytes(out));
        check(std::all_of(res.begin(), res.end(), [](float x) { return std::isnan(x); }),
                "%s/%s: a NaN in cell %d of %d is lost", ggml_type_name(type_k), ggml_type_name(type_v), (int) n_visible, (int) n_kv);
    }
}

static void test_fast() {
    const ggml_type type = type_from_name("tq3_0");

    ggml_backend_ptr backend = backend_from_name("CPU");

    // the query is rotated and quantized to a type of its own
    {
        const ggml_type type_q = type_from_name("q8_tq3");

        ggml_init_params params = { 8*ggml_tensor_overhead(), nullptr, true };
        ggml_context_ptr ctx { ggml_init(params) };
        ggml_tensor * x = ggml_new_tensor_2d(ctx.get(), type,   QK, 1);
        ggml_tensor * q = ggml_new_tensor_2d(ctx.get(), type_q, QK, 1);
        check(ggml_backend_supports_op(backend.get(), ggml_mul_mat(ctx.get(), x, q)), "the query is not of type q8_tq3");
        check(ggml_get_type_traits(type_q)->to_float == nullptr, "q8_tq3 can be decoded");
    }

    for (int64_t n : { 32, 64, 96, 128, 576 }) {
        test_mul_mat(backend.get(), type, n);
    }

    for (ggml_type type_k : { type, GGML_TYPE_F16 }) {
        for (int64_t n_visible : { 1, 3, 65, 129 }) {
            test_nan_cell(backend.get(), type_k, type, 256, n_visible);
        }
    }

    // 64 queries and more: float on both sides, whatever the other type is
    for (int64_t n_q : { 64, 77 }) {
        test_pair(backend.get(), type, type, { 64, 2, 2, 400, n_q }, 1e-8);
        for (const char * other : { "f16", "q8_0", "q4_0" }) {
            test_pair(backend.get(), type, type_from_name(other), { 64, 2, 2, 400, n_q }, 1e-8);
            test_pair(backend.get(), type_from_name(other), type, { 64, 2, 2, 400, n_q }, 1e-8);
        }
    }
    // V is summed up with exact centroids (f16 K takes a query in F16)
    test_pair(backend.get(), type_from_name("f16"), type, { 128, 2, 2, 500, 1 }, 1e-5);
    test_pair(backend.get(), type_from_name("f16"), type, { 128, 2, 2, 500, 9 }, 1e-5);
}

static const test_case reg("fast", test_fast);
