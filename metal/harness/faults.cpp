// usage: metal-emulator-faults KERNEL: runs one kernel of faults.metal over one threadgroup of 64 threads and prints
// the result.
#include "runtime/executor.h"

#include <cstdio>

int main(int argc, char ** argv) {
    using namespace metal_emulator;
    metal_emulator_variant = "check";
    const Kernel * kernel = argc == 2 ? find_kernel(argv[1]) : nullptr;
    if (!kernel) {
        fprintf(stderr, "usage: metal-emulator-faults KERNEL (of faults.metal)\n");
        return 2;
    }
    float in[64], out[64] = {};
    for (int i = 0; i < 64; ++i) in[i] = (float) i;
    const ConstantValues none;
    Dispatch d;
    d.kernel = kernel;
    d.constants = &none;
    d.buffers[0] = in;
    d.buffers[1] = out;
    d.extents[0] = {(const char *) in, (const char *) (in + 64)};
    d.extents[1] = {(const char *) out, (const char *) (out + 64)};
    d.group_memory[0] = sizeof in;
    d.group[0] = 64;
    const bool ok = run(d);
    for (float x : out) printf("%g ", x);
    printf("\n");
    return ok ? 0 : 1;
}
