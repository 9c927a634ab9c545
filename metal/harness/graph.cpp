#include "graph.h"

#include "ggml-alloc.h"

#include <algorithm>

Graph::Graph(ggml_backend_t b) : backend(b) {
    ctx = ggml_init({1 << 20, nullptr, true});
    graph = ggml_new_graph(ctx);
}

Graph::~Graph() {
    for (auto b : buffers) ggml_backend_buffer_free(b);
    ggml_free(ctx);
}

void Graph::allocate(ggml_tensor * result) {
    ggml_build_forward_expand(graph, result);
    const auto type = ggml_backend_get_default_buffer_type(backend);
    for (auto t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (t->view_src) continue;
        buffers.push_back(ggml_backend_alloc_buffer(backend, ggml_backend_buft_get_alloc_size(type, t)));
        ggml_backend_tensor_alloc(buffers.back(), t, ggml_backend_buffer_get_base(buffers.back()));
    }
    for (auto t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (t->view_src) ggml_backend_view_init(t);
    }
}

bool Graph::compute() { return ggml_backend_graph_compute(backend, graph) == GGML_STATUS_SUCCESS; }

ggml_type type_by_name(const std::string & name) {
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const char * known = ggml_type_name((ggml_type) i);
        if (known && name == known && ggml_blck_size((ggml_type) i) > 0) return (ggml_type) i;
    }
    return GGML_TYPE_COUNT;
}

Floats gaussian(size_t n, float deviation) {
    static std::mt19937 random(42);
    std::normal_distribution<float> d(0, deviation);
    Floats v(n);
    for (auto & x : v) x = d(random);
    return v;
}

Bytes quantized(ggml_type type, const Floats & x, int64_t row) {
    Bytes q(ggml_row_size(type, row) * (x.size() / row));
    ggml_quantize_chunk(type, x.data(), q.data(), 0, (int64_t) x.size() / row, row, nullptr);
    return q;
}

Floats dequantized(ggml_type type, const Bytes & data, size_t n) {
    Floats x(n);
    if (type == GGML_TYPE_F32) {
        std::copy_n((const float *) data.data(), n, x.data());
    } else {
        ggml_get_type_traits(type)->to_float(data.data(), x.data(), (int64_t) n);
    }
    return x;
}
