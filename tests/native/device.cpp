// device: a cache on a device that cannot store its types is refused, one without attention for them is reported

#include "models.h"

#include "ggml-cpu.h"
#include "ggml-backend-impl.h"

// the CPU under another name, with memory of its own and without some of the operations
namespace {
struct fake_device {
    ggml_backend_device      dev;
    ggml_backend_buffer_type buft;

    bool has_set_rows   = true;
    bool has_flash_attn = true;
};
}

static fake_device * fake() {
    static fake_device res;
    return &res;
}

static bool supports_op(ggml_backend_dev_t dev, const ggml_tensor * op) {
    GGML_UNUSED(dev);
    const auto quantized = [](const ggml_tensor * t) { return t && ggml_is_quantized(t->type); };

    if (op->op == GGML_OP_SET_ROWS && quantized(op) && !fake()->has_set_rows) {
        return false;
    }
    if (op->op == GGML_OP_FLASH_ATTN_EXT && (quantized(op->src[1]) || quantized(op->src[2])) && !fake()->has_flash_attn) {
        return false;
    }
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    return cpu->iface.supports_op(cpu, op);
}

static ggml_backend_t init_backend(ggml_backend_dev_t dev, const char * params) {
    GGML_UNUSED(params);
    ggml_backend_t res = ggml_backend_cpu_init();
    res->device = dev;
    return res;
}

static void make_fake() {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    GGML_ASSERT(cpu);

    fake()->dev = *cpu;
    fake()->dev.iface.get_name        = [](ggml_backend_dev_t) { return "FAKE0"; };
    fake()->dev.iface.get_type        = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; };
    fake()->dev.iface.get_memory      = [](ggml_backend_dev_t, size_t * free, size_t * total) { *free = *total = size_t(1) << 33; };
    fake()->dev.iface.get_buffer_type = [](ggml_backend_dev_t) { return &fake()->buft; };
    fake()->dev.iface.init_backend    = init_backend;
    fake()->dev.iface.supports_op     = supports_op;
    fake()->dev.iface.supports_buft   = [](ggml_backend_dev_t, ggml_backend_buffer_type_t buft) {
        return buft == &fake()->buft || ggml_backend_buft_is_host(buft);
    };

    fake()->buft = *ggml_backend_cpu_buffer_type();
    fake()->buft.device         = &fake()->dev;
    fake()->buft.iface.get_name = [](ggml_backend_buffer_type_t) { return "FAKE0"; };
    fake()->buft.iface.is_host  = [](ggml_backend_buffer_type_t) { return false; };
    fake()->buft.iface.alloc_buffer = [](ggml_backend_buffer_type_t buft, size_t size) {
        ggml_backend_buffer_t res = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
        if (res) {
            res->buft = buft;
        }
        return res;
    };
}

static llama_context_ptr make_ctx(llama_model * model, const char * k, const char * v, bool set_rows, bool flash_attn) {
    fake()->has_set_rows   = set_rows;
    fake()->has_flash_attn = flash_attn;

    llama_context_params cp = ctx_params(k, v);
    cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    log_text.clear();
    return llama_context_ptr { llama_init_from_model(model, cp) };
}

static void test_device() {
    make_fake();

    model_params mp;
    mp.dev = &fake()->dev;
    llama_model_ptr model = make_model(mp);

    for (const char * type : known_types({ "q8_0", "tq3_0" })) {
        llama_context_ptr ctx = make_ctx(model.get(), type, type, true, true);
        check(ctx != nullptr, "%s: no context: %s", type, log_end().c_str());
        check(!log_has("has no flash attention"), "%s: a warning without a reason", type);
        check(ctx && all_finite(decode_tokens(ctx.get(), 32, 0)), "%s: no logits", type);

        // without the check the scheduler aborts
        for (bool is_k : { true, false }) {
            const int code = in_child([&] {
                llama_context_ptr none = make_ctx(model.get(), is_k ? type : "f16", is_k ? "f16" : type, false, true);
                check(!none, "%s: there is a context", type);
                check(log_has("device FAKE0 cannot store a " + std::string(is_k ? "K" : "V") + " cache of type " + type),
                        "%s: no reason: %s", type, log_end().c_str());
            });
            check(code == 0, "%s: the context ended the process: %d", type, code);
        }

        ctx = make_ctx(model.get(), type, "f16", true, false);
        check(ctx && log_has("device FAKE0 has no flash attention for K of type " + std::string(type) + " and V of type f16"),
                "%s: no warning: %s", type, log_end().c_str());
        check(ctx && all_finite(decode_tokens(ctx.get(), 32, 0)), "%s: no logits", type);
    }

    llama_context_ptr ctx = make_ctx(model.get(), "f16", "f16", false, false);
    check(ctx && !log_has("has no flash attention"), "f16: a warning without a reason");
}

static const test_case reg("device", test_device);
