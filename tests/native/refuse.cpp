// refuse: what cannot be a cache ends in an error with a reason, not in a signal

#include "models.h"

#include <cstring>

static void test_no_context(llama_model * model, const llama_context_params & cp, const char * what, const std::string & reason) {
    log_text.clear();
    const int code = in_child([&] {
        llama_context_ptr ctx { llama_init_from_model(model, cp) };
        check(!ctx, "%s: there is a context", what);
        check(log_has(reason), "%s: no reason in the log: %s", what, log_end().c_str());
    });
    check(code == 0, "%s: child ended with %d", what, code);
}

// any number can come from C or ctypes
static void test_numbers(llama_model * model) {
    const ggml_type f16 = GGML_TYPE_F16;

    for (int i : { -1, 4, 5, 24, 31, 36, 43, 46, 49, 61, 64, 65, 999, 1 << 20 }) {
        const ggml_type type = (ggml_type) i;
        const std::string reason = std::to_string(i);

        llama_context_params cp = ctx_params(type, f16);
        test_no_context(model, cp, ("K of type " + reason).c_str(), reason);

        cp = ctx_params(f16, type);
        test_no_context(model, cp, ("V of type " + reason).c_str(), reason);
    }
    // types that exist, but not for a cache
    for (const char * name : known_types({ "q8_tq3", "q8_K", "q6_K", "i32", "q2_0", "tq2_0" })) {
        test_no_context(model, ctx_params(type_from_name(name), f16), name, "KV cache");
        test_no_context(model, ctx_params(f16, type_from_name(name)), name, "KV cache");
    }
    // every name is a name of its own
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const char * name = ggml_type_name((ggml_type) i);
        check(!name || strcmp(name, "NONE") != 0, "type %d is called NONE", i);
    }
}

static void test_flash_attn(llama_model * model, const char * type) {
    llama_context_params cp = ctx_params(type, type);
    cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    test_no_context(model, cp, "quantized V without flash attention", "requires flash_attn");

    cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_AUTO;
    log_text.clear();
    llama_context_ptr ctx { llama_init_from_model(model, cp) };
    check(ctx && log_has("enabling flash_attn"), "%s: flash attention is not enabled", type);
    check(ctx && all_finite(decode_tokens(ctx.get(), 64, 0)), "%s: no logits", type);

    // K alone works without flash attention
    std::vector<float> logits[2];
    for (int fa = 0; fa < 2; ++fa) {
        cp = ctx_params(type, "f16");
        cp.flash_attn_type = fa ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
        llama_context_ptr ctx_k { llama_init_from_model(model, cp) };
        if (check(ctx_k != nullptr, "K of type %s, flash attention %d", type, fa)) {
            logits[fa] = decode_tokens(ctx_k.get(), 64, 0);
            check(all_finite(logits[fa]), "%s: no logits", type);
        }
    }
    const double err = nmse(logits[0], logits[1]);
    printf("  K = %s, NMSE of the logits without flash attention: %g\n", type, err);
    check(err < 1e-2, "%s: NMSE %g", type, err);
}

static void test_head_size(const char * type) {
    model_params mp;
    mp.n_embd      = 160;
    mp.n_embd_head = 80;
    mp.n_rot       = 80;
    llama_model_ptr model = make_model(mp);
    for (auto fa : { LLAMA_FLASH_ATTN_TYPE_AUTO, LLAMA_FLASH_ATTN_TYPE_ENABLED, LLAMA_FLASH_ATTN_TYPE_DISABLED }) {
        llama_context_params cp = ctx_params(type, "f16");
        cp.flash_attn_type = fa;
        test_no_context(model.get(), cp, "K with a head size of 80", "n_embd_head_k=80");

        if (fa != LLAMA_FLASH_ATTN_TYPE_DISABLED) {
            cp = ctx_params("f16", type);
            cp.flash_attn_type = fa;
            test_no_context(model.get(), cp, "V with a head size of 80", "n_embd_head_v=80");
        }
    }
    llama_context_ptr ctx { llama_init_from_model(model.get(), ctx_params("f16", "f16")) };
    check(ctx && all_finite(decode_tokens(ctx.get(), 16, 0)), "f16 with head size 80");
}

// its position bias keeps it off flash attention, and nothing else reads a quantized V
static void test_t5(const char * type) {
    model_params mp;
    mp.arch = "t5";
    llama_model_ptr model = make_model(mp);
    for (auto fa : { LLAMA_FLASH_ATTN_TYPE_AUTO, LLAMA_FLASH_ATTN_TYPE_ENABLED }) {
        llama_context_params cp = ctx_params("f16", type);
        cp.flash_attn_type = fa;
        test_no_context(model.get(), cp, "V of T5", "T5");
    }
    llama_context_ptr ctx { llama_init_from_model(model.get(), ctx_params(type, "f16")) };
    check(ctx != nullptr, "K of T5");
}

static void test_refuse() {
    llama_model_ptr model = make_model({});

    test_numbers(model.get());
    for (const char * type : known_types({ "q8_0", "tq3_0" })) {
        test_flash_attn(model.get(), type);
        test_head_size(type);
        test_t5(type);
    }
}

static const test_case reg("refuse", test_refuse);
