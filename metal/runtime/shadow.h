// Who touched each byte of a piece of threadgroup memory, and whether that was ordered by barriers.
#pragma once
#include "scheduler.h"
#include "memory.h"
#include <vector>

namespace metal_host {

class Shadow {
public:
    void resize(size_t n) { if (n > cells.size()) cells.resize(n); }
    void forget() { ++generation; }     // a new threadgroup: nothing is initialised, nobody touched it
    void access(const char * base, size_t offset, size_t n, Access access, Site site, const GpuThread & thread);
private:
    struct Touch { Site site; Progress at; int16_t thread; };
    struct Cell { uint64_t generation = 0; Touch write, read, other_read; };

    static bool ordered(const Touch & before, Progress now, const GpuThread & thread);
    static void read(Cell & c, Site site, const GpuThread & thread);
    static bool write(Cell & c, Site site, const GpuThread & thread);

    std::vector<Cell> cells;
    uint64_t generation = 0;
};

// two unordered writes of the same value are harmless: a conflict is judged when the new value is in memory
void settle_write_conflict();

} // namespace metal_host
