// state-rotation: a state says whether its rows are rotated

#include "models.h"

#include <cstring>

#ifndef _WIN32
static void disable_rotation(bool disable) {
    if (disable) {
        setenv("LLAMA_ATTN_ROT_DISABLE", "1", 1);
    } else {
        unsetenv("LLAMA_ATTN_ROT_DISABLE");
    }
}

static llama_context_ptr make_ctx(llama_model * model, const char * k, const char * v, bool disable) {
    disable_rotation(disable);
    llama_context_params cp = ctx_params(k, v);
    cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    llama_context_ptr res { llama_init_from_model(model, cp) };
    disable_rotation(false);
    return res;
}

static bool has_type(const std::vector<uint8_t> & state, int32_t type) {
    for (size_t i = 0; i + sizeof(type) <= state.size() && i < 4096; ++i) {
        if (!memcmp(state.data() + i, &type, sizeof(type))) {
            return true;
        }
    }
    return false;
}

static void test_pair(llama_model * model, const char * k, const char * v, bool differs) {
    for (bool saved_off : { false, true }) {
        llama_context_ptr src = make_ctx(model, k, v, saved_off);
        decode_tokens(src.get(), 8, 0);
        std::vector<uint8_t> state(llama_state_seq_get_size(src.get(), 0));
        llama_state_seq_get_data(src.get(), state.data(), state.size(), 0);

        // the default has the plain number of the type, as states always had
        const bool plain = has_type(state, type_from_name(k));
        check(saved_off || plain, "%s/%s: the number of the type is not in the state", k, v);

        for (bool restored_off : { false, true }) {
            llama_context_ptr dst = make_ctx(model, k, v, restored_off);
            log_text.clear();
            const bool ok   = llama_state_seq_set_data(dst.get(), state.data(), state.size(), 0) == state.size();
            const bool same = !differs || saved_off == restored_off;
            check(ok == same, "%s/%s: rotation %s -> %s: restored = %d", k, v, saved_off ? "off" : "on", restored_off ? "off" : "on", ok);
            check(ok || log_has("rotated"), "%s/%s: no reason: %s", k, v, log_end().c_str());
        }
    }
}
#endif

static void test_state_rotation() {
#ifdef _WIN32
    defer("needs setenv()");
#else
    llama_model_ptr model = make_model({});
    test_pair(model.get(), "f16",  "f16",  false);
    test_pair(model.get(), "q8_0", "q8_0", true);
    test_pair(model.get(), "q4_0", "f16",  true);
    test_pair(model.get(), "f16",  "q4_0", true);
    if (find_type("tq3_0") != GGML_TYPE_COUNT) {
        test_pair(model.get(), "q8_0",  "tq3_0", true);
        test_pair(model.get(), "tq3_0", "tq3_0", false);
    }
#endif
}

static const test_case reg("state-rotation", test_state_rotation);
