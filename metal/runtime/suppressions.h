// Findings in the unpatched upstream kernels, known by the text of the source line, of the line they conflict with, and
// by the kernel.
#pragma once
#include "source.h"

namespace metal_emulator {

struct Suppression {
    std::string id, kind, file, text;
    std::vector<std::string> against; // lines of the same file; empty: conflicts with any line
    std::vector<std::string> kernels; // patterns as of file names; empty: any kernel
};

// nullptr: this finding is an error
const Suppression * find_suppression(const std::string & kind, const std::string & kernel, Site site, Site other);

} // namespace metal_emulator
