// A graph of one op on the Metal emulator. Every tensor has a buffer of its own, so that an overrun cannot land in a
// neighbour.
#pragma once
#include "ggml-backend.h"
#include "ggml.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

typedef std::vector<uint8_t> Bytes;
typedef std::vector<float> Floats;

class Graph {
public:
    explicit Graph(ggml_backend_t backend);
    ~Graph();
    Graph(const Graph &) = delete;
    ggml_context * context() const { return ctx; }
    ggml_tensor * tensor(ggml_type type, int64_t n0, int64_t n1 = 1, int64_t n2 = 1, int64_t n3 = 1) {
        return ggml_new_tensor_4d(ctx, type, n0, n1, n2, n3);
    }
    void allocate(ggml_tensor * result);
    bool compute(); // false: the emulator has found an error
private:
    ggml_backend_t backend;
    ggml_context * ctx;
    ggml_cgraph * graph;
    std::vector<ggml_backend_buffer_t> buffers;
};

ggml_type type_by_name(const std::string & name); // GGML_TYPE_COUNT: this tree has no such type

Floats gaussian(size_t n, float deviation);
Bytes quantized(ggml_type type, const Floats & x, int64_t row);
Floats dequantized(ggml_type type, const Bytes & data, size_t n);
template <class T> void set(ggml_tensor * t, const std::vector<T> & v) {
    ggml_backend_tensor_set(t, v.data(), 0, v.size() * sizeof(T));
}
template <class T> std::vector<T> get(const ggml_tensor * t) {
    std::vector<T> v(ggml_nbytes(t) / sizeof(T));
    ggml_backend_tensor_get(t, v.data(), 0, v.size() * sizeof(T));
    return v;
}
