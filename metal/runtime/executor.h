// Runs one dispatch: what a ggml backend needs to know of the executor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace metal_emulator {

struct Extent {
    const char * lo = nullptr;
    const char * hi = nullptr;
    bool holds(const void * p, size_t n) const { return (const char *) p >= lo && (const char *) p + n <= hi; }
};

struct ConstantValue {
    int64_t value;
    int size;
};
typedef std::map<int, ConstantValue> ConstantValues;

struct Kernel {
    const void * unit; // the source file that defines it: function constants belong to a unit
    std::string file, name;
    void (*invoke)(void * const *);
    int n_buffers;
};

constexpr int MAX_BUFFERS = 32, MAX_GROUP_ARGS = 4, MAX_THREADS = 1024, SIMD_WIDTH = 32;

struct Dispatch {
    const Kernel * kernel = nullptr;
    const ConstantValues * constants = nullptr;
    void * buffers[MAX_BUFFERS] = {};
    Extent extents[MAX_BUFFERS] = {}; // lo == nullptr: not bound
    size_t group_memory[MAX_GROUP_ARGS] = {};
    int grid[3] = {1, 1, 1};  // threadgroups
    int group[3] = {1, 1, 1}; // threads of one
};

const Kernel * find_kernel(const std::string & name);
bool run(const Dispatch & d); // false: a finding stopped it, or added an error

// findings
void report_error(const char * kind, const std::string & text);
int n_errors();

} // namespace metal_emulator

extern const char * metal_emulator_variant; // "fast" or "check", set by the loaded backend
