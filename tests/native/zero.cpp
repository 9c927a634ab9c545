// zero: zero, NaN, Inf, too large and subnormal blocks

#include "blocks.h"

#include <algorithm>
#include <cstring>
#include <limits>

static void test_zero() {
    const ggml_type type = type_from_name("tq3_0");

    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();

    enum kind { ZERO, INVALID, FINITE };

    const auto rnd = random_normal(QK, 4);

    struct test { const char * name; kind expected; std::vector<float> x; };
    std::vector<test> tests = {
        { "zero",            ZERO,    std::vector<float>(QK,  0.0f)    },
        { "minus zero",      ZERO,    std::vector<float>(QK, -0.0f)    },
        { "subnormal",       ZERO,    std::vector<float>(QK,  1e-40f)  },
        { "tiny",            ZERO,    std::vector<float>(QK,  1e-12f)  },
        { "small",           FINITE,  std::vector<float>(QK,  1e-9f)   }, // d rounds to 0
        { "large",           FINITE,  std::vector<float>(QK,  30000.f) },
        { "too large",       INVALID, std::vector<float>(QK,  1e5f)    },
        { "largest float",   INVALID, std::vector<float>(QK,  std::numeric_limits<float>::max()) },
        { "NaN",             INVALID, rnd },
        { "Inf",             INVALID, rnd },
        { "-Inf",            INVALID, rnd },
        { "Inf and -Inf",    INVALID, rnd },
        { "all NaN",         INVALID, std::vector<float>(QK,  nan) },
        { "all Inf",         INVALID, std::vector<float>(QK,  inf) },
    };
    tests[ 8].x[5]  = nan;
    tests[ 9].x[31] = inf;
    tests[10].x[0]  = -inf;
    tests[11].x[3]  = inf;
    tests[11].x[4]  = -inf;

    // each between two blocks that must not be affected
    std::vector<float> x;
    for (const auto & t : tests) {
        x.insert(x.end(), rnd.begin(), rnd.end());
        x.insert(x.end(), t.x.begin(), t.x.end());
    }
    x.insert(x.end(), rnd.begin(), rnd.end());

    const block b_rnd = encode_ref(rnd)[0];

    for (auto * encode : { encode_ref, encode_set_rows }) {
        const auto b = encode(x);
        const auto y = decode(b);

        for (size_t i = 0; i < tests.size(); ++i) {
            const char  * name = tests[i].name;
            const block & bi   = b[2*i + 1];
            const float * yi   = y.data() + (2*i + 1)*QK;

            const block b_zero = {};
            const bool qs_zero   = memcmp(bi.qs, b_zero.qs, sizeof(bi.qs)) == 0;
            const bool is_zero   = std::all_of(yi, yi + QK, [](float v) { return v == 0.0f; });
            const bool is_nan    = std::all_of(yi, yi + QK, [](float v) { return std::isnan(v); });
            const bool is_finite = std::all_of(yi, yi + QK, [](float v) { return std::isfinite(v); });

            switch (tests[i].expected) {
                case ZERO:    check(bi.d == 0 && qs_zero && is_zero,     "%s: not a zero block (d = 0x%04x)", name, bi.d); break;
                case INVALID: check(bi.d == 0x7e00 && qs_zero && is_nan, "%s: not a NaN block (d = 0x%04x)",  name, bi.d); break;
                case FINITE:  check(is_finite, "%s: not finite", name); break;
            }
            check(ggml_validate_row_data(type, &bi, sizeof(bi)) == (tests[i].expected != INVALID), "%s: validate", name);
            check(memcmp(&b[2*i], &b_rnd, sizeof(block)) == 0 && memcmp(&b[2*i + 2], &b_rnd, sizeof(block)) == 0, "%s: neighbours", name);
        }
    }
}

static const test_case reg("zero", test_zero);
