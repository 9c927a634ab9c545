#include "group.h"

#include "findings.h"
#include "memory.h"

#include <algorithm>
#include <map>

namespace metal_emulator {

const char * collective_frame = nullptr;
Group running_group;

namespace {

bool same_place(const Loc & a, const Loc & b) {
    return a.line == b.line && a.col == b.col && a.op == b.op && a.file == b.file;
}

void thread_main() { running_group.run_thread(); }

} // namespace

void Group::make_ready(GpuThread & t) {
    t.state = State::READY;
    ready.add((int) t.thread);
}

// the running thread cannot go on: run another one, or go back to the scheduler
void Group::leave(GpuThread & self) {
    const int next = stopped ? -1 : ready.take();
    if (next < 0) {
        fiber_switch(self.fiber, scheduler);
        return;
    }
    GpuThread & t = threads[next];
    t.state = State::RUNNING;
    metal_emulator_lane = &t;
    if (&t != &self) fiber_switch(self.fiber, t.fiber);
}

void Group::run_thread() {
    dispatch->kernel->invoke(dispatch->buffers);
    GpuThread & t = current_thread();
    t.state = State::DONE;
    --n_live;
    --simdgroups[t.simdgroup].live;
    leave(t);
    __builtin_unreachable();
}

void Group::complete_collective(unsigned group, unsigned mask) {
    void * args[SIMD_WIDTH] = {};
    GpuThread & first = thread_of(group, __builtin_ctz(mask));
    for (int i = 0; i < SIMD_WIDTH; ++i)
        if (mask >> i & 1) args[i] = thread_of(group, i).arg;
    if (first.collective) {
        Lane * const running = metal_emulator_lane;
        metal_emulator_lane = &first;
        collective_frame = (const char *) __builtin_frame_address(0);
        first.collective(args, mask);
        collective_frame = nullptr;
        metal_emulator_lane = running;
    }
    SimdGroup & g = simdgroups[group];
    ++g.meetings;
    if (!first.collective && (first.flags & FLAG_THREADGROUP)) ++g.fences;
    g.waiting = 0;
    for (int i = 0; i < SIMD_WIDTH; ++i)
        if (mask >> i & 1) make_ready(thread_of(group, i));
}

// the lanes of a SIMD group that wait at one place, if all that have not returned do; else 0
unsigned Group::gathered(unsigned group) {
    const SimdGroup & g = simdgroups[group];
    if (!g.live || g.waiting != g.live) return 0;
    unsigned mask = 0;
    for (int i = 0; i < g.size; ++i)
        if (thread_of(group, i).state != State::DONE) mask |= 1u << i;
    const Loc & loc = thread_of(group, __builtin_ctz(mask)).loc;
    for (int i = 0; i < g.size; ++i) {
        if ((mask >> i & 1) && !same_place(thread_of(group, i).loc, loc)) return 0;
    }
    return mask;
}

void Group::release_barrier(int flags) {
    ++group_meetings;
    if (flags & FLAG_THREADGROUP) ++group_fences;
    n_in_barrier = 0;
    for (int t = 0; t < n_threads; ++t)
        if (threads[t].state == State::IN_THREADGROUP) make_ready(threads[t]);
}

void Group::report_divergence() {
    std::map<std::string, int> places;
    Site site;
    for (int t = 0; t < n_threads; ++t) {
        const bool done = threads[t].state == State::DONE;
        if (!done) site = Site::at(threads[t].loc);
        ++places[done ? "returned" : Site::at(threads[t].loc).str()];
    }
    std::string text = "threads wait for each other at different places:";
    for (auto & [place, n] : places)
        text += " {" + std::to_string(n) + " of " + std::to_string(n_threads) + ": " + place + "}";
    add_error("divergence", text, site);
}

// nothing is runnable: let those go on whom only returned threads would keep waiting; false: nobody can
bool Group::resolve() {
    bool any = false;
    on_scheduler = true;
    try {
        for (unsigned g = 0; (int) g * SIMD_WIDTH < n_threads; ++g) {
            if (const unsigned mask = gathered(g)) {
                complete_collective(g, mask);
                any = true;
            }
        }
    } catch (const Stopped &) { metal_emulator_lane = nullptr; }
    on_scheduler = false;
    if (stopped) return false;
    if (any) return true;
    if (n_in_barrier && n_in_barrier == n_live) {
        const GpuThread * t =
            std::find_if(threads, threads + n_threads, [](const GpuThread & x) { return x.state != State::DONE; });
        add_error("divergence",
                  "barrier reached by " + std::to_string(n_live) + " of " + std::to_string(n_threads)
                      + " threads: the others have returned",
                  Site::at(t->loc));
        release_barrier(t->flags);
        return true;
    }
    report_divergence();
    return false;
}

void Group::prepare_threads(const Dispatch & d, const unsigned (&pos)[3]) {
    ready.clear();
    for (int i = 0; i < n_threads; ++i) {
        GpuThread & t = threads[i];
        const unsigned x = d.group[0], y = d.group[1], p[3] = {i % x, i / x % y, i / x / y};
        for (int k = 0; k < 3; ++k) {
            t.group_pos[k] = pos[k];
            t.thread_pos[k] = p[k];
            t.group_size[k] = d.group[k];
            t.grid_size[k] = d.grid[k];
        }
        t.thread = i;
        t.lane = i % SIMD_WIDTH;
        t.simdgroup = i / SIMD_WIDTH;
        t.n_simdgroups = (n_threads + SIMD_WIDTH - 1) / SIMD_WIDTH;
        for (int k = 0; k < MAX_GROUP_ARGS; ++k) t.group_memory[k] = group_memory(d, k);
        fiber_reset(t.fiber, thread_main);
        make_ready(t);
    }
    for (int s = 0; s * SIMD_WIDTH < n_threads; ++s) {
        const int size = std::min(SIMD_WIDTH, n_threads - s * SIMD_WIDTH);
        simdgroups[s] = {size, size, 0, 0, 0};
    }
}

void Group::wait_in_simdgroup(GpuThread & t, Loc loc, void * arg, Collective fn, int flags) {
    t.loc = loc;
    t.arg = arg;
    t.collective = fn;
    t.flags = flags;
    t.state = State::IN_SIMDGROUP;
    SimdGroup & g = simdgroups[t.simdgroup];
    if (++g.waiting == g.size) {
        if (const unsigned mask = gathered(t.simdgroup)) complete_collective(t.simdgroup, mask);
    }
    leave(t);
}

void Group::wait_in_threadgroup(GpuThread & t, Loc loc, int flags) {
    t.loc = loc;
    t.flags = flags;
    t.state = State::IN_THREADGROUP;
    if (++n_in_barrier == n_threads) {
        for (int i = 0; i < n_threads; ++i) {
            if (same_place(threads[i].loc, loc)) continue;
            report_divergence();
            stop();
        }
        release_barrier(flags);
    }
    leave(t);
}

void Group::stop() {
    stopped = true;
    if (on_scheduler) throw Stopped();
    fiber_switch(current_thread().fiber, scheduler);
    __builtin_unreachable();
}

bool Group::run(const Dispatch & d, const unsigned (&pos)[3]) {
    dispatch = &d;
    n_threads = n_live = d.group[0] * d.group[1] * d.group[2];
    n_in_barrier = 0;
    group_meetings = group_fences = 0;
    stopped = false;
    collective_frame = nullptr; // one may have been stopped
    prepare_threads(d, pos);
    while (n_live && !stopped) {
        const int next = ready.take();
        if (next < 0) {
            if (!resolve()) stopped = true;
            continue;
        }
        threads[next].state = State::RUNNING;
        metal_emulator_lane = &threads[next];
        fiber_switch(scheduler, threads[next].fiber);
        metal_emulator_lane = nullptr;
    }
    metal_emulator_lane = nullptr;
    return !stopped;
}

} // namespace metal_emulator
