// The objects behind ggml-metal's C interface, which the two Objective-C files of the real backend define.
#pragma once
#include "ggml-metal-context.h"
#include "ggml-metal-device.h"
#include "ggml-metal-fusion.h"
#include "runtime/executor.h"

#include <mutex>

struct ggml_metal_cv {
    metal_emulator::ConstantValues values;
};

struct ggml_metal_pipeline {
    const metal_emulator::Kernel * kernel;
    metal_emulator::ConstantValues constants;
};

struct ggml_metal_library {
    ggml_metal_device_t dev;
    ggml_metal_pipelines_t pipelines;
};

struct ggml_metal_device {
    ggml_metal_device_props props;
    ggml_metal_library_t library;
    ggml_metal_fusion_info * fusion;
};

struct ggml_metal_buffer {
    char * data;
    size_t size;
    void * map; // nullptr: the memory belongs to somebody else
    size_t map_size;
};

struct ggml_metal_event {};
struct ggml_metal_rsets {};

struct ggml_metal {
    ggml_metal_device_t dev;
    ggml_metal_event event;
};

// The memory of the tensors that the running op looked up: an access beyond them is out of bounds, even inside the
// buffer.
void metal_emulator_begin_op();
metal_emulator::Extent metal_emulator_tensor_extent(const ggml_metal_buffer & b, size_t offset);
