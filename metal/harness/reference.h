// Attention in float64, from values that ggml's C code dequantized.
#pragma once
#include "graph.h"

struct Attention {
    int dk, dv, heads, kv_heads, queries, kv;
    bool mask = false, sinks = false;
    float max_bias = 0, softcap = 0;
    float scale() const;
    std::string name(const std::string & k_type, const std::string & v_type) const;
};

struct AttentionData {
    Floats q, k, v, mask, sinks;
}; // mask: queries x kv, empty if there is none

std::vector<double> attention(const Attention & a, const AttentionData & x);
double nmse(const Floats & got, const std::vector<double> & expected);
