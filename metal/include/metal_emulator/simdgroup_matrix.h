// 8x8 matrices spread over the lanes of a SIMD group, two elements per lane. The mapping of elements to lanes is the
// one published in MLX's kernels; the products accumulate in float. Both are assumptions about the hardware.
#pragma once
#include "simd.h"

namespace metal {

template <typename T, int R, int C> struct simdgroup_matrix {
    static_assert(R == 8 && C == 8, "only 8x8");
    vec<T, 2> e;
    simdgroup_matrix() = default;
    vec<T, 2> & thread_elements() { return e; }
};
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;

template <typename T, int N> simdgroup_matrix<T, N, N> make_filled_simdgroup_matrix(T v) {
    simdgroup_matrix<T, N, N> m;
    m.e = vec<T, 2>(v);
    return m;
}

METAL_EMULATOR_UNCHECKED inline int matrix_row(int lane) { return (lane / 4 & 4) + (lane / 2 & 3); }
METAL_EMULATOR_UNCHECKED inline int matrix_col(int lane) { return (lane / 4 & 2) * 2 + (lane & 1) * 2; }

template <typename T> struct MatrixAccess {
    vec<T, 2> * e;
    T * p;
    ulong stride;
    bool transpose;
    METAL_EMULATOR_UNCHECKED T * at(int lane, int k) const {
        const ulong r = matrix_row(lane), c = matrix_col(lane) + k;
        return transpose ? p + c * stride + r : p + r * stride + c;
    }
};

template <typename T> METAL_EMULATOR_UNCHECKED void require_uniform(void ** args, unsigned mask) {
    if (mask != 0xffffffffu) metal_emulator_fail("matrix operation while some lanes of the SIMD group are inactive");
    const auto & a = *(MatrixAccess<T> *) args[0];
    for (int i = 1; i < 32; ++i) {
        const auto & o = *(MatrixAccess<T> *) args[i];
        if (o.p != a.p || o.stride != a.stride || o.transpose != a.transpose) {
            metal_emulator_fail("matrix operation: pointer or stride not uniform over the SIMD group");
        }
    }
}

METAL_EMULATOR_UNCHECKED inline void matrix_access(const void * p, size_t n, bool write, int lane) {
#ifdef METAL_EMULATOR_CHECK
    metal_emulator_access(p, n, write, lane);
#else
    (void) p;
    (void) n;
    (void) write;
    (void) lane;
#endif
}

template <typename T, typename U> void simdgroup_load(simdgroup_matrix<T, 8, 8> & m, const U * p, ulong stride = 8,
                                                      ulong2 = ulong2(0), bool transpose = false, METAL_EMULATOR_AT) {
    static_assert(std::is_same_v<T, U>, "simdgroup_load: element types differ");
    MatrixAccess<T> access{&m.e, (T *) p, stride, transpose};
    metal_emulator_collective(
        METAL_EMULATOR_LOC("simdgroup_load"), &access, +[](void ** args, unsigned mask) METAL_EMULATOR_UNCHECKED {
            require_uniform<T>(args, mask);
            for (int i = 0; i < 32; ++i)
                for (int k = 0; k < 2; ++k) {
                    const auto & a = *(MatrixAccess<T> *) args[i];
                    matrix_access(a.at(i, k), sizeof(T), false, i);
                    (*a.e)[k] = *a.at(i, k);
                }
        });
}

template <typename T, typename U> void simdgroup_store(const simdgroup_matrix<T, 8, 8> & m, U * p, ulong stride = 8,
                                                       ulong2 = ulong2(0), bool transpose = false, METAL_EMULATOR_AT) {
    static_assert(std::is_same_v<T, U>, "simdgroup_store: element types differ");
    MatrixAccess<T> access{(vec<T, 2> *) &m.e, p, stride, transpose};
    metal_emulator_collective(
        METAL_EMULATOR_LOC("simdgroup_store"), &access, +[](void ** args, unsigned mask) METAL_EMULATOR_UNCHECKED {
            require_uniform<T>(args, mask);
            for (int i = 0; i < 32; ++i)
                for (int k = 0; k < 2; ++k) {
                    const auto & a = *(MatrixAccess<T> *) args[i];
                    matrix_access(a.at(i, k), sizeof(T), true, i);
                    *a.at(i, k) = (*a.e)[k];
                }
        });
}

template <typename TD, typename TA, typename TB, typename TC> struct Product {
    vec<TD, 2> * d;
    const vec<TA, 2> * a;
    const vec<TB, 2> * b;
    const vec<TC, 2> * c;
};

// d = a*b + c
template <typename TD, typename TA, typename TB, typename TC>
void simdgroup_multiply_accumulate(simdgroup_matrix<TD, 8, 8> & d, const simdgroup_matrix<TA, 8, 8> & a,
                                   const simdgroup_matrix<TB, 8, 8> & b, const simdgroup_matrix<TC, 8, 8> & c,
                                   METAL_EMULATOR_AT) {
    typedef Product<TD, TA, TB, TC> P;
    P product{&d.e, &a.e, &b.e, &c.e};
    metal_emulator_collective(
        METAL_EMULATOR_LOC("simdgroup_multiply_accumulate"), &product,
        +[](void ** args, unsigned mask) METAL_EMULATOR_UNCHECKED {
            if (mask != 0xffffffffu)
                metal_emulator_fail("matrix product while some lanes of the SIMD group are inactive");
            float A[8][8], B[8][8], D[8][8];
            for (int i = 0; i < 32; ++i)
                for (int k = 0; k < 2; ++k) {
                    const P & x = *(P *) args[i];
                    const int r = matrix_row(i), q = matrix_col(i) + k;
                    A[r][q] = (float) (*x.a)[k];
                    B[r][q] = (float) (*x.b)[k];
                    D[r][q] = (float) (*x.c)[k];
                }
            for (int i = 0; i < 8; ++i)
                for (int k = 0; k < 8; ++k)
                    for (int j = 0; j < 8; ++j) D[i][j] += A[i][k] * B[k][j];
            for (int i = 0; i < 32; ++i)
                for (int k = 0; k < 2; ++k) { (*((P *) args[i])->d)[k] = (TD) D[matrix_row(i)][matrix_col(i) + k]; }
        });
}

template <typename TD, typename TA, typename TB>
void simdgroup_multiply(simdgroup_matrix<TD, 8, 8> & d, const simdgroup_matrix<TA, 8, 8> & a,
                        const simdgroup_matrix<TB, 8, 8> & b, METAL_EMULATOR_AT) {
    const auto zero = make_filled_simdgroup_matrix<TD, 8>((TD) 0);
    simdgroup_multiply_accumulate(d, a, b, zero, file_, line_, col_);
}

} // namespace metal
