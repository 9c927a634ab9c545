#include "executor.h"
#include "faults.h"
#include "findings.h"
#include "memory.h"
#include "registry.h"
#include "scheduler.h"
#include "shadow.h"

#include <cstdlib>

const char * metal_emulator_variant = "?";

namespace metal_emulator {

// what Metal's API validation would refuse; empty: fine
static std::string refused(const Dispatch & d) {
    const long threads = (long) d.group[0] * d.group[1] * d.group[2];
    if (threads < 1 || threads > MAX_THREADS) return std::to_string(threads) + " threads in a threadgroup";
    for (int i = 0; i < 3; ++i)
        if (d.grid[i] < 0) return "a negative grid";
    for (int i = 0; i < d.kernel->n_buffers; ++i) {
        if (!d.extents[i].lo) return "buffer " + std::to_string(i) + " is not bound";
    }
    for (size_t n : d.group_memory) {
        if (n % 16) return "threadgroup memory of " + std::to_string(n) + " bytes: not a multiple of 16";
        if (n > 32768) return "threadgroup memory of " + std::to_string(n) + " bytes: more than 32768";
    }
    return "";
}

bool run(const Dispatch & dispatch) {
    static Dispatch d; // outlives the stacks that refer to it
    d = dispatch;
    install_fault_handlers();
    set_current_kernel(d.kernel);
    const int errors_before = n_errors();
    const std::string reason = refused(d);
    if (!reason.empty()) {
        add_error("dispatch", reason);
    } else {
        count_dispatch(*d.kernel);
        specialize(*d.kernel, *d.constants);
        memory_begin_dispatch(d);
        bool go = true;
        unsigned p[3];
        for (p[2] = 0; go && p[2] < (unsigned) d.grid[2]; ++p[2])
            for (p[1] = 0; go && p[1] < (unsigned) d.grid[1]; ++p[1])
                for (p[0] = 0; go && p[0] < (unsigned) d.grid[0]; ++p[0]) {
                    ++totals.threadgroups;
                    totals.threads += d.group[0] * d.group[1] * d.group[2];
                    memory_begin_group(d);
                    go = run_group(d, p);
                    settle_write_conflict();
                }
    }
    set_current_kernel(nullptr);
    return n_errors() == errors_before;
}

} // namespace metal_emulator
