// SET_ROWS into a cache of two types, then FLASH_ATTN_EXT, against a reference
#pragma once

#include "harness.h"

struct attn_params {
    int64_t hs;   // head size
    int64_t nh;   // KV heads
    int64_t gqa;  // query heads per KV head
    int64_t n_kv;
    int64_t n_q;
    int64_t hv = 0; // head size of V, if it is another one
};

std::vector<float> quant_dequant(ggml_type type, const std::vector<float> & x, int64_t n_per_row);

// offset: added to a few channels of all keys, as some models have it
void test_pair(ggml_backend_t backend, ggml_type type_k, ggml_type type_v, const attn_params & p, double max_err = 1e-3, float offset = 0.0f);
