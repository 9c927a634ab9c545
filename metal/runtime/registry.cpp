// Kernels and function constants, registered by the kernel libraries when they are loaded.
#include "registry.h"

#include "findings.h"
#include "metal_emulator/abi.h"

#include <cstring>
#include <unordered_map>

namespace metal_emulator {

struct Constant {
    const void * unit;
    int index;
    void * address;
    int size;
    std::string name;
};

// built on first use: kernel libraries are initialised before this file's statics would be
static std::unordered_map<std::string, Kernel> & kernels() {
    static std::unordered_map<std::string, Kernel> m;
    return m;
}
static std::vector<Constant> & constants() {
    static std::vector<Constant> v;
    return v;
}

const Kernel * find_kernel(const std::string & name) {
    auto it = kernels().find(name);
    return it == kernels().end() ? nullptr : &it->second;
}

void specialize(const Kernel & k, const ConstantValues & values) {
    for (const Constant & c : constants()) {
        if (c.unit != k.unit) continue;
        auto it = values.find(c.index);
        if (it == values.end()) {
            memset(c.address, 0x5a, c.size); // not defined for this pipeline: must not be used
            continue;
        }
        if (it->second.size != c.size) {
            add_error("function-constant", c.name + " (" + std::to_string(c.index) + "): the host sets "
                                               + std::to_string(it->second.size) + " bytes, the kernel declares "
                                               + std::to_string(c.size));
        }
        memcpy(c.address, &it->second.value, c.size);
    }
}

bool is_constant(const void * p, size_t n) {
    for (const Constant & c : constants()) {
        if (p >= c.address && (const char *) p + n <= (const char *) c.address + c.size) return true;
    }
    return false;
}

} // namespace metal_emulator

using namespace metal_emulator;

void metal_emulator_register_kernel(const void * unit, const char * file, const char * name, Invoke invoke,
                                    int n_buffers) {
    if (!kernels().emplace(name, Kernel{unit, file, name, invoke, n_buffers}).second)
        report_error("duplicate-kernel", name);
}

void metal_emulator_register_constant(const void * unit, int index, void * address, int size, const char * name) {
    constants().push_back({unit, index, address, size, name});
}
