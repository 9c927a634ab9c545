// Metal's scalar, vector and matrix types. Every element-wise operation rounds to the element type, as on the GPU.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#define __METAL_VERSION__ 320

typedef _Float16 half;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

constexpr half operator""h(long double v) { return (half) v; }

namespace metal {

template <class S> constexpr bool is_scalar_v = std::is_arithmetic_v<S> || std::is_same_v<S, half>;
template <class S> using if_scalar = std::enable_if_t<is_scalar_v<S>>;

template <typename T, int N> struct vec;

#define METAL_EMULATOR_VEC_COMMON(N)                                 \
    typedef T elem_t;                                                \
    vec() = default;                                                 \
    vec(const vec &) = default;                                      \
    vec & operator=(const vec &) = default;                          \
    template <class S, class = if_scalar<S>> constexpr vec(S s) {    \
        for (int i = 0; i < N; ++i) e[i] = (T) s;                    \
    }                                                                \
    template <class U> explicit constexpr vec(const vec<U, N> & o) { \
        for (int i = 0; i < N; ++i) e[i] = (T) o.e[i];               \
    }                                                                \
    constexpr T & operator[](int i) { return e[i]; }                 \
    constexpr const T & operator[](int i) const { return e[i]; }

template <typename T> struct alignas(2 * sizeof(T)) vec<T, 2> {
    union {
        T e[2];
        struct {
            T x, y;
        };
        struct {
            T r, g;
        };
    };
    METAL_EMULATOR_VEC_COMMON(2)
    constexpr vec(T a, T b) : e{a, b} {}
};
template <typename T> struct alignas(4 * sizeof(T)) vec<T, 3> {
    union {
        T e[3];
        struct {
            T x, y, z;
        };
        struct {
            T r, g, b;
        };
    };
    METAL_EMULATOR_VEC_COMMON(3)
    constexpr vec(T a, T b, T c) : e{a, b, c} {}
};
template <typename T> struct alignas(4 * sizeof(T)) vec<T, 4> {
    union {
        T e[4];
        struct {
            T x, y, z, w;
        };
        struct {
            T r, g, b, a;
        };
    };
    METAL_EMULATOR_VEC_COMMON(4)
    constexpr vec(T p, T q, T r, T s) : e{p, q, r, s} {}
    constexpr vec(const vec<T, 2> & p, const vec<T, 2> & q) : e{p[0], p[1], q[0], q[1]} {}
};

#define METAL_EMULATOR_EACH(expr)              \
    for (int i = 0; i < N; ++i) r[i] = (expr); \
    return r

#define METAL_EMULATOR_BINARY(op)                                                                                      \
    template <typename T, int N> vec<T, N> operator op(const vec<T, N> & a, const vec<T, N> & b) {                     \
        vec<T, N> r;                                                                                                   \
        METAL_EMULATOR_EACH((T) (a[i] op b[i]));                                                                       \
    }                                                                                                                  \
    template <typename T, int N, class S, class = if_scalar<S>> vec<T, N> operator op(const vec<T, N> & a, S s) {      \
        return a op vec<T, N>(s);                                                                                      \
    }                                                                                                                  \
    template <typename T, int N, class S, class = if_scalar<S>> vec<T, N> operator op(S s, const vec<T, N> & b) {      \
        return vec<T, N>(s) op b;                                                                                      \
    }                                                                                                                  \
    template <typename T, int N> vec<T, N> & operator op##=(vec<T, N> & a, const vec<T, N> & b) { return a = a op b; } \
    template <typename T, int N, class S, class = if_scalar<S>> vec<T, N> & operator op##=(vec<T, N> & a, S s) {       \
        return a = a op vec<T, N>(s);                                                                                  \
    }
METAL_EMULATOR_BINARY(+)
METAL_EMULATOR_BINARY(-)
METAL_EMULATOR_BINARY(*)
METAL_EMULATOR_BINARY(/)
METAL_EMULATOR_BINARY(%)
METAL_EMULATOR_BINARY(&)
METAL_EMULATOR_BINARY(|)
METAL_EMULATOR_BINARY(^)
METAL_EMULATOR_BINARY(<<)
METAL_EMULATOR_BINARY(>>)

#define METAL_EMULATOR_COMPARE(op)                                                                                   \
    template <typename T, int N> vec<bool, N> operator op(const vec<T, N> & a, const vec<T, N> & b) {                \
        vec<bool, N> r;                                                                                              \
        METAL_EMULATOR_EACH(a[i] op b[i]);                                                                           \
    }                                                                                                                \
    template <typename T, int N, class S, class = if_scalar<S>> vec<bool, N> operator op(const vec<T, N> & a, S s) { \
        return a op vec<T, N>(s);                                                                                    \
    }
METAL_EMULATOR_COMPARE(<)
METAL_EMULATOR_COMPARE(>)
METAL_EMULATOR_COMPARE(<=)
METAL_EMULATOR_COMPARE(>=)
METAL_EMULATOR_COMPARE(==)
METAL_EMULATOR_COMPARE(!=)

template <typename T, int N> vec<T, N> operator-(const vec<T, N> & a) {
    vec<T, N> r;
    METAL_EMULATOR_EACH((T) -a[i]);
}
template <typename T, int N> vec<T, N> operator~(const vec<T, N> & a) {
    vec<T, N> r;
    METAL_EMULATOR_EACH((T) ~a[i]);
}

// C columns of R rows
template <typename T, int C, int R> struct matrix {
    vec<T, R> columns[C];
    matrix() = default;
    matrix(const matrix &) = default;
    matrix & operator=(const matrix &) = default;
    template <class S, class = if_scalar<S>> explicit matrix(S s) { // diagonal
        for (int i = 0; i < C; ++i)
            for (int j = 0; j < R; ++j) columns[i][j] = i == j ? (T) s : (T) 0;
    }
    template <class U> explicit matrix(const matrix<U, C, R> & o) {
        for (int i = 0; i < C; ++i) columns[i] = vec<T, R>(o.columns[i]);
    }
    template <class... V,
              class = std::enable_if_t<sizeof...(V) == C && (C > 1) && (std::is_same_v<V, vec<T, R>> && ...)>>
    explicit matrix(V... v) : columns{v...} {}
    vec<T, R> & operator[](int i) { return columns[i]; }
    const vec<T, R> & operator[](int i) const { return columns[i]; }
};
template <typename T, int C, int R, class S, class = if_scalar<S>>
matrix<T, C, R> operator*(const matrix<T, C, R> & a, S s) {
    matrix<T, C, R> r;
    for (int i = 0; i < C; ++i) r[i] = a[i] * (T) s;
    return r;
}
template <typename T, int C, int R, class S, class = if_scalar<S>>
matrix<T, C, R> operator*(S s, const matrix<T, C, R> & a) {
    return a * s;
}
template <typename T, int C, int R> vec<T, R> operator*(const matrix<T, C, R> & m, const vec<T, C> & v) {
    vec<T, R> r((T) 0);
    for (int i = 0; i < C; ++i) r += m[i] * v[i];
    return r;
}

// element alignment only
template <typename T, int N> struct packed {
    T e[N];
    T & operator[](int i) { return e[i]; }
    const T & operator[](int i) const { return e[i]; }
    operator vec<T, N>() const {
        vec<T, N> r;
        METAL_EMULATOR_EACH(e[i]);
    }
    template <class U> explicit operator vec<U, N>() const {
        vec<U, N> r;
        METAL_EMULATOR_EACH((U) e[i]);
    }
};

} // namespace metal

#define METAL_EMULATOR_VECTORS(t)  \
    typedef metal::vec<t, 2> t##2; \
    typedef metal::vec<t, 3> t##3; \
    typedef metal::vec<t, 4> t##4;
METAL_EMULATOR_VECTORS(char)
METAL_EMULATOR_VECTORS(uchar)
METAL_EMULATOR_VECTORS(short)
METAL_EMULATOR_VECTORS(ushort)
METAL_EMULATOR_VECTORS(int)
METAL_EMULATOR_VECTORS(uint)
METAL_EMULATOR_VECTORS(long)
METAL_EMULATOR_VECTORS(ulong)
METAL_EMULATOR_VECTORS(half)
METAL_EMULATOR_VECTORS(float)
METAL_EMULATOR_VECTORS(bool)

#define METAL_EMULATOR_MATRICES(t)         \
    typedef metal::matrix<t, 2, 2> t##2x2; \
    typedef metal::matrix<t, 2, 4> t##2x4; \
    typedef metal::matrix<t, 4, 2> t##4x2; \
    typedef metal::matrix<t, 3, 3> t##3x3; \
    typedef metal::matrix<t, 4, 4> t##4x4;
METAL_EMULATOR_MATRICES(half)
METAL_EMULATOR_MATRICES(float)

typedef metal::packed<char, 4> packed_char4;
typedef metal::packed<uchar, 4> packed_uchar4;
typedef metal::packed<float, 4> packed_float4;
typedef metal::packed<half, 4> packed_half4;
