#pragma once

namespace metal_emulator {

// Integer division by zero has an undefined value in Metal and does not trap: the kernel goes on with 0, and a note is
// left. A fault in a kernel stops the dispatch with a finding that names the place.
void install_fault_handlers();

} // namespace metal_emulator
