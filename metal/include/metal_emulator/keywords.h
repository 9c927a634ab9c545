// Metal's keywords and attributes as macros. Address spaces are erased here: tools/address_spaces.py looks at them.
#pragma once

#define thread
#define device
#define constant const
#define threadgroup
#define kernel

// `T name[[some_attribute]]` becomes `T name[[maybe_unused]] = builtin[index[K]]`: a default argument
#define METAL_EMULATOR_BUILTIN(k) maybe_unused]] = ::metal_emulator::builtin[::metal_emulator::index[::metal_emulator::k

#define threadgroup_position_in_grid   METAL_EMULATOR_BUILTIN(GROUP_POS)
#define thread_position_in_threadgroup METAL_EMULATOR_BUILTIN(THREAD_POS)
#define threads_per_threadgroup        METAL_EMULATOR_BUILTIN(GROUP_SIZE)
#define thread_index_in_simdgroup      METAL_EMULATOR_BUILTIN(LANE)
#define simdgroup_index_in_threadgroup METAL_EMULATOR_BUILTIN(SIMDGROUP)
#define thread_index_in_threadgroup    METAL_EMULATOR_BUILTIN(THREAD)
#define threadgroups_per_grid          METAL_EMULATOR_BUILTIN(GRID_SIZE)
#define thread_position_in_grid        METAL_EMULATOR_BUILTIN(GRID_POS)
#define simdgroups_per_threadgroup     METAL_EMULATOR_BUILTIN(N_SIMDGROUPS)
#define threads_per_simdgroup          METAL_EMULATOR_BUILTIN(SIMD_WIDTH)
#define metal_emulator_group_memory(n)      maybe_unused]] = ::metal_emulator::group_memory[::metal_emulator::index[n
