// shift: K-shift of a quantized cache

#include "models.h"

#include <cstring>

// logits of a token after the first 64 of 128 were dropped, `times` times; NaN where a shift is not possible
static std::vector<float> shifted(llama_model * model, llama_context_params cp, llama_seq_id seq, int times) {
    llama_context_ptr ctx { llama_init_from_model(model, cp) };
    if (!check(ctx != nullptr, "K = %s: no context", ggml_type_name(cp.type_k))) {
        return {};
    }
    llama_memory_t mem = llama_get_memory(ctx.get());
    check(llama_memory_can_shift(mem), "K = %s: cannot shift", ggml_type_name(cp.type_k));

    for (uint32_t s = 0; s < cp.n_seq_max; ++s) {
        decode_tokens(ctx.get(), 128, 0, s, 7 + s);
    }
    for (int i = 0; i < times; ++i) {
        llama_memory_seq_rm (mem, seq, 0, 64/times);
        llama_memory_seq_add(mem, seq, 64/times, -1, -64/times);
        decode_tokens(ctx.get(), 1, 128 - 64*(i + 1)/times, seq, 100 + i); // applies the shift
        llama_memory_seq_rm(mem, seq, 128 - 64*(i + 1)/times, -1);
    }
    return decode_tokens(ctx.get(), 1, 64, seq);
}

static void test_shape(const char * name, const model_params & mp, uint32_t n_seq, int times) {
    llama_model_ptr model = make_model(mp);

    std::vector<float> ref;
    for (const char * type : known_types({ "f16", "q8_0", "q4_0", "tq3_0" })) {
        llama_context_params cp = ctx_params(type, "f16");
        cp.n_seq_max  = n_seq;
        cp.kv_unified = n_seq == 1;
        cp.swa_full   = true; // the shift needs the cells of all positions

        const auto logits = shifted(model.get(), cp, n_seq - 1, times);
        if (ref.empty()) {
            ref = logits;
        }
        const double err = all_finite(logits) ? nmse(logits, ref) : INFINITY;
        const double max = !strcmp(type, "tq3_0") ? 0.03 : !strcmp(type, "q4_0") ? 0.02 : 1e-4;
        printf("  %s, K = %-5s NMSE of the logits after the shift against f16: %.6f\n", name, type, err);
        check(err < max, "%s: K = %s: NMSE %g after the shift", name, type, err);
    }
}

// the graph-side rotation turned off: there is no matrix to undo it with
static void test_no_rotation() {
#ifndef _WIN32
    setenv("LLAMA_ATTN_ROT_DISABLE", "1", 1);
    model_params mp;
    mp.arch = "stablelm";
    test_shape("rotation off", mp, 1, 1);
    unsetenv("LLAMA_ATTN_ROT_DISABLE");
#endif
}

// MLA: the rotated part of a key is behind the other one
static void test_mla() {
    model_params mp;
    mp.arch = "deepseek2";
    llama_model_ptr model = make_model(mp);
    for (const char * type : known_types({ "f16", "q8_0", "q4_0", "tq3_0" })) {
        llama_context_ptr ctx { llama_init_from_model(model.get(), ctx_params(type, type)) };
        const bool can_shift = ctx && llama_memory_can_shift(llama_get_memory(ctx.get()));
        check(ctx && can_shift == !ggml_is_quantized(type_from_name(type)), "MLA, %s: can shift = %d", type, can_shift);
    }
}

static void test_shift() {
    for (uint32_t n_rot : { 64, 32, 16 }) {
        model_params mp;
        mp.arch  = "stablelm";
        mp.n_rot = n_rot;
        test_shape(("n_rot = " + std::to_string(n_rot)).c_str(), mp, 1, 1);
        test_shape(("n_rot = " + std::to_string(n_rot) + ", twice").c_str(), mp, 1, 2);
        test_shape(("n_rot = " + std::to_string(n_rot) + ", 3 streams").c_str(), mp, 3, 1);
    }

    model_params mp;
    mp.arch    = "gemma3"; // both kinds of layers
    mp.n_layer = 7;
    test_shape("sliding window", mp, 1, 1);

    test_no_rotation();
    test_mla();
}

static const test_case reg("shift", test_shift);
