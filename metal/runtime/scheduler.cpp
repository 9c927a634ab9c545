#include "scheduler.h"

#include "findings.h"
#include "group.h"

using namespace metal_emulator;

Lane * metal_emulator_lane = nullptr;

namespace metal_emulator {

GpuThread & current_thread() { return *(GpuThread *) metal_emulator_lane; }
GpuThread & thread_of(unsigned simdgroup, unsigned lane) { return running_group.thread_of(simdgroup, lane); }
Progress meetings(const GpuThread & t) { return running_group.meetings(t); }
Progress fences(const GpuThread & t) { return running_group.fences(t); }
void stop() { running_group.stop(); }
bool run_group(const Dispatch & d, const unsigned (&pos)[3]) { return running_group.run(d, pos); }

} // namespace metal_emulator

void metal_emulator_threadgroup_barrier(Loc loc, int flags) {
    ++totals.barriers;
    running_group.wait_in_threadgroup(current_thread(), loc, flags);
}

void metal_emulator_simdgroup_barrier(Loc loc, int flags) {
    ++totals.barriers;
    running_group.wait_in_simdgroup(current_thread(), loc, nullptr, nullptr, flags);
}

void metal_emulator_collective(Loc loc, void * arg, Collective fn) {
    ++totals.collectives;
    running_group.wait_in_simdgroup(current_thread(), loc, arg, fn, FLAG_NONE);
}

void metal_emulator_fail(const char * message) {
    add_error("simdgroup", message, Site::at(current_thread().loc));
    stop();
}
