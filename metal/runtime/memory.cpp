#include "memory.h"

#include "findings.h"
#include "registry.h"
#include "scheduler.h"
#include "shadow.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <map>
#include <sys/mman.h>
#include <vector>

namespace metal_emulator {

namespace {

constexpr size_t PAGE = 4096;

// a [[threadgroup(N)]] argument: it ends GROUP_SLACK bytes before a guard page
struct Argument {
    char * area = nullptr;
    Shadow shadow;
    char * begin(size_t size) const { return area + GROUP_CAPACITY - GROUP_SLACK - size; }
};

// a variable declared inside a kernel
struct Variable {
    size_t size;
    uint64_t last_group;
    Shadow shadow;
};

Argument arguments[MAX_GROUP_ARGS];
std::map<const char *, Variable> variables;
std::vector<Extent> readable; // constant tables of the kernel libraries, and the executor's own data
const Dispatch * dispatch;
uint64_t group_count = 0;

void allocate(Argument & a) {
    if (a.area) return;
    char * p = (char *) mmap(nullptr, GROUP_CAPACITY + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + PAGE, GROUP_CAPACITY, PROT_READ | PROT_WRITE)) {
        fprintf(stderr, "metal-emulator: no memory for threadgroup memory\n");
        abort();
    }
    a.area = p + PAGE;
    a.shadow.resize(GROUP_CAPACITY);
}

void find_readable_memory() {
    if (!readable.empty()) return;
    dl_iterate_phdr(
        [](dl_phdr_info * info, size_t, void *) {
            std::vector<Extent> constant;
            bool own = false;
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto & h = info->dlpi_phdr[i];
                const char * lo = (const char *) info->dlpi_addr + h.p_vaddr;
                const Extent e{lo, lo + h.p_memsz};
                if (h.p_type == PT_LOAD && e.holds(&dispatch, 1)) own = true, readable.push_back(e);
                if ((h.p_type == PT_LOAD && !(h.p_flags & PF_W)) || h.p_type == PT_GNU_RELRO) constant.push_back(e);
            }
            if (!own) readable.insert(readable.end(), constant.begin(), constant.end());
            return 0;
        },
        nullptr);
}

const char * verb(Access a) { return a == Access::READ ? "read" : "write"; }

std::string describe(const char * what, Access a, size_t n, long offset, size_t size, const GpuThread & t) {
    char b[300];
    snprintf(b, sizeof b, "%s of %zu bytes at offset %ld of %s with %zu bytes, thread %u (SIMD group %u, lane %u)",
             verb(a), n, offset, what, size, t.thread, t.simdgroup, t.lane);
    return b;
}

bool check_argument(int k, const char * p, size_t n, Access access, Site site, const GpuThread & thread) {
    Argument & a = arguments[k];
    if (!a.area || p < a.area - PAGE || p >= a.area + GROUP_CAPACITY + PAGE) return false;
    const size_t size = dispatch->group_memory[k];
    const char * lo = a.begin(size);
    if (p < lo || p + n > lo + size) {
        if (!already_found("threadgroup-out-of-bounds", site, {})) {
            const std::string what = "threadgroup memory " + std::to_string(k);
            add_error("threadgroup-out-of-bounds", describe(what.c_str(), access, n, (long) (p - lo), size, thread),
                      site);
        }
        if (p < lo || p + n > lo + size + GROUP_SLACK) stop();
        return true;
    }
    a.shadow.access(a.area, (size_t) (p - a.area), n, access, site, thread);
    return true;
}

bool check_variable(const char * p, size_t n, Access access, Site site, const GpuThread & thread) {
    auto it = variables.upper_bound(p + GUARD);
    if (it == variables.begin()) return false;
    --it;
    const char * lo = it->first;
    Variable & v = it->second;
    if (p < lo - GUARD || p >= lo + v.size + GUARD) return false;
    if (p < lo || p + n > lo + v.size) {
        add_error("threadgroup-out-of-bounds",
                  describe("an in-kernel threadgroup variable", access, n, (long) (p - lo), v.size, thread), site);
        return true;
    }
    v.shadow.access(lo, (size_t) (p - lo), n, access, site, thread);
    return true;
}

bool check_buffers(const char * p, size_t n) {
    static int last = 0;
    if (dispatch->extents[last].lo && dispatch->extents[last].holds(p, n)) return true;
    for (int i = 0; i < MAX_BUFFERS; ++i) {
        if (dispatch->extents[i].lo && dispatch->extents[i].holds(p, n)) {
            last = i;
            return true;
        }
    }
    return false;
}

// a variable of the code that a collective runs: it need not be on the stack of the thread that the access is counted
// for
bool is_local_to_collective(const char * p) {
    return collective_frame && p < collective_frame && p >= (const char *) __builtin_frame_address(0);
}

std::string nearest_buffer(const char * p) {
    std::string text;
    for (int i = 0; i < MAX_BUFFERS; ++i) {
        const Extent & e = dispatch->extents[i];
        if (!e.lo || p < e.lo - 65536 || p >= e.hi + 65536) continue;
        text += " offset " + std::to_string(p - e.lo) + " of buffer " + std::to_string(i) + " with "
                + std::to_string(e.hi - e.lo) + " bytes;";
    }
    return text.empty() ? " an address near no bound buffer;" : text;
}

} // namespace

void memory_begin_dispatch(const Dispatch & d) {
    dispatch = &d;
    find_readable_memory();
    for (int i = 0; i < MAX_GROUP_ARGS; ++i)
        if (d.group_memory[i]) allocate(arguments[i]);
}

void memory_begin_group(const Dispatch & d) {
    ++group_count;
    for (int i = 0; i < MAX_GROUP_ARGS; ++i) {
        if (!d.group_memory[i]) continue;
        memset(group_memory(d, i), 0xff, d.group_memory[i] + GROUP_SLACK);
        arguments[i].shadow.forget();
    }
}

void * group_memory(const Dispatch & d, int i) {
    return d.group_memory[i] ? arguments[i].begin(d.group_memory[i]) : nullptr;
}

void check_access(const void * address, size_t n, Access access, Site site, const GpuThread & thread) {
    const char * p = (const char *) address;
    ++totals.accesses;
    settle_write_conflict();
    if (thread.fiber.owns(p) || is_local_to_collective(p) || check_buffers(p, n)) return;
    for (int k = 0; k < MAX_GROUP_ARGS; ++k)
        if (check_argument(k, p, n, access, site, thread)) return;
    if (check_variable(p, n, access, site, thread)) return;
    if (access == Access::READ) {
        for (const Extent & e : readable)
            if (e.holds(p, n)) return;
        if (is_constant(p, n)) return;
    }
    char by[100];
    snprintf(by, sizeof by, " thread %u (SIMD group %u, lane %u)", thread.thread, thread.simdgroup, thread.lane);
    add_error("device-out-of-bounds",
              std::string(verb(access)) + " of " + std::to_string(n) + " bytes at" + nearest_buffer(p) + by, site);
    stop();
}

} // namespace metal_emulator

using namespace metal_emulator;

void metal_emulator_threadgroup_variable(void * p, size_t n, const char *) {
    Variable & v = variables[(const char *) p];
    if (v.last_group == group_count) return;
    v.last_group = group_count;
    v.size = n;
    v.shadow.resize(n);
    v.shadow.forget();
    memset(p, 0xff, n);
}

void metal_emulator_access(const void * p, size_t n, bool write, int lane) {
    GpuThread & t = current_thread();
    check_access(p, n, write ? Access::WRITE : Access::READ, Site::at(t.loc), thread_of(t.simdgroup, lane));
}
