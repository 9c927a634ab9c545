// offset: what the types make of keys with a few large constant channels, as Qwen2.5 has them

#include "attention.h"

#include <algorithm>

// mean KL divergence of the attention weights, of the keys and of the quantized keys
static double divergence(const std::vector<float> & k, const std::vector<float> & kq, const std::vector<float> & q, int n) {
    const auto weights = [n](const std::vector<float> & keys, const float * query) {
        std::vector<double> res(keys.size()/n);
        for (size_t i = 0; i < res.size(); ++i) {
            for (int j = 0; j < n; ++j) {
                res[i] += query[j]*keys[i*n + j]/sqrt((double) n);
            }
        }
        const double max = *std::max_element(res.begin(), res.end());
        double sum = 0.0;
        for (auto & x : res) {
            x = exp(x - max);
            sum += x;
        }
        for (auto & x : res) {
            x /= sum;
        }
        return res;
    };

    double res = 0.0;
    for (size_t i = 0; i < q.size(); i += n) {
        const auto a = weights(k,  &q[i]);
        const auto b = weights(kq, &q[i]);
        for (size_t j = 0; j < a.size(); ++j) {
            res += a[j]*log(a[j]/b[j]);
        }
    }
    return res*n/q.size();
}

static void test_offset() {
    const int n = 64;

    // measured, with a margin of a quarter
    const struct { const char * type; double plain; double offset; } limits[] = {
        { "q8_0",  0.00005, 0.0028 },
        { "q5_0",  0.0029,  0.182  },
        { "q4_0",  0.0113,  0.70   },
        { "tq3_0", 0.0356,  0.442  },
    };
    for (const auto & l : limits) {
        for (float offset : { 0.0f, 20.0f }) {
            auto k = random_normal(n*400, 41);
            for (size_t i = 0; i < k.size(); ++i) {
                const int channel = i % n;
                k[i] += channel == 5 ? offset : channel == 38 ? -offset : channel == 63 ? 0.7f*offset : 0.0f;
            }
            const double kl  = divergence(k, quant_dequant(type_from_name(l.type), k, n), random_normal(n*64, 42, 1.5f), n);
            const double max = offset == 0.0f ? l.plain : l.offset;
            printf("  %-5s offset %2.0f: KL of the attention weights %.5f\n", l.type, offset, kl);
            check(kl < max, "%s with an offset of %g: KL %g", l.type, offset, kl);
        }
    }
}

static const test_case reg("offset", test_offset);
