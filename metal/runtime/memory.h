// Threadgroup memory (arguments and in-kernel variables), and what else a kernel may touch.
#pragma once
#include "executor.h"
#include "source.h"

namespace metal_emulator {

struct GpuThread;

// bytes behind each threadgroup argument that can still be written: an overrun is reported, and the run goes on
constexpr size_t GROUP_CAPACITY = 64 * 1024, GROUP_SLACK = 2048;

void memory_begin_dispatch(const Dispatch & d);
void memory_begin_group(const Dispatch & d); // threadgroup memory is undefined (NaN) again
void * group_memory(const Dispatch & d, int i);

// one access of one GPU thread; reports, and stops the dispatch if the access itself would be harmful
enum class Access { READ, WRITE, READ_WRITE };
void check_access(const void * p, size_t n, Access access, Site site, const GpuThread & thread);

} // namespace metal_emulator
