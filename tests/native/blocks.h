// Blocks of tq3_0: an independent implementation, and the encoders and the decoder of the library
#pragma once

#include "harness.h"

#define QK 32

struct block {
    uint16_t d;
    uint8_t  qs[12];
};

static_assert(sizeof(block) == 14, "wrong block size");

extern const double centroids[8];

double sign(int i);

// element of the orthonormal Walsh-Hadamard matrix
double hadamard(int i, int j);

std::vector<double> rotate(const float * x);

// the scales that the encoder tries, times the rms
static const int N_SCALES = 6;
double scale(int k);

int  find_code(double v, double s);
bool near_boundary(double v, double s);
int  get_code(const block & b, int i);

std::vector<float> decode(const std::vector<block> & b);

// the reference encoder, and the one that the CPU uses to write the KV cache
std::vector<block> encode_ref(const std::vector<float> & x);
std::vector<block> encode_set_rows(const std::vector<float> & x);
