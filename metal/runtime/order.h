// Which of the runnable threads goes next. METAL_EMULATOR_ORDER:
//   reverse        highest SIMD group and lane first (default)
//   forward        lowest first
//   shuffle:SEED   random; lane 0 of a SIMD group after its other lanes: upstream's kernels store results with lane 0
//                  while the other lanes still read, which is right only on hardware whose lanes run in lock step
//   wild:SEED      random without that courtesy: numbers may be wrong where upstream relies on lock step
#pragma once
#include <cstdint>

namespace metal_emulator {

class ReadySet {
public:
    void clear();
    void add(int thread);
    int take(); // -1: nobody
private:
    uint32_t groups = 0; // SIMD groups with runnable lanes
    uint32_t lanes[32] = {};
};

} // namespace metal_emulator
