// What compiled kernels and the executor know of each other. Everything else is private to one side.
#pragma once
#include <cstddef>
#include <cstdint>

// metal_emulator code that runs on behalf of a kernel must not be seen by the access checker
#define METAL_EMULATOR_UNCHECKED __attribute__((no_sanitize("thread")))

namespace metal_emulator {

// a place in a kernel where threads wait for each other
struct Loc {
    const char * file;
    int line;
    int col;
    const char * op;
};

// what a GPU thread knows about itself
struct Lane {
    unsigned group_pos[3];  // threadgroup_position_in_grid
    unsigned thread_pos[3]; // thread_position_in_threadgroup
    unsigned group_size[3]; // threads_per_threadgroup
    unsigned grid_size[3];  // threadgroups_per_grid
    unsigned thread;        // thread_index_in_threadgroup
    unsigned lane;          // thread_index_in_simdgroup
    unsigned simdgroup;     // simdgroup_index_in_threadgroup
    unsigned n_simdgroups;  // simdgroups_per_threadgroup
    void * group_memory[4]; // [[threadgroup(N)]] arguments
};

// runs once for all lanes of a SIMD group; args[i] is lane i's argument, bit i of mask says whether lane i takes part
typedef void (*Collective)(void ** args, unsigned mask);
typedef void (*Invoke)(void * const * buffers);

// bytes around a variable in threadgroup memory
constexpr size_t GUARD = 256;

enum Flags { FLAG_NONE = 0, FLAG_DEVICE = 1, FLAG_THREADGROUP = 2, FLAG_TEXTURE = 4 };

} // namespace metal_emulator

extern "C" {
extern metal_emulator::Lane * metal_emulator_lane; // the running GPU thread

void metal_emulator_threadgroup_barrier(metal_emulator::Loc loc, int flags);
void metal_emulator_simdgroup_barrier(metal_emulator::Loc loc, int flags);
void metal_emulator_collective(metal_emulator::Loc loc, void * arg, metal_emulator::Collective fn);

// an access made by a collective on behalf of one lane (checking build only)
void metal_emulator_access(const void * p, size_t n, bool write, int lane);
// a `threadgroup T name[..];` declared inside a kernel, announced by every thread that reaches it
void metal_emulator_threadgroup_variable(void * p, size_t n, const char * name);
[[noreturn]] void metal_emulator_fail(const char * message);

// unit: any address that is unique to one kernel source file
void metal_emulator_register_kernel(const void * unit, const char * file, const char * name,
                                    metal_emulator::Invoke invoke, int n_buffers);
void metal_emulator_register_constant(const void * unit, int index, void * address, int size, const char * name);
}
