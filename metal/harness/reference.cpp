#include "reference.h"

#include <algorithm>
#include <cmath>

float Attention::scale() const { return 1 / std::sqrt((float) dk); }

std::string Attention::name(const std::string & k_type, const std::string & v_type) const {
    char s[200];
    snprintf(s, sizeof s, "FLASH_ATTN_EXT %s/%s dk %d dv %d heads %d/%d queries %d kv %d%s%s%s%s", k_type.c_str(),
             v_type.c_str(), dk, dv, heads, kv_heads, queries, kv, mask ? " mask" : "", sinks ? " sinks" : "",
             max_bias > 0 ? " alibi" : "", softcap > 0 ? " softcap" : "");
    return s;
}

static double slope(const Attention & a, int head) {
    if (a.max_bias <= 0) return 1;
    const int n = 1 << (int) std::floor(std::log2((double) a.heads));
    const double m0 = std::exp2(-a.max_bias / n), m1 = std::exp2(-a.max_bias / 2 / n);
    return head < n ? std::pow(m0, head + 1) : std::pow(m1, 2 * (head - n) + 1);
}

std::vector<double> attention(const Attention & a, const AttentionData & x) {
    std::vector<double> out((size_t) a.dv * a.heads * a.queries, 0.0), p(a.kv);
    for (int h = 0; h < a.heads; ++h)
        for (int i = 0; i < a.queries; ++i) {
            const int kv_head = h / (a.heads / a.kv_heads);
            double top = x.sinks.empty() ? -INFINITY : x.sinks[h], sum = 0;
            for (int j = 0; j < a.kv; ++j) {
                double s = 0;
                for (int c = 0; c < a.dk; ++c)
                    s += (double) x.q[((size_t) h * a.queries + i) * a.dk + c]
                         * x.k[((size_t) kv_head * a.kv + j) * a.dk + c];
                s *= a.scale();
                if (a.softcap > 0) s = a.softcap * std::tanh(s / a.softcap);
                if (a.mask) s += slope(a, h) * x.mask[(size_t) i * a.kv + j];
                p[j] = s;
                top = std::max(top, s);
            }
            for (auto & s : p) sum += s = std::exp(s - top);
            if (!x.sinks.empty()) sum += std::exp(x.sinks[h] - top);
            double * o = &out[((size_t) i * a.heads + h) * a.dv];
            for (int j = 0; j < a.kv; ++j)
                for (int c = 0; c < a.dv; ++c) o[c] += p[j] / sum * x.v[((size_t) kv_head * a.kv + j) * a.dv + c];
        }
    return out;
}

double nmse(const Floats & got, const std::vector<double> & expected) {
    double error = 0, power = 0;
    for (size_t i = 0; i < got.size(); ++i) {
        const double d = got[i] - expected[i];
        error += d * d;
        power += expected[i] * expected[i];
    }
    return error == 0 ? 0 : error / power;
}
