// Metal's scalar and vector functions.
#pragma once
#include "vec.h"

#define FLT_MAX     3.40282346638528859812e+38F
#define FLT_MIN     1.17549435082228750797e-38F
#define FLT_EPSILON 1.1920928955078125e-7F
#define INT_MAX     0x7fffffff
#define INT_MIN     (-INT_MAX - 1)
#define UINT_MAX    0xffffffffu
#define INFINITY    __builtin_inff()
#define NAN         __builtin_nanf("")
#define HALF_MAX    ((half) 65504.0f)
#define MAXHALF     ((half) 65504.0f)
#define M_PI_F      3.14159265358979323846264338327950288f
#define M_PI_2_F    1.57079632679489661923132169163975144f
#define M_1_PI_F    0.318309886183790671537767526745028724f
#define M_E_F       2.71828182845904523536028747135266250f

namespace metal {

using std::conditional;
using std::enable_if;
using std::is_same;
using std::is_same_v;

template <class T, class U> T as_type(const U & u) {
    static_assert(sizeof(T) == sizeof(U), "as_type: the sizes differ");
    T t;
    __builtin_memcpy(&t, &u, sizeof t);
    return t;
}

// one overload per scalar type, as in Metal: mixed calls are ambiguous here too
#define METAL_EMULATOR_INT_FUNCTIONS(t)              \
    inline t max(t a, t b) { return a < b ? b : a; } \
    inline t min(t a, t b) { return b < a ? b : a; } \
    inline t clamp(t x, t a, t b) { return x < a ? a : b < x ? b : x; }
METAL_EMULATOR_INT_FUNCTIONS(char)
METAL_EMULATOR_INT_FUNCTIONS(signed char)
METAL_EMULATOR_INT_FUNCTIONS(uchar)
METAL_EMULATOR_INT_FUNCTIONS(short)
METAL_EMULATOR_INT_FUNCTIONS(ushort)
METAL_EMULATOR_INT_FUNCTIONS(int)
METAL_EMULATOR_INT_FUNCTIONS(uint)
METAL_EMULATOR_INT_FUNCTIONS(long)
METAL_EMULATOR_INT_FUNCTIONS(ulong)

// NaN loses against a number
#define METAL_EMULATOR_FLOAT_FUNCTIONS(t)                                      \
    inline t max(t a, t b) { return a != a ? b : b != b ? a : a < b ? b : a; } \
    inline t min(t a, t b) { return a != a ? b : b != b ? a : b < a ? b : a; } \
    inline t fmax(t a, t b) { return max(a, b); }                              \
    inline t fmin(t a, t b) { return min(a, b); }                              \
    inline t clamp(t x, t a, t b) { return min(max(x, a), b); }
METAL_EMULATOR_FLOAT_FUNCTIONS(half)
METAL_EMULATOR_FLOAT_FUNCTIONS(float)

template <class A, class B> using if_mixed =
    std::enable_if_t<is_scalar_v<A> && is_scalar_v<B> && !std::is_same_v<A, B>>;
template <class A, class B, class = if_mixed<A, B>> float fmax(A a, B b) { return fmax((float) a, (float) b); }
template <class A, class B, class = if_mixed<A, B>> float fmin(A a, B b) { return fmin((float) a, (float) b); }

template <typename T, int N> vec<T, N> max(const vec<T, N> & a, const vec<T, N> & b) {
    vec<T, N> r;
    METAL_EMULATOR_EACH(max(a[i], b[i]));
}
template <typename T, int N> vec<T, N> min(const vec<T, N> & a, const vec<T, N> & b) {
    vec<T, N> r;
    METAL_EMULATOR_EACH(min(a[i], b[i]));
}
template <typename T, int N> vec<T, N> clamp(const vec<T, N> & x, T a, T b) {
    vec<T, N> r;
    METAL_EMULATOR_EACH(clamp(x[i], a, b));
}
template <typename T, int N, class S> vec<T, N> fmax(const vec<T, N> & a, const S & b) { return max(a, vec<T, N>(b)); }
template <typename T, int N, class S> vec<T, N> fmin(const vec<T, N> & a, const S & b) { return min(a, vec<T, N>(b)); }
template <typename T, int N, class S, class = if_scalar<S>> vec<T, N> fmax(S a, const vec<T, N> & b) {
    return max(vec<T, N>(a), b);
}
template <typename T, int N, class S, class = if_scalar<S>> vec<T, N> fmin(S a, const vec<T, N> & b) {
    return min(vec<T, N>(a), b);
}

inline int abs(int x) { return x < 0 ? -x : x; }
inline float abs(float x) { return __builtin_fabsf(x); }
inline half abs(half x) { return (half) __builtin_fabsf((float) x); }

#define METAL_EMULATOR_UNARY(name, expr)                               \
    inline float name(float x) { return (expr); }                      \
    inline half name(half h) { return (half) name((float) h); }        \
    template <typename T, int N> vec<T, N> name(const vec<T, N> & a) { \
        vec<T, N> r;                                                   \
        METAL_EMULATOR_EACH(name(a[i]));                               \
    }
METAL_EMULATOR_UNARY(fabs, __builtin_fabsf(x))
METAL_EMULATOR_UNARY(sqrt, __builtin_sqrtf(x))
METAL_EMULATOR_UNARY(rsqrt, 1.0f / __builtin_sqrtf(x))
METAL_EMULATOR_UNARY(exp, __builtin_expf(x))
METAL_EMULATOR_UNARY(exp2, __builtin_exp2f(x))
METAL_EMULATOR_UNARY(log, __builtin_logf(x))
METAL_EMULATOR_UNARY(log2, __builtin_log2f(x))
METAL_EMULATOR_UNARY(sin, __builtin_sinf(x))
METAL_EMULATOR_UNARY(cos, __builtin_cosf(x))
METAL_EMULATOR_UNARY(tan, __builtin_tanf(x))
METAL_EMULATOR_UNARY(tanh, __builtin_tanhf(x))
METAL_EMULATOR_UNARY(floor, __builtin_floorf(x))
METAL_EMULATOR_UNARY(ceil, __builtin_ceilf(x))
METAL_EMULATOR_UNARY(round, __builtin_roundf(x))
METAL_EMULATOR_UNARY(rint, __builtin_rintf(x))
METAL_EMULATOR_UNARY(trunc, __builtin_truncf(x))
METAL_EMULATOR_UNARY(acos, __builtin_acosf(x))
METAL_EMULATOR_UNARY(asin, __builtin_asinf(x))
METAL_EMULATOR_UNARY(atan, __builtin_atanf(x))
METAL_EMULATOR_UNARY(fract, x - __builtin_floorf(x))
METAL_EMULATOR_UNARY(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? x : 0.0f)
template <class I, class = std::enable_if_t<std::is_integral_v<I>>> float floor(I x) { return (float) x; }

inline float pow(float a, float b) { return __builtin_powf(a, b); }
inline float powr(float a, float b) { return __builtin_powf(a, b); }
inline float fmod(float a, float b) { return __builtin_fmodf(a, b); }
inline float atan2(float a, float b) { return __builtin_atan2f(a, b); }
inline float ldexp(float x, int e) { return __builtin_ldexpf(x, e); }
inline float mix(float a, float b, float t) { return a + (b - a) * t; }
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline half fma(half a, half b, half c) { return (half) __builtin_fmaf((float) a, (float) b, (float) c); }
template <typename T, int N> vec<T, N> fma(const vec<T, N> & a, const vec<T, N> & b, const vec<T, N> & c) {
    vec<T, N> r;
    METAL_EMULATOR_EACH(fma(a[i], b[i], c[i]));
}

template <typename T, int N> T dot(const vec<T, N> & a, const vec<T, N> & b) {
    T r = (T) (a[0] * b[0]);
    for (int i = 1; i < N; ++i) r = (T) (r + a[i] * b[i]);
    return r;
}
template <typename T, int N> T length(const vec<T, N> & a) { return sqrt(dot(a, a)); }

inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline int mad24(int a, int b, int c) { return a * b + c; }
inline int popcount(uint x) { return __builtin_popcount(x); }
inline int clz(uint x) { return x ? __builtin_clz(x) : 32; }
inline int ctz(uint x) { return x ? __builtin_ctz(x) : 32; }

template <typename T> T select(T a, T b, bool c) { return c ? b : a; }
template <typename T, int N> vec<T, N> select(const vec<T, N> & a, const vec<T, N> & b, const vec<bool, N> & c) {
    vec<T, N> r;
    METAL_EMULATOR_EACH(c[i] ? b[i] : a[i]);
}
template <int N> bool any(const vec<bool, N> & a) {
    bool r = false;
    for (int i = 0; i < N; ++i) r |= a[i];
    return r;
}
template <int N> bool all(const vec<bool, N> & a) {
    bool r = true;
    for (int i = 0; i < N; ++i) r &= a[i];
    return r;
}

namespace precise {
using metal::cos;
using metal::exp;
using metal::log;
using metal::pow;
using metal::rsqrt;
using metal::sin;
using metal::sqrt;
using metal::tanh;
} // namespace precise
namespace fast {
using metal::cos;
using metal::exp;
using metal::log;
using metal::pow;
using metal::rsqrt;
using metal::sin;
using metal::sqrt;
using metal::tanh;
} // namespace fast

// one GPU thread runs at a time, so plain accesses are atomic
enum memory_order { memory_order_relaxed };
template <typename T> struct atomic {
    T v;
};
typedef atomic<uint> atomic_uint;
typedef atomic<int> atomic_int;
typedef atomic<float> atomic_float;
template <typename T, typename U>
METAL_EMULATOR_UNCHECKED T atomic_fetch_add_explicit(atomic<T> * p, U d, memory_order) {
    T o = p->v;
    p->v = (T) (o + d);
    return o;
}
template <typename T, typename U>
METAL_EMULATOR_UNCHECKED T atomic_fetch_max_explicit(atomic<T> * p, U d, memory_order) {
    T o = p->v;
    p->v = o < (T) d ? (T) d : o;
    return o;
}
template <typename T, typename U>
METAL_EMULATOR_UNCHECKED void atomic_store_explicit(atomic<T> * p, U d, memory_order) {
    p->v = (T) d;
}
template <typename T> METAL_EMULATOR_UNCHECKED T atomic_load_explicit(const atomic<T> * p, memory_order) {
    return p->v;
}

} // namespace metal
