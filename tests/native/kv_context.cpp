// kv-context: a cache that creates more tensors than its context was sized for

#include "models.h"

#ifndef _WIN32
#include <dlfcn.h>
#endif

static int n_extra = 0; // tensors to be created besides
static int n_calls = 0;

#ifndef _WIN32
// comes before the function of ggml where symbols can be replaced (ELF)
extern "C" ggml_tensor * ggml_new_tensor_3d(ggml_context * ctx, ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2) {
    using function = ggml_tensor * (*)(ggml_context *, ggml_type, int64_t, int64_t, int64_t);
    static const function next = (function) dlsym(RTLD_NEXT, "ggml_new_tensor_3d");

    n_calls++;
    for (; n_extra > 0; --n_extra) {
        ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 64, 1);
    }
    return next(ctx, type, ne0, ne1, ne2);
}
#endif

static void test_too_small(const model_params & mp, const char * type, uint32_t n_seq) {
    llama_model_ptr model = make_model(mp);

    llama_context_params cp = ctx_params(type, type);
    cp.n_seq_max  = n_seq;
    cp.kv_unified = false;

    n_calls = 0;
    llama_context_ptr ctx { llama_init_from_model(model.get(), cp) };
    if (n_calls == 0) {
        defer("the functions of ggml cannot be replaced here");
    }
    check(ctx != nullptr, "%s: no context", mp.arch);

    const int code = in_child([&] {
        n_extra = 1;
        log_text.clear();
        llama_context_ptr none { llama_init_from_model(model.get(), cp) };
        check(!none, "%s: there is a context", mp.arch);

        const size_t pos_n = log_text.find("needed ");
        const size_t pos_a = log_text.find("available ");
        const bool   found = pos_n != std::string::npos && pos_a != std::string::npos;
        const size_t n     = found ? atol(log_text.c_str() + pos_n + 7) : 0;
        const size_t a     = found ? atol(log_text.c_str() + pos_a + 10) : 0;
        check(found && a > 0 && n == a + ggml_tensor_overhead(), "%s: no error with the sizes: %s", mp.arch, log_end().c_str());
    });
    check(code == 0, "%s, %u streams: the cache ended the process: %d", mp.arch, n_seq, code);
}

static void test_kv_context() {
    for (uint32_t n_seq : { 1, 4 }) {
        for (const char * arch : { "llama", "gemma3", "deepseek2" }) {
            model_params mp;
            mp.arch    = arch;
            mp.n_layer = 7; // gemma3: both kinds of layers
            for (const char * type : known_types({ "f16", "q8_0", "tq3_0" })) {
                test_too_small(mp, type, n_seq);
            }
        }
    }
}

static const test_case reg("kv-context", test_kv_context);
