// How a kernel function becomes callable by name: its buffers are the parameters without a default argument (keywords.h
// turns the attributes of all other parameters into default arguments).
#pragma once
#include "abi.h"

#include <type_traits>
#include <utility>

namespace metal {
template <typename T, int N> struct vec;
}

namespace metal_emulator {

// ---- values of attributed parameters
struct Position {
    unsigned v[3];
    template <class T, class = std::enable_if_t<std::is_integral_v<T>>> operator T() const { return (T) v[0]; }
    template <class T> operator metal::vec<T, 2>() const { return metal::vec<T, 2>((T) v[0], (T) v[1]); }
    template <class T> operator metal::vec<T, 3>() const { return metal::vec<T, 3>((T) v[0], (T) v[1], (T) v[2]); }
};

enum Builtin {
    GROUP_POS,
    THREAD_POS,
    GROUP_SIZE,
    LANE,
    SIMDGROUP,
    THREAD,
    GRID_SIZE,
    GRID_POS,
    N_SIMDGROUPS,
    SIMD_WIDTH
};

struct Index {
    constexpr int operator[](int i) const { return i; }
};

struct Builtins {
    METAL_EMULATOR_UNCHECKED Position operator[](int which) const {
        const Lane & l = *metal_emulator_lane;
        auto all = [](const unsigned * p) { return Position{{p[0], p[1], p[2]}}; };
        auto one = [](unsigned x) { return Position{{x, 0, 0}}; };
        switch (which) {
        case GROUP_POS: return all(l.group_pos);
        case THREAD_POS: return all(l.thread_pos);
        case GROUP_SIZE: return all(l.group_size);
        case GRID_SIZE: return all(l.grid_size);
        case LANE: return one(l.lane);
        case SIMDGROUP: return one(l.simdgroup);
        case THREAD: return one(l.thread);
        case N_SIMDGROUPS: return one(l.n_simdgroups);
        case SIMD_WIDTH: return one(32);
        default: break;
        }
        unsigned p[3]; // GRID_POS
        for (int i = 0; i < 3; ++i) p[i] = l.group_pos[i] * l.group_size[i] + l.thread_pos[i];
        return all(p);
    }
};

struct AnyPointer {
    void * p;
    template <class T> operator T *() const { return (T *) p; }
};
struct GroupMemory {
    METAL_EMULATOR_UNCHECKED AnyPointer operator[](int i) const { return {metal_emulator_lane->group_memory[i]}; }
};

inline constexpr Index index{};
inline constexpr Builtins builtin{};
inline constexpr GroupMemory group_memory{};

// ---- `threadgroup T name[..];` inside a kernel: one instance per threadgroup, with room around it
template <class T> struct alignas(64) Guarded {
    unsigned char before[GUARD];
    T value;
    unsigned char after[GUARD];
};

// ---- kernels
template <class... P> struct Types {};
template <class F> struct Parameters;
template <class... P> struct Parameters<void (*)(P...)> {
    typedef Types<P...> type;
    static constexpr int count = sizeof...(P);
};
template <int I, class L> struct At;
template <class H, class... T> struct At<0, Types<H, T...>> {
    typedef H type;
};
template <int I, class H, class... T> struct At<I, Types<H, T...>> {
    typedef typename At<I - 1, Types<T...>>::type type;
};

template <class P> decltype(auto) buffer_argument(void * p) {
    if constexpr (std::is_reference_v<P>) {
        return *(std::remove_reference_t<P> *) p;
    } else {
        return (P) p;
    }
}

template <class Call, class L, int... I> constexpr bool callable(std::integer_sequence<int, I...>) {
    return std::is_invocable_v<Call, typename At<I, L>::type...>;
}

template <class Call, class L, int N, int Max> constexpr int count_buffers() {
    if constexpr (callable<Call, L>(std::make_integer_sequence<int, N>{})) {
        return N;
    } else {
        static_assert(N < Max, "kernel not callable: a parameter without attribute after one with an attribute?");
        return count_buffers<Call, L, N + 1, Max>();
    }
}

template <class Call, class L, int... I> void call(void * const * buffers, std::integer_sequence<int, I...>) {
    Call{}(buffer_argument<typename At<I, L>::type>(buffers[I])...);
}

static const char unit = 0; // its address names the kernel source file

struct KernelEntry {
    template <class F, class Call> KernelEntry(const char * file, const char * name, F, Call) {
        typedef typename Parameters<F>::type L;
        constexpr int n = count_buffers<Call, L, 0, Parameters<F>::count>();
        auto invoke = +[](void * const * buffers) { call<Call, L>(buffers, std::make_integer_sequence<int, n>{}); };
        metal_emulator_register_kernel(&unit, file, name, invoke, n);
    }
};

struct ConstantEntry {
    ConstantEntry(int index, void * address, int size, const char * name) {
        metal_emulator_register_constant(&unit, index, address, size, name);
    }
};

} // namespace metal_emulator

#define METAL_EMULATOR_JOIN_(a, b) a##b
#define METAL_EMULATOR_JOIN(a, b)  METAL_EMULATOR_JOIN_(a, b)

// the lambda sees the default arguments of the kernel, which a function pointer does not carry
#define METAL_EMULATOR_KERNEL(host_name, ...)                                                            \
    static const ::metal_emulator::KernelEntry METAL_EMULATOR_JOIN(metal_emulator_kernel_, __COUNTER__)( \
        __FILE__, host_name, &__VA_ARGS__,                                                               \
        [](auto &&... a) -> decltype((void) __VA_ARGS__(static_cast<decltype(a)>(a)...)) {               \
            __VA_ARGS__(static_cast<decltype(a)>(a)...);                                                 \
        });

#define METAL_EMULATOR_CONSTANT(type, name, index)                                             \
    static type name;                                                                          \
    static const ::metal_emulator::ConstantEntry METAL_EMULATOR_JOIN(metal_emulator_constant_, \
                                                                     name)(index, &name, sizeof(name), #name)

#define METAL_EMULATOR_GROUP_VARIABLE(type, name, dims)                                             \
    static ::metal_emulator::Guarded<type dims> METAL_EMULATOR_JOIN(metal_emulator_guarded_, name); \
    auto & name = METAL_EMULATOR_JOIN(metal_emulator_guarded_, name).value;                         \
    metal_emulator_threadgroup_variable((void *) &name, sizeof(name), #name)
