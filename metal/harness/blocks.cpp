#include "blocks.h"

#include <cfloat>
#include <cmath>

static constexpr int BLOCK = 32, BLOCKS = 6400; // per distribution

typedef std::mt19937 Random;
typedef void (*Fill)(Random &, float *);

static float normal(Random & r) { return std::normal_distribution<float>()(r); }
static float between(Random & r, float lo, float hi) { return std::uniform_real_distribution<float>(lo, hi)(r); }

template <class F> static void each(float * x, F value) {
    for (int i = 0; i < BLOCK; ++i) x[i] = value();
}

static void gaussians(Random & r, float * x) {
    each(x, [&] { return normal(r); });
}
static void uniform(Random & r, float * x) {
    each(x, [&] { return between(r, -1, 1); });
}
static void heavy_tails(Random & r, float * x) {
    each(x, [&] {
        const float v = normal(r);
        return v * v * v;
    });
}
static void small_integers(Random & r, float * x) {
    each(x, [&] { return (float) ((int) (r() % 5) - 2); });
}
static void one_magnitude(Random & r, float * x) {
    const float m = std::exp2(between(r, -8, 8));
    each(x, [&] { return r() & 1 ? m : -m; });
}
static void few_values(Random & r, float * x) {
    each(x, [] { return 0.0f; });
    for (int n = 1 + (int) (r() % 4); n > 0; --n) x[r() % BLOCK] = normal(r);
}
static void one_outlier(Random & r, float * x) {
    gaussians(r, x);
    x[r() % BLOCK] *= std::exp2(between(r, 0, 14));
}
// from scales that are zero in f16 to those that do not fit into it
static void all_scales(Random & r, float * x) {
    const float s = std::exp2(between(r, -28, 18));
    each(x, [&] { return s * normal(r); });
}

static Floats filled(Fill fill, unsigned seed) {
    Random r(seed);
    Floats x((size_t) BLOCK * BLOCKS);
    for (int b = 0; b < BLOCKS; ++b) fill(r, &x[(size_t) b * BLOCK]);
    return x;
}

// one value of each block is not finite, or its square is not
static void add_single_values(Random & r, Floats & x) {
    const float nan = NAN, inf = INFINITY;
    for (float v : {nan, -nan, inf, -inf, FLT_MAX, -FLT_MAX, 2e19f, 1e10f}) {
        for (int i = 0; i < BLOCK; ++i) {
            float block[BLOCK];
            gaussians(r, block);
            block[i] = v;
            x.insert(x.end(), block, block + BLOCK);
        }
    }
}

static void add_equal_values(Floats & x) {
    const float nan = NAN, inf = INFINITY;
    for (float v : {0.0f, -0.0f, nan, inf, -inf, FLT_MAX, 1e19f, FLT_TRUE_MIN, FLT_MIN, 262143.98f, 262144.0f, 1e-11f})
        x.insert(x.end(), BLOCK, v);
    for (int i = 0; i < BLOCK; ++i) x.push_back(i & 1 ? inf : -inf);
    for (int i = 0; i < BLOCK; ++i) x.push_back(i ? FLT_TRUE_MIN * (float) i : 1.0f);
    for (int i = 0; i < BLOCK; ++i) x.push_back(FLT_TRUE_MIN * (float) (i * i));
    for (int i = 0; i < BLOCK; ++i) x.push_back(i & 1 ? FLT_MAX : -FLT_MAX);
}

// Gaussian blocks around the smallest norm, the smallest scale and the largest one
static void add_thresholds(Random & r, Floats & x) {
    const float smallest_norm = 1e-10f / std::sqrt((float) BLOCK), smallest_scale = std::exp2(-25.0f),
                largest_scale = 65520;
    for (float scale : {smallest_norm, smallest_scale, largest_scale}) {
        for (int n = 0; n < 128; ++n) {
            const float s = scale * between(r, 0.4f, 2.5f);
            for (int i = 0; i < BLOCK; ++i) x.push_back(s * normal(r));
        }
    }
}

static Floats at_the_limits() {
    Random r(9);
    Floats x;
    add_single_values(r, x);
    add_equal_values(x);
    add_thresholds(r, x);
    while (x.size() % (8 * BLOCK)) x.push_back(0);
    return x;
}

std::vector<Sample> samples() {
    const std::pair<const char *, Fill> all[] = {
        {"Gaussian", gaussians},          {"uniform", uniform},       {"heavy tails", heavy_tails},
        {"one outlier", one_outlier},     {"few values", few_values}, {"small integers", small_integers},
        {"one magnitude", one_magnitude}, {"all scales", all_scales},
    };
    std::vector<Sample> samples;
    unsigned seed = 0;
    for (const auto & [name, fill] : all)
        samples.push_back({name, false, [fill = fill, seed = ++seed] { return filled(fill, seed); }});
    samples.push_back({"at the limits", true, at_the_limits});
    return samples;
}
