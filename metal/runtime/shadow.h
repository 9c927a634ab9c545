// Who touched each byte of a piece of threadgroup memory, and whether that was ordered by barriers.
#pragma once
#include "memory.h"
#include "scheduler.h"

#include <vector>

namespace metal_emulator {

class Shadow {
public:
    void resize(size_t n) {
        if (n > cells.size()) cells.resize(n);
    }
    void forget() { ++generation; } // a new threadgroup: nothing is initialised, nobody touched it
    void access(const char * base, size_t offset, size_t n, Access access, Site site, const GpuThread & thread);

private:
    struct Touch {
        Site site;
        Progress at;
        int16_t thread;
    };
    // Of all reads since the threads last met three suffice: a write that is unordered with any of them is unordered
    // with one of these. read: the latest; other_read: of another thread, for a write by the latest reader itself;
    // far_read: the latest of another SIMD group than the latest, because what orders a write behind the reads of its
    // own SIMD group orders it behind no other's.
    struct Cell {
        uint64_t generation = 0;
        Touch write, read, other_read, far_read;
    };

    static bool ordered(const Touch & before, Progress now, const GpuThread & thread);
    static void remember_read(Cell & c, const Touch & now);
    static void read(Cell & c, Site site, const GpuThread & thread);
    static bool write(Cell & c, Site site, const GpuThread & thread);

    std::vector<Cell> cells;
    uint64_t generation = 0;
};

// two unordered writes of the same value are harmless: a conflict is judged when the new value is in memory
void settle_write_conflict();

} // namespace metal_emulator
