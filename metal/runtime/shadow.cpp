#include "shadow.h"

#include "findings.h"

#include <cstring>

namespace metal_emulator {

static struct {
    const void * p = nullptr;
    size_t n = 0;
    char before[64];
    Site site, other;
} conflict;

static void begin_write_conflict(const void * p, size_t n, Site site, Site other) {
    if (already_found("write-write-race", site, other)) return;
    conflict.p = p;
    conflict.n = n < sizeof conflict.before ? n : sizeof conflict.before;
    memcpy(conflict.before, p, conflict.n);
    conflict.site = site;
    conflict.other = other;
}

void settle_write_conflict() {
    if (!conflict.p) return;
    const void * p = conflict.p;
    conflict.p = nullptr;
    if (memcmp(p, conflict.before, conflict.n) != 0) {
        add_error("write-write-race", "two unsynchronised writes of different values to the same threadgroup memory",
                  conflict.site, conflict.other);
    }
}

// something lies between that the whole threadgroup, or the SIMD group that both belong to, has reached
bool Shadow::ordered(const Touch & before, Progress now, const GpuThread & thread) {
    return before.thread < 0 || before.thread == (int) thread.thread || before.at.group != now.group
           || (before.thread / SIMD_WIDTH == (int) thread.simdgroup && before.at.simdgroup != now.simdgroup);
}

void Shadow::remember_read(Cell & c, const Touch & now) {
    if (c.read.thread / SIMD_WIDTH != now.thread / SIMD_WIDTH) c.far_read = c.read;
    else if (c.read.thread != now.thread) c.other_read = c.read;
    c.read = now;
}

void Shadow::read(Cell & c, Site site, const GpuThread & thread) {
    if (c.write.thread < 0) {
        if (!already_found("uninitialized-read", site, {}))
            add_error("uninitialized-read", "read of threadgroup memory that nobody has written", site);
    } else if (!ordered(c.write, fences(thread), thread)) {
        if (!already_found("read-write-race", site, c.write.site))
            add_error("read-write-race", "read of threadgroup memory, no barrier after another thread's write", site,
                      c.write.site);
    }
    remember_read(c, {site, meetings(thread), (int16_t) thread.thread});
}

// true: another unordered write was there
bool Shadow::write(Cell & c, Site site, const GpuThread & thread) {
    for (const Touch * r : {&c.read, &c.other_read, &c.far_read}) {
        if (ordered(*r, meetings(thread), thread) || already_found("read-write-race", site, r->site)) continue;
        add_error("read-write-race", "write to threadgroup memory that another thread may still be reading", site,
                  r->site);
    }
    const bool conflict = !ordered(c.write, fences(thread), thread);
    c.write = {site, fences(thread), (int16_t) thread.thread};
    return conflict;
}

void Shadow::access(const char * base, size_t offset, size_t n, Access access, Site site, const GpuThread & thread) {
    Site other;
    bool conflict = false;
    for (size_t i = offset; i < offset + n; ++i) {
        Cell & c = cells[i];
        if (c.generation != generation) {
            c.generation = generation;
            c.write.thread = c.read.thread = c.other_read.thread = c.far_read.thread = -1;
        }
        if (access != Access::WRITE) read(c, site, thread);
        if (access != Access::READ) {
            const Site before = c.write.site;
            if (write(c, site, thread)) {
                conflict = true;
                other = before;
            }
        }
    }
    if (conflict) begin_write_conflict(base + offset, n, site, other);
}

} // namespace metal_emulator
