// Single ops for one pair of cache types.
#pragma once
#include "reference.h"

#include <functional>

struct Pair {
    ggml_type k, v;
    std::string name;
};

struct Outcome {
    bool ok;
    double nmse, limit;
    std::string detail;
};

struct Case {
    std::string name;
    std::function<Outcome(ggml_backend_t)> run;
};

std::vector<Case> row_cases(ggml_type type); // SET_ROWS, GET_ROWS, CPY both ways
std::vector<Case>
block_cases(ggml_type type); // the encoder over many blocks, for a type that defines the bytes of each
std::vector<Case> vec_cases(const Pair & pair, int dk, int dv);
std::vector<Case> matrix_cases(const Pair & pair, int dk, int dv);
std::vector<Case> long_case(const Pair & pair, int dk, int dv);
std::vector<Case> size_cases(const Pair & pair, int dk, int dv);
