// Small random models, made in memory
#pragma once

#include "harness.h"

#include "llama.h"
#include "llama-cpp.h"

struct model_params {
    const char * arch    = "llama";
    uint32_t n_layer     = 2;
    uint32_t n_embd      = 128;
    uint32_t n_head      = 2;
    uint32_t n_embd_head = 64;
    uint32_t n_rot       = 64;

    ggml_backend_dev_t dev = nullptr; // all layers on this device
};

llama_model_ptr make_model(const model_params & p);

llama_context_params ctx_params(ggml_type type_k, ggml_type type_v);
llama_context_params ctx_params(const char * type_k, const char * type_v);

// logits of the last of n random tokens, empty when the batch cannot be decoded
std::vector<float> decode_tokens(llama_context * ctx, int n, llama_pos pos, llama_seq_id seq = 0, uint32_t seed = 7);

bool seq_empty(llama_context * ctx, llama_seq_id seq);
