// Kernels with one fault each, and controls without. tests/metal/test_executor.py names what must be found.
// Written in what the rewriting makes of Metal: registered by hand, threadgroup variables through the macro.
#include <metal_stdlib>
using namespace metal;

#define LANES ushort lane[[thread_index_in_simdgroup]], ushort simdgroup[[simdgroup_index_in_threadgroup]], ushort tid[[thread_index_in_threadgroup]]
#define FENCE threadgroup_barrier(mem_flags::mem_threadgroup)

constant float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};

kernel void good(device const float * in, device float * out, threadgroup float * shared [[metal_emulator_group_memory(0)]], LANES) {
    METAL_EMULATOR_GROUP_VARIABLE(float, mine, [64]);
    mine[tid] = in[tid]*table[tid % 4];
    FENCE;
    shared[tid] = mine[63 - tid];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    out[tid] = shared[tid ^ 1] + simd_sum(float4((float) lane))[2] + simd_shuffle_xor((float) lane, 1) + (float) simdgroup;
}

kernel void same_value_written_by_all(device const float *, device float * out, threadgroup float * shared [[metal_emulator_group_memory(0)]], LANES) {
    shared[0] = 7.0f;
    FENCE;
    out[tid] = shared[0] + (float) lane + (float) simdgroup;
}

kernel void written_after_the_own_simdgroup_read(device const float * in, device float * out, threadgroup float * shared [[metal_emulator_group_memory(0)]], LANES) {
    shared[tid] = in[tid];
    FENCE;
    const float all = shared[0] + shared[32]; // over at the next barrier, for all SIMD groups
    FENCE;
    const float first = shared[32*simdgroup];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) shared[tid] = 1.0f;
    out[tid] = all + first + (float) lane;
}

kernel void race_read(device const float * in, device float * out, threadgroup float * shared [[metal_emulator_group_memory(0)]], LANES) {
    shared[tid] = in[tid];
    out[tid] = shared[tid ^ 1] + (float) lane + (float) simdgroup;
}

kernel void race_across_simdgroups(device const float * in, device float * out, threadgroup float * shared [[metal_emulator_group_memory(0)]], LANES) {
    shared[tid] = in[tid];
    simdgroup_barrier(mem_flags::mem_threadgroup); // orders the own SIMD group only
    out[tid] = shared[63 - tid] + (float) lane + (float) simdgroup;
}

// the order decides which SIMD group reads last: a writer in each of the two
kernel void race_write_after_read_0(device const float * in, device float * out, threadgroup float * shared [[metal_emulator_group_memory(0)]], LANES) {
    shared[tid] = in[tid];
    FENCE;
    const float x = shared[0];
    simdgroup_barrier(mem_flags::mem_threadgroup); // the read is over in the own SIMD group only
    if (tid == 0) shared[0] = 1.0f;
    out[tid] = x + (float) lane + (float) simdgroup;
}

kernel void race_write_after_read_1(device const float * in, device float * out, threadgroup float * shared [[metal_emulator_group_memory(0)]], LANES) {
    shared[tid] = in[tid];
    FENCE;
    const float x = shared[0];
    simdgroup_barrier(mem_flags::mem_threadgroup); // the read is over in the own SIMD group only
    if (tid == 32) shared[0] = 1.0f;
    out[tid] = x + (float) lane + (float) simdgroup;
}

kernel void race_behind_mem_none(device const float * in, device float * out, threadgroup float * shared [[metal_emulator_group_memory(0)]], LANES) {
    shared[tid] = in[tid];
    threadgroup_barrier(mem_flags::mem_none);
    out[tid] = shared[63 - tid] + (float) lane + (float) simdgroup;
}

kernel void race_write(device const float * in, device float * out, threadgroup float * shared [[metal_emulator_group_memory(0)]], LANES) {
    shared[0] = in[tid];
    FENCE;
    out[tid] = shared[0] + (float) lane + (float) simdgroup;
}

kernel void race_in_kernel_variable(device const float * in, device float * out, LANES) {
    METAL_EMULATOR_GROUP_VARIABLE(float, mine, [64]);
    mine[tid] = in[tid];
    out[tid] = mine[tid ^ 1] + (float) lane + (float) simdgroup;
}

kernel void uninitialized(device const float *, device float * out, threadgroup float * shared [[metal_emulator_group_memory(0)]], LANES) {
    if (tid < 63) shared[tid] = 1.0f;
    FENCE;
    out[tid] = shared[63 - tid] + (float) lane + (float) simdgroup;
}

kernel void uninitialized_kernel_variable(device const float *, device float * out, LANES) {
    METAL_EMULATOR_GROUP_VARIABLE(float, mine, [64]);
    if (tid < 63) mine[tid] = 1.0f;
    FENCE;
    out[tid] = mine[63 - tid] + (float) lane + (float) simdgroup;
}

kernel void beyond_threadgroup_memory(device const float * in, device float * out, threadgroup float * shared [[metal_emulator_group_memory(0)]], LANES) {
    shared[tid + 1] = in[tid];
    FENCE;
    out[tid] = shared[tid + 1] + (float) lane + (float) simdgroup;
}

kernel void beyond_kernel_variable(device const float * in, device float * out, LANES) {
    METAL_EMULATOR_GROUP_VARIABLE(float, mine, [63]);
    mine[tid] = in[tid];
    FENCE;
    out[tid] = mine[tid] + (float) lane + (float) simdgroup;
}

kernel void beyond_input(device const float * in, device float * out, LANES) {
    out[tid] = in[tid + 1] + (float) lane + (float) simdgroup;
}

kernel void beyond_output(device const float * in, device float * out, LANES) {
    out[tid + 1] = in[tid] + (float) lane + (float) simdgroup;
}

kernel void barrier_in_branch(device const float * in, device float * out, LANES) {
    if (tid < 40) FENCE;
    out[tid] = in[tid] + (float) lane + (float) simdgroup;
}

kernel void barrier_after_return(device const float * in, device float * out, LANES) {
    if (simdgroup == 1) return;
    FENCE;
    out[tid] = in[tid] + (float) lane;
}

kernel void two_barriers(device const float * in, device float * out, LANES) {
    if (simdgroup == 1) {
        FENCE;
    } else {
        FENCE;
    }
    out[tid] = in[tid] + (float) lane;
}

kernel void lanes_apart(device const float * in, device float * out, LANES) {
    float x = in[tid];
    if (lane < 16) x = simd_sum(x); else x = simd_max(x);
    out[tid] = x + (float) simdgroup;
}

kernel void shuffle_from_a_returned_lane(device const float * in, device float * out, LANES) {
    if (lane >= 16) return;
    out[tid] = simd_shuffle_xor(in[tid], 16) + (float) simdgroup;
}

kernel void matrix_pointer_not_uniform(device const float * in, device float * out, LANES) {
    simdgroup_float8x8 m;
    simdgroup_load(m, in + (lane < 16 ? 0 : 0) + (lane == 7 ? 8 : 0), 8);
    out[tid] = m.thread_elements()[0] + (float) simdgroup;
}

#define REGISTER(name) METAL_EMULATOR_KERNEL(#name, name)
REGISTER(good) REGISTER(same_value_written_by_all) REGISTER(written_after_the_own_simdgroup_read)
REGISTER(race_read) REGISTER(race_across_simdgroups) REGISTER(race_write_after_read_0) REGISTER(race_write_after_read_1) REGISTER(race_behind_mem_none) REGISTER(race_write) REGISTER(race_in_kernel_variable)
REGISTER(uninitialized) REGISTER(uninitialized_kernel_variable)
REGISTER(beyond_threadgroup_memory) REGISTER(beyond_kernel_variable) REGISTER(beyond_input) REGISTER(beyond_output)
REGISTER(barrier_in_branch) REGISTER(barrier_after_return) REGISTER(two_barriers) REGISTER(lanes_apart) REGISTER(shuffle_from_a_returned_lane) REGISTER(matrix_pointer_not_uniform)
