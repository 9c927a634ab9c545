// Blocks of 32 values that tell two encoders apart: many of several distributions, and those at the limits of a format.
#pragma once
#include "graph.h"

#include <functional>

struct Sample {
    std::string name;
    bool limits;                    // not finite, too large, too small: for types that say what becomes of them
    std::function<Floats()> values; // whole rows of 8 blocks
};

std::vector<Sample> samples();
