#include "attention.h"

#include <algorithm>

std::vector<float> quant_dequant(ggml_type type, const std::vector<float> & x, int64_t n_per_row) {
    std::vector<float> res(x.size());
    if (type == GGML_TYPE_F32) {
        return x;
    }
    std::vector<uint8_t> q(ggml_row_size(type, n_per_row)*(x.size()/n_per_row));
    ggml_quantize_chunk(type, x.data(), q.data(), 0, x.size()/n_per_row, n_per_row, nullptr);
    ggml_get_type_traits(type)->to_float(q.data(), res.data(), x.size());
    return res;
}

static const int64_t N_CELLS = 512;

// the cell of a position: scattered over the cache
static int64_t cell(int64_t pos) {
    return (pos*37 + 11) % N_CELLS;
}

static std::vector<float> attn_ref(const attn_params & p, const std::vector<float> & q, const std::vector<float> & k, const std::vector<float> & v) {
    const int64_t hv = p.hv ? p.hv : p.hs;

    std::vector<float> res(hv*p.nh*p.gqa*p.n_q);
    for (int64_t iq = 0; iq < p.n_q; ++iq) {
        for (int64_t h = 0; h < p.nh*p.gqa; ++h) {
            const int64_t n = p.n_kv - p.n_q + iq + 1; // causal
            std::vector<double> s(n);
            double max = -INFINITY;
            for (int64_t i = 0; i < n; ++i) {
                double dot = 0.0;
                for (int64_t j = 0; j < p.hs; ++j) {
                    dot += (double) q[(iq + h*p.n_q)*p.hs + j]*k[(i*p.nh + h/p.gqa)*p.hs + j];
                }
                s[i] = dot/sqrt((double) p.hs);
                max = std::max(max, s[i]);
            }
            double sum = 0.0;
            for (auto & x : s) {
                x = exp(x - max);
                sum += x;
            }
            for (int64_t j = 0; j < hv; ++j) {
                double y = 0.0;
                for (int64_t i = 0; i < n; ++i) {
                    y += s[i]/sum*v[(i*p.nh + h/p.gqa)*hv + j];
                }
                res[(iq*p.nh*p.gqa + h)*hv + j] = y;
            }
        }
    }
    return res;
}

void test_pair(ggml_backend_t backend, ggml_type type_k, ggml_type type_v, const attn_params & p, double max_err, float offset) {
    const std::string name = std::string(ggml_type_name(type_k)) + "/" + ggml_type_name(type_v);

    ggml_init_params params = { 32*ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true };
    ggml_context_ptr ctx_ptr { ggml_init(params) };
    ggml_context * ctx = ctx_ptr.get();

    const int64_t hv       = p.hv ? p.hv : p.hs;
    const int64_t n_embd   = p.hs*p.nh;
    const int64_t n_embd_v = hv*p.nh;

    // K, V -> cache by SET_ROWS, then views of the cache as in llama_kv_cache
    ggml_tensor * ck   = ggml_new_tensor_2d(ctx, type_k,        n_embd, N_CELLS);
    ggml_tensor * cv   = ggml_new_tensor_2d(ctx, type_v,        n_embd_v, N_CELLS);
    ggml_tensor * k    = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n_embd, p.n_kv);
    ggml_tensor * v    = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n_embd_v, p.n_kv);
    ggml_tensor * q    = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, p.hs, p.n_q, p.nh*p.gqa);
    ggml_tensor * idxs = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, p.n_kv);
    ggml_tensor * mask = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, N_CELLS, p.n_q);

    ggml_tensor * sk = ggml_set_rows(ctx, ck, k, idxs);
    ggml_tensor * sv = ggml_set_rows(ctx, cv, v, idxs);

    auto view = [&](ggml_tensor * t, int64_t n) {
        return ggml_permute(ctx, ggml_view_3d(ctx, t, n, p.nh, N_CELLS,
                ggml_row_size(t->type, n), ggml_row_size(t->type, n*p.nh), 0), 0, 2, 1, 3);
    };
    ggml_tensor * out = ggml_flash_attn_ext(ctx, q, view(sk, p.hs), view(sv, hv), mask, 1.0f/sqrtf(p.hs), 0.0f, 0.0f);
    ggml_prec_set_acc(out, GGML_PREC_F32);

    bool supported = true;
    for (ggml_tensor * op : { sk, sv, out }) {
        supported = check(ggml_backend_supports_op(backend, op), "%s: %s is not supported (head size %d)",
                name.c_str(), ggml_op_name(op->op), (int) p.hs) && supported;
    }
    if (!supported) {
        return;
    }

    ggml_cgraph * gf = ggml_new_graph(ctx);
    ggml_build_forward_expand(gf, out);

    ggml_backend_buffer_ptr buf { ggml_backend_alloc_ctx_tensors(ctx, backend) };
    ggml_backend_buffer_clear(buf.get(), 0);

    auto dk = random_normal(ggml_nelements(k), 21);
    for (size_t i = 0; i < dk.size(); ++i) {
        const int64_t channel = i % p.hs;
        dk[i] += channel == 5 || channel == 38 || channel == p.hs - 1 ? offset : 0.0f;
    }
    const auto dv = random_normal(ggml_nelements(v), 22);
    const auto dq = random_normal(ggml_nelements(q), 23, 2.0f);
    std::vector<int64_t>     di(p.n_kv);
    std::vector<ggml_fp16_t> dm(ggml_nelements(mask), ggml_fp32_to_fp16(-INFINITY));
    for (int64_t i = 0; i < p.n_kv; ++i) {
        di[i] = cell(i);
        for (int64_t iq = 0; iq < p.n_q; ++iq) {
            if (i <= p.n_kv - p.n_q + iq) {
                dm[iq*N_CELLS + cell(i)] = ggml_fp32_to_fp16(0.0f);
            }
        }
    }
    ggml_backend_tensor_set(k,    dk.data(), 0, ggml_nbytes(k));
    ggml_backend_tensor_set(v,    dv.data(), 0, ggml_nbytes(v));
    ggml_backend_tensor_set(q,    dq.data(), 0, ggml_nbytes(q));
    ggml_backend_tensor_set(idxs, di.data(), 0, ggml_nbytes(idxs));
    ggml_backend_tensor_set(mask, dm.data(), 0, ggml_nbytes(mask));

    if (!check(ggml_backend_graph_compute(backend, gf) == GGML_STATUS_SUCCESS, "%s: compute", name.c_str())) {
        return;
    }

    std::vector<float> res(ggml_nelements(out));
    ggml_backend_tensor_get(out, res.data(), 0, ggml_nbytes(out));

    const auto exact = attn_ref(p, dq, dk, dv);
    const auto ref   = attn_ref(p, dq, quant_dequant(type_k, dk, n_embd), quant_dequant(type_v, dv, n_embd_v));

    const double err = nmse(res, ref);
    printf("  %5s/%-5s hs = %3d/%3d, heads = %dx%d, n_kv = %3d, n_q = %2d: NMSE %.2e (of the types themselves: %.2e)\n",
            ggml_type_name(type_k), ggml_type_name(type_v), (int) p.hs, (int) hv, (int) p.nh, (int) p.gqa, (int) p.n_kv, (int) p.n_q,
            err, nmse(ref, exact));
    check(err < max_err, "%s: NMSE %g", name.c_str(), err);
}
