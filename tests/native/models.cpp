#include "models.h"

#include "gguf.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

static void set_tensor_data(ggml_tensor * t, void * userdata) {
    GGML_UNUSED(userdata);

    std::hash<std::string> hasher;
    const std::string name = t->name;
    auto is = [&](const char * part) { return name.find(part) != std::string::npos; };

    // the logits come from the attention, which looks at a few tokens
    const float stdev = is("attn_q") || is("attn_k") ? 0.12f : is("ffn_down") || is("bias") ? 0.01f : 0.1f;

    auto data = random_normal(ggml_nelements(t), (uint32_t) hasher(name), stdev);
    if (is("norm.weight") || is("scale")) {
        std::fill(data.begin(), data.end(), 1.0f);
    }
    if (is("ssm_a")) { // a decay
        for (auto & x : data) {
            x = -fabsf(x);
        }
    }
    if (t->type == GGML_TYPE_F16) {
        std::vector<ggml_fp16_t> half(data.size());
        ggml_fp32_to_fp16_row(data.data(), half.data(), data.size());
        ggml_backend_tensor_set(t, half.data(), 0, ggml_nbytes(t));
        return;
    }
    GGML_ASSERT(t->type == GGML_TYPE_F32);
    ggml_backend_tensor_set(t, data.data(), 0, ggml_nbytes(t));
}

namespace {
struct writer {
    gguf_context * gguf;
    std::string    arch;

    std::string key(const char * k) const { return arch + "." + k; }

    void u32(const char * k, uint32_t v) const { gguf_set_val_u32 (gguf, key(k).c_str(), v); }
    void f32(const char * k, float    v) const { gguf_set_val_f32 (gguf, key(k).c_str(), v); }
    void yes(const char * k)             const { gguf_set_val_bool(gguf, key(k).c_str(), true); }
    void arr(const char * k, const std::vector<uint32_t> & v) const {
        gguf_set_arr_data(gguf, key(k).c_str(), GGUF_TYPE_UINT32, v.data(), v.size());
    }
};
}

static void set_experts(const writer & w, uint32_t n_layer) {
    w.u32("leading_dense_block_count",         n_layer);
    w.u32("expert_count",                      2);
    w.u32("expert_used_count",                 1);
    w.u32("expert_shared_count",               1);
    w.u32("expert_feed_forward_length",        64);
    w.u32("expert_shared_feed_forward_length", 64);
    w.u32("expert_gating_func",                2);
    w.f32("expert_weights_scale",              1.0f);
}

static void set_mla(const writer & w) {
    w.u32("attention.head_count_kv",    1);
    w.u32("attention.key_length",       576);
    w.u32("attention.value_length",     512);
    w.u32("attention.key_length_mla",   192);
    w.u32("attention.value_length_mla", 128);
    w.u32("attention.kv_lora_rank",     512);
    w.u32("attention.q_lora_rank",      64);
    w.u32("rope.dimension_count",       64);
}

static void set_arch(const writer & w, const model_params & p) {
    const std::string & arch = w.arch;

    if (arch == "gemma3") { // sliding window
        w.u32("attention.sliding_window", 64);
    }
    if (arch == "deepseek2" || arch == "deepseek32") { // MLA: the cache has no V
        set_mla(w);
        set_experts(w, p.n_layer);
    }
    if (arch == "deepseek32" || arch == "minimax-m3") { // a second cache for the indexer
        w.u32("attention.indexer.head_count",   arch == "minimax-m3" ? p.n_head : 64);
        w.u32("attention.indexer.key_length",   128);
        w.u32("attention.indexer.top_k",        131072);
        w.u32("attention.indexer.block_size",   4);
        w.u32("attention.indexer.local_blocks", 1);
        set_experts(w, arch == "minimax-m3" ? 1 : p.n_layer);
    }
    if (arch == "lfm2") { // every second layer is a convolution
        std::vector<uint32_t> n_head_kv(p.n_layer);
        for (uint32_t il = 0; il < p.n_layer; ++il) {
            n_head_kv[il] = il % 2 ? 0 : p.n_head;
        }
        w.arr("attention.head_count_kv", n_head_kv);
        w.u32("shortconv.l_cache",       3);
    }
    if (arch == "t5") {
        w.u32("attention.relative_buckets_count", 8);
        w.u32("decoder_start_token_id",           0);
    }
}

static void set_tokenizer(gguf_context * gguf, uint32_t n_vocab) {
    std::vector<std::string>  tokens(n_vocab);
    std::vector<const char *> tokens_cstr(n_vocab);
    std::vector<float>        scores(n_vocab, 0.0f);
    for (uint32_t i = 0; i < n_vocab; ++i) {
        tokens[i] = "tok_" + std::to_string(i);
        tokens_cstr[i] = tokens[i].c_str();
    }
    gguf_set_val_str (gguf, "tokenizer.ggml.model", "test");
    gguf_set_arr_str (gguf, "tokenizer.ggml.tokens", tokens_cstr.data(), n_vocab);
    gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), n_vocab);
}

llama_model_ptr make_model(const model_params & p) {
    gguf_context_ptr gguf { gguf_init_empty() };
    const writer w { gguf.get(), p.arch };

    const uint32_t n_vocab = 128;

    gguf_set_val_str(gguf.get(), "general.architecture", p.arch);
    w.u32("vocab_size",              n_vocab);
    w.u32("context_length",          1024);
    w.u32("embedding_length",        p.n_embd);
    w.u32("block_count",             p.n_layer);
    w.u32("feed_forward_length",     192);
    w.u32("attention.head_count",    p.n_head);
    w.u32("attention.head_count_kv", p.n_head);
    w.u32("attention.key_length",    p.n_embd_head);
    w.u32("attention.value_length",  p.n_embd_head);
    w.u32("rope.dimension_count",    p.n_rot);
    w.f32("attention.layer_norm_rms_epsilon", 1e-5f);
    w.f32("attention.layer_norm_epsilon",     1e-5f);
    set_arch(w, p);
    set_tokenizer(gguf.get(), n_vocab);

    ggml_backend_dev_t devs[] = { p.dev, nullptr };

    llama_model_params params = llama_model_default_params();
    params.devices           = devs;
    params.n_gpu_layers      = 99;
    params.progress_callback = [](float, void *) { return true; };

    llama_model_ptr model { llama_model_init_from_user(gguf.get(), set_tensor_data, nullptr, params) };
    if (!model) {
        fprintf(stderr, "failed to create a model of architecture %s: %s\n", p.arch, log_text.c_str());
        exit(1);
    }
    return model;
}

llama_context_params ctx_params(ggml_type type_k, ggml_type type_v) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx     = 512;
    params.n_batch   = 256;
    params.n_ubatch  = 256;
    params.n_threads = params.n_threads_batch = 2;
    params.type_k    = type_k;
    params.type_v    = type_v;
    return params;
}

llama_context_params ctx_params(const char * type_k, const char * type_v) {
    return ctx_params(type_from_name(type_k), type_from_name(type_v));
}

std::vector<float> decode_tokens(llama_context * ctx, int n, llama_pos pos, llama_seq_id seq, uint32_t seed) {
    std::mt19937 rng(seed);

    llama_batch batch = llama_batch_init(n, 0, 1);
    batch.n_tokens = n;
    for (int i = 0; i < n; ++i) {
        batch.token   [i]    = rng() % 128;
        batch.pos     [i]    = pos + i;
        batch.n_seq_id[i]    = 1;
        batch.seq_id  [i][0] = seq;
        batch.logits  [i]    = i == n - 1;
    }
    const int ret = llama_decode(ctx, batch);
    llama_batch_free(batch);

    if (ret != 0) {
        return {};
    }
    const float * logits = llama_get_logits_ith(ctx, -1);
    return std::vector<float>(logits, logits + 128);
}

bool seq_empty(llama_context * ctx, llama_seq_id seq) {
    return llama_memory_seq_pos_max(llama_get_memory(ctx), seq) == -1;
}
