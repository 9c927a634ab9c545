// What the executor noticed, what of it is known of the unpatched kernels, and the report at the end of the process.
#pragma once
#include "executor.h"
#include "source.h"

namespace metal_emulator {

// site: where it happened; other: the access it conflicts with, if any. One finding per kernel, kind and pair of
// places.
void add_error(const char * kind, const std::string & text, Site site = {}, Site other = {});
void add_note(const char * kind, const std::string & text, Site site = {}, Site other = {});
bool already_found(const char * kind, Site site, Site other); // counts it again if so: asked before a text is built

void set_current_kernel(const Kernel * k);
void count_dispatch(const Kernel & k);
void write_report();

struct Totals {
    uint64_t dispatches, threadgroups, threads, collectives, barriers, accesses;
};
extern Totals totals;

} // namespace metal_emulator
