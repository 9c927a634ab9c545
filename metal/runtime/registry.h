#pragma once
#include "executor.h"

namespace metal_emulator {

void specialize(const Kernel & k, const ConstantValues & values); // sets the function constants of k's source file
bool is_constant(const void * p, size_t n);                       // is this memory a function constant?

} // namespace metal_emulator
