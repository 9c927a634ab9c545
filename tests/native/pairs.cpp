// pairs [backend] [K/V,...]: SET_ROWS, then FLASH_ATTN_EXT against a reference

#include "attention.h"

#include <algorithm>

static void test_pairs(const std::string & backend_name, const std::string & pairs) {
    ggml_backend_ptr backend = backend_from_name(backend_name);

    const attn_params shapes[] = {
        {  64, 2, 1, 200,  1 },
        {  64, 3, 3, 200,  7 },
        { 128, 2, 4, 300,  1 },
        { 128, 2, 2, 300, 32 },
        {  96, 2, 1, 100,  3 },
        { 256, 1, 2, 100,  2 },
    };

    for (size_t pos = 0; pos < pairs.size();) {
        const size_t end   = std::min(pairs.find(',', pos), pairs.size());
        const std::string pair = pairs.substr(pos, end - pos);
        const size_t slash = pair.find('/');
        if (slash == std::string::npos) {
            fprintf(stderr, "not a pair: %s\n", pair.c_str());
            exit(1);
        }
        const ggml_type type_k = type_from_name(pair.substr(0, slash));
        const ggml_type type_v = type_from_name(pair.substr(slash + 1));
        for (const auto & shape : shapes) {
            test_pair(backend.get(), type_k, type_v, shape);
            // keys with a few large constant channels
            test_pair(backend.get(), type_k, type_v, shape, 1e-3, 20.0f);
        }
        pos = end + 1;
    }
}

// every head size for which a GPU may have a kernel of its own
static void test_heads(const std::string & backend_name) {
    ggml_backend_ptr backend = backend_from_name(backend_name);
    const ggml_type type_v = type_from_name("tq3_0");

    for (const char * type_k : { "tq3_0", "f16", "q8_0", "q5_0", "q4_0" }) {
        const int64_t sizes[][2] = { { 32, 32 }, { 64, 64 }, { 96, 96 }, { 96, 64 }, { 128, 128 }, { 192, 192 }, { 192, 128 }, { 256, 256 }, { 512, 512 } };
        for (const auto & size : sizes) {
            for (int64_t n_q : { 1, 20, 35 }) {
                test_pair(backend.get(), type_from_name(type_k), type_v, { size[0], 1, 2, 113, n_q, size[1] });
            }
        }
    }
}

static const test_case reg_heads("heads", [] { test_heads(argument(0, "CPU")); });

static const test_case reg("pairs", [] {
    test_pairs(argument(0, "CPU"), argument(1, "f16/f16,q8_0/q8_0,tq3_0/tq3_0,f16/tq3_0,tq3_0/f16,q8_0/tq3_0,tq3_0/q8_0,"
                                               "q5_0/tq3_0,q4_0/tq3_0,tq3_0/q4_0"));
});
