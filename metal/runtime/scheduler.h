// The threads of one threadgroup, run one at a time until each waits for others.
#pragma once
#include "executor.h"
#include "fiber.h"
#include "metal_emulator/abi.h"

namespace metal_emulator {

enum class State : uint8_t { READY, RUNNING, IN_SIMDGROUP, IN_THREADGROUP, DONE };

struct GpuThread : Lane {
    Fiber fiber;
    State state;
    Loc loc;               // where it waits
    void * arg;            // what it brings to a collective
    Collective collective; // nullptr: a barrier
    int flags;
};

// runs the threadgroup at `pos`; false: stopped by a finding
bool run_group(const Dispatch & d, const unsigned (&pos)[3]);
[[noreturn]] void stop(); // called by the running GPU thread: leave this dispatch

// While a collective runs, for all its lanes on the stack of one of them or of the scheduler: its frames lie below.
// Else nullptr.
extern const char * collective_frame;

GpuThread & current_thread();
GpuThread & thread_of(unsigned simdgroup, unsigned lane);

// How often threads have met, and how often a barrier has made writes to threadgroup memory visible: in the whole
// threadgroup, and in one SIMD group. A read is over when its thread meets another; a write needs the barrier.
struct Progress {
    uint32_t group, simdgroup;
};
Progress meetings(const GpuThread & t);
Progress fences(const GpuThread & t);

} // namespace metal_emulator
