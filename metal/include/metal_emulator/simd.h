// Barriers and the operations in which the lanes of a SIMD group exchange values.
#pragma once
#include "abi.h"
#include "math.h"

namespace metal {

enum class mem_flags {
    mem_none = 0,
    mem_device = 1,
    mem_threadgroup = 2,
    mem_texture = 4,
    mem_device_and_threadgroup = 3
};
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags) ((int) a | (int) b); }

// the caller's position, through default arguments
#define METAL_EMULATOR_AT \
    const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE(), int col_ = __builtin_COLUMN()
#define METAL_EMULATOR_LOC(op) \
    ::metal_emulator::Loc { file_, line_, col_, op }

inline void threadgroup_barrier(mem_flags f, METAL_EMULATOR_AT) {
    metal_emulator_threadgroup_barrier(METAL_EMULATOR_LOC("threadgroup_barrier"), (int) f);
}
inline void simdgroup_barrier(mem_flags f, METAL_EMULATOR_AT) {
    metal_emulator_simdgroup_barrier(METAL_EMULATOR_LOC("simdgroup_barrier"), (int) f);
}

template <typename T> struct Exchange {
    T in;
    T out;
    int k;
};

// the lanes that take part in a collective, while it runs for all of them
template <typename T> struct Lanes {
    void ** args;
    unsigned mask;
    METAL_EMULATOR_UNCHECKED bool active(int i) const { return i >= 0 && i < 32 && (mask >> i & 1); }
    METAL_EMULATOR_UNCHECKED Exchange<T> & operator[](int i) const { return *(Exchange<T> *) args[i]; }
};

template <typename T> T collective(::metal_emulator::Loc loc, T x, int k, ::metal_emulator::Collective fn) {
    Exchange<T> e{x, T(), k};
    metal_emulator_collective(loc, &e, fn);
    return e.out;
}

// clang-format off: the statements of a collective are arguments of a macro
#define METAL_EMULATOR_COLLECTIVE(name, k, ...)                                                                        \
    return collective<T>(METAL_EMULATOR_LOC(#name), x, k, +[](void ** args_, unsigned mask_) METAL_EMULATOR_UNCHECKED {\
        const Lanes<T> lanes{args_, mask_};                                                                            \
        __VA_ARGS__                                                                                                    \
    });

// pairwise over halves: a fixed order (a GPU's may differ)
#define METAL_EMULATOR_REDUCE(name, combine)                                                                           \
    template <typename T> T name(T x, METAL_EMULATOR_AT) { METAL_EMULATOR_COLLECTIVE(name, 0,                          \
        T v[32]; bool has[32];                                                                                         \
        for (int i = 0; i < 32; ++i) { has[i] = lanes.active(i); if (has[i]) v[i] = lanes[i].in; }                     \
        for (int s = 16; s > 0; s >>= 1) for (int i = 0; i < s; ++i) if (has[i + s]) {                                 \
            if (has[i]) { const T p = v[i], q = v[i + s]; v[i] = (T) (combine); }                                      \
            else { v[i] = v[i + s]; has[i] = true; } }                                                                 \
        for (int i = 0; i < 32; ++i) if (lanes.active(i)) lanes[i].out = v[0];) }
METAL_EMULATOR_REDUCE(simd_sum, p + q)
METAL_EMULATOR_REDUCE(simd_product, p*q)
METAL_EMULATOR_REDUCE(simd_max, max(p, q))
METAL_EMULATOR_REDUCE(simd_min, min(p, q))
METAL_EMULATOR_REDUCE(simd_and, p & q)
METAL_EMULATOR_REDUCE(simd_or, p | q)

// The value of an inactive lane is undefined in Metal. Kernels ignore it at the ends of _up and _down, which return the
// lane's own value; elsewhere it is an error.
#define METAL_EMULATOR_SHUFFLE(name, source, open_ended)                                                               \
    template <typename T> T name(T x, ushort k_, METAL_EMULATOR_AT) { METAL_EMULATOR_COLLECTIVE(name, k_,              \
        for (int i = 0; i < 32; ++i) if (lanes.active(i)) {                                                            \
            const int k = lanes[i].k; (void) k; const int s = (source);                                                \
            if (!open_ended && !lanes.active(s)) metal_emulator_fail(#name " reads a lane that is not active");        \
            lanes[i].out = lanes.active(s) ? lanes[s].in : lanes[i].in; }) }
METAL_EMULATOR_SHUFFLE(simd_shuffle, k, false)
METAL_EMULATOR_SHUFFLE(simd_broadcast, k, false)
METAL_EMULATOR_SHUFFLE(simd_shuffle_xor, i ^ k, false)
METAL_EMULATOR_SHUFFLE(simd_shuffle_down, i + k, true)
METAL_EMULATOR_SHUFFLE(simd_shuffle_up, i - k, true)

template <typename T> T simd_broadcast_first(T x, METAL_EMULATOR_AT) {
    METAL_EMULATOR_COLLECTIVE(simd_broadcast_first, 0,
    int first = 0;
    while (!lanes.active(first)) ++first;
    for (int i = 0; i < 32; ++i) if (lanes.active(i)) lanes[i].out = lanes[first].in;) }
template <typename T> T simd_prefix_inclusive_sum(T x, METAL_EMULATOR_AT) {
    METAL_EMULATOR_COLLECTIVE(simd_prefix_inclusive_sum, 0,
    T s = T(0);
    for (int i = 0; i < 32; ++i) if (lanes.active(i)) { s = (T) (s + lanes[i].in); lanes[i].out = s; }) }
template <typename T> T simd_prefix_exclusive_sum(T x, METAL_EMULATOR_AT) {
    METAL_EMULATOR_COLLECTIVE(simd_prefix_exclusive_sum, 0,
    T s = T(0);
    for (int i = 0; i < 32; ++i) if (lanes.active(i)) { lanes[i].out = s; s = (T) (s + lanes[i].in); }) }
// clang-format on

inline bool simd_any(bool v, METAL_EMULATOR_AT) { return simd_or((int) v, file_, line_, col_) != 0; }
inline bool simd_all(bool v, METAL_EMULATOR_AT) { return simd_and((int) v, file_, line_, col_) != 0; }

} // namespace metal
