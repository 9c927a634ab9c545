// Findings in the unpatched upstream kernels, known by the text of the source line.
#pragma once
#include "source.h"

namespace metal_host {

struct Suppression { std::string id, kind, file, text; };

// nullptr: this finding is an error
const Suppression * find_suppression(const std::string & kind, Site site, Site other);

} // namespace metal_host
