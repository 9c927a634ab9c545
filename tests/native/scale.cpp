// scale: the encoder finds the best of its scales

#include "blocks.h"

#include <algorithm>

// squared error of a direction, with the best factor
static double direction_error(const std::vector<double> & v, const int * codes) {
    double vv = 0.0;
    double vc = 0.0;
    double cc = 0.0;
    for (int j = 0; j < QK; ++j) {
        vv += v[j]*v[j];
        vc += v[j]*centroids[codes[j]];
        cc += centroids[codes[j]]*centroids[codes[j]];
    }
    return 1.0 - vc*vc/(vv*cc);
}

static void test_scale() {
    auto x = random_normal(QK*4000, 12);
    const size_t n_normal = x.size();
    for (float f : random_normal(QK*2000, 13)) { // heavy tails
        x.push_back(f*f*f);
    }
    for (float f : random_normal(QK*2000, 14)) { // a channel with an offset
        x.push_back(x.size() % QK == 5 ? 20.0f + f : f);
    }

    for (auto * encode : { encode_ref, encode_set_rows }) {
        const char * name = encode == encode_ref ? "reference" : "SET_ROWS";
        const auto enc = encode(x);
        const auto y   = decode(enc);
        for (size_t i = 0; i < enc.size(); ++i) {
            const auto   v   = rotate(x.data() + i*QK);
            const double rms = norm(x.data() + i*QK, QK)/sqrt(32.0);
            int codes[QK];
            double best = 1.0;
            for (int k = 0; k < N_SCALES; ++k) {
                double worst = 0.0; // values at a boundary may go to either side
                for (double f : { 1.0 - 1.0/1024, 1.0, 1.0 + 1.0/1024 }) {
                    for (int j = 0; j < QK; ++j) {
                        codes[j] = find_code(v[j], rms*scale(k)*f);
                    }
                    worst = std::max(worst, direction_error(v, codes));
                }
                best = std::min(best, worst);
            }
            for (int j = 0; j < QK; ++j) {
                codes[j] = get_code(enc[i], j);
            }
            const double err = direction_error(v, codes);
            check(err < best + 3e-4, "%s: block %zu has an error of %g, possible is %g", name, i, err, best);
        }

        double mse = 0.0;
        for (size_t i = 0; i < n_normal; ++i) {
            mse += ((double) x[i] - y[i])*((double) x[i] - y[i])/n_normal;
        }
        printf("  %s: distortion of N(0, 1) in blocks: %.5f\n", name, mse);
        check(mse < 0.0262, "%s: distortion %g", name, mse); // with the rms as the scale 0.0310
    }
}

static const test_case reg("scale", test_scale);
