// An independent implementation of tq3_0, from the description of the format

#include "blocks.h"

#include <algorithm>

extern const double centroids[8];
const double centroids[8] = { -2.1519, -1.3439, -0.7560, -0.2451, 0.2451, 0.7560, 1.3439, 2.1519 };
static const double boundaries[7] = { -1.7479, -1.0500, -0.5005, 0.0, 0.5005, 1.0500, 1.7479 };

double sign(int i) {
    return ((uint32_t) (i*0x9E3779B9u) >> 31) ? -1.0 : 1.0;
}

// element of the orthonormal Walsh-Hadamard matrix
double hadamard(int i, int j) {
    int parity = 0;
    for (int b = i & j; b; b &= b - 1) {
        parity ^= 1;
    }
    return (parity ? -1.0 : 1.0)/sqrt(32.0);
}

std::vector<double> rotate(const float * x) {
    std::vector<double> res(QK);
    for (int j = 0; j < QK; ++j) {
        for (int k = 0; k < QK; ++k) {
            res[j] += hadamard(j, k)*sign(k)*x[k];
        }
    }
    return res;
}

double scale(int k) {
    return exp(0.12*k - 0.3);
}

int find_code(double v, double s) {
    int res = 0;
    for (double b : boundaries) {
        res += v > s*b;
    }
    return res;
}

// the encoder works with steps of 1/4096
bool near_boundary(double v, double s) {
    for (double b : boundaries) {
        if (fabs(v - s*b) < s/1024) {
            return true;
        }
    }
    return false;
}

int get_code(const block & b, int i) {
    const int bit = 3*(i % 8);
    const uint8_t * qs = b.qs + 3*(i/8);
    const uint32_t w = qs[0] | qs[1] << 8 | qs[2] << 16;
    return (w >> bit) & 7;
}

std::vector<float> decode(const std::vector<block> & b) {
    std::vector<float> res(b.size()*QK);
    ggml_get_type_traits(type_from_name("tq3_0"))->to_float(b.data(), res.data(), res.size());
    return res;
}

std::vector<block> encode_ref(const std::vector<float> & x) {
    std::vector<block> res(x.size()/QK);
    ggml_quantize_chunk(type_from_name("tq3_0"), x.data(), res.data(), 0, res.size(), QK, nullptr);
    return res;
}

std::vector<block> encode_set_rows(const std::vector<float> & x) {
    ggml_backend_ptr backend = backend_from_name("CPU");

    const int64_t n = x.size()/QK;

    ggml_init_params params = { 8*ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true };
    ggml_context_ptr ctx { ggml_init(params) };

    ggml_tensor * dst  = ggml_new_tensor_2d(ctx.get(), type_from_name("tq3_0"), QK, n);
    ggml_tensor * src  = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, QK, n);
    ggml_tensor * idxs = ggml_new_tensor_1d(ctx.get(), GGML_TYPE_I64, n);
    ggml_cgraph * gf   = ggml_new_graph(ctx.get());
    ggml_build_forward_expand(gf, ggml_set_rows(ctx.get(), dst, src, idxs));

    ggml_backend_buffer_ptr buf { ggml_backend_alloc_ctx_tensors(ctx.get(), backend.get()) };

    std::vector<int64_t> rows(n);
    for (int64_t i = 0; i < n; ++i) {
        rows[i] = n - 1 - i;
    }
    ggml_backend_tensor_set(src,  x.data(),    0, ggml_nbytes(src));
    ggml_backend_tensor_set(idxs, rows.data(), 0, ggml_nbytes(idxs));
    ggml_backend_graph_compute(backend.get(), gf);

    std::vector<block> res(n);
    ggml_backend_tensor_get(dst, res.data(), 0, ggml_nbytes(dst));
    std::reverse(res.begin(), res.end());
    return res;
}
