// The state of one running threadgroup: its threads, and who waits for whom.
#pragma once
#include "fiber.h"
#include "order.h"
#include "scheduler.h"

namespace metal_emulator {

struct SimdGroup {
    int size, live, waiting;
    uint32_t meetings, fences;
};

struct Stopped {}; // leaves a collective that runs on the scheduler's stack

class Group {
public:
    GpuThread & thread_of(unsigned simdgroup, unsigned lane) { return threads[simdgroup * SIMD_WIDTH + lane]; }
    Progress meetings(const GpuThread & t) const { return {group_meetings, simdgroups[t.simdgroup].meetings}; }
    Progress fences(const GpuThread & t) const { return {group_fences, simdgroups[t.simdgroup].fences}; }

    bool run(const Dispatch & d, const unsigned (&pos)[3]); // false: stopped by a finding
    [[noreturn]] void stop();
    [[noreturn]] void run_thread(); // on the stack of the current thread
    void wait_in_threadgroup(GpuThread & t, Loc loc, int flags);
    void wait_in_simdgroup(GpuThread & t, Loc loc, void * arg, Collective fn, int flags);

private:
    GpuThread threads[MAX_THREADS];
    SimdGroup simdgroups[MAX_THREADS / SIMD_WIDTH];
    ReadySet ready;
    Fiber scheduler;
    const Dispatch * dispatch = nullptr;
    int n_threads = 0, n_live = 0, n_in_barrier = 0;
    uint32_t group_meetings = 0, group_fences = 0;
    bool stopped = false;
    bool on_scheduler = false; // a collective runs on the scheduler's stack, not on a GPU thread's

    void prepare_threads(const Dispatch & d, const unsigned (&pos)[3]);
    void make_ready(GpuThread & t);
    void leave(GpuThread & self);
    void complete_collective(unsigned group, unsigned mask);
    unsigned gathered(unsigned group);
    void release_barrier(int flags);
    void report_divergence();
    bool resolve();
};

extern Group running_group;

} // namespace metal_emulator
