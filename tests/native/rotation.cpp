// rotation: which sides of the cache are rotated by the graph

#include "models.h"

#include <cstring>

struct rot_count {
    int k = 0;
    int v = 0;
};

static bool count_rot(ggml_tensor * t, bool ask, void * user_data) {
    if (ask && t->op == GGML_OP_MUL_MAT) {
        auto * n = (rot_count *) user_data;
        n->k += strstr(t->src[0]->name, "attn_inp_k_rot") != nullptr;
        n->v += strstr(t->src[0]->name, "attn_inp_v_rot") != nullptr;
    }
    return false;
}

static void test_rotation() {
    llama_model_ptr model = make_model({});

    struct { const char * k; const char * v; bool rot_k; bool rot_v; } tests[] = {
        { "f16",   "f16",   false, false },
        { "q8_0",  "q8_0",  true,  true  },
        { "q4_0",  "q4_0",  true,  true  },
        { "tq3_0", "tq3_0", false, false },
        { "q8_0",  "tq3_0", true,  false },
        { "tq3_0", "q8_0",  false, true  },
        { "q4_0",  "tq3_0", true,  false },
        { "tq3_0", "q4_0",  false, true  },
        { "f16",   "tq3_0", false, false },
        { "tq3_0", "f16",   false, false },
    };

    std::vector<float> ref;

    for (const auto & t : tests) {
        rot_count n;

        llama_context_params cp = ctx_params(t.k, t.v);
        cp.cb_eval           = count_rot;
        cp.cb_eval_user_data = &n;

        log_text.clear();
        llama_context_ptr ctx { llama_init_from_model(model.get(), cp) };
        if (!check(ctx != nullptr, "%s/%s: no context", t.k, t.v)) {
            continue;
        }
        check(log_has(t.rot_k ? "attn_rot_k = 1" : "attn_rot_k = 0"), "%s/%s: attn_rot_k in the log", t.k, t.v);
        check(log_has(t.rot_v ? "attn_rot_v = 1" : "attn_rot_v = 0"), "%s/%s: attn_rot_v in the log", t.k, t.v);

        const auto logits = decode_tokens(ctx.get(), 64, 0);
        // per layer: Q and K, V and the output
        check(n.k == (t.rot_k ? 4 : 0), "%s/%s: %d rotations by k_rot", t.k, t.v, n.k);
        check(n.v == (t.rot_v ? 4 : 0), "%s/%s: %d rotations by v_rot", t.k, t.v, n.v);

        if (ref.empty()) {
            ref = logits;
        }
        const double err = nmse(logits, ref);
        printf("  %5s/%-5s rot_k = %d, rot_v = %d, NMSE of the logits against f16: %.5f\n", t.k, t.v, n.k > 0, n.v > 0, err);
        check(err < 0.5, "%s/%s: NMSE %g", t.k, t.v, err);
    }
}

// the model itself rotates the keys of its indexer
static void test_indexer() {
    model_params mp;
    mp.arch = "deepseek32";
    llama_model_ptr model = make_model(mp);
    for (const char * type : { "q8_0", "tq3_0" }) {
        log_text.clear();
        llama_context_ptr ctx { llama_init_from_model(model.get(), ctx_params(type, type)) };
        const bool rotates = !strcmp(type, "tq3_0");
        check(!ctx == rotates, "indexer, %s: context = %d", type, ctx != nullptr);
        check(!rotates || log_has("rotated by the model"), "indexer, %s: no reason: %s", type, log_end().c_str());
    }
}

static const test_case reg("rotation", [] {
    test_rotation();
    test_indexer();
});
