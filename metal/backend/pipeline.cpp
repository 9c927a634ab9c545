// Pipelines, function constants and encoders: a dispatch runs when it is encoded.
#include "emulator.h"
#include "ggml-impl.h"

#include <cstdlib>
#include <cstring>
#include <string>

using metal_emulator::Dispatch;

struct ggml_metal_encoder {
    Dispatch dispatch;
    char bytes[metal_emulator::MAX_BUFFERS][4096]; // copies of set_bytes arguments
};

static std::string last_missing;

extern "C" {

ggml_metal_cv_t ggml_metal_cv_init(void) { return new ggml_metal_cv; }
void ggml_metal_cv_free(ggml_metal_cv_t cv) { delete cv; }
void ggml_metal_cv_set_int16(ggml_metal_cv_t cv, int16_t v, int32_t i) { cv->values[i] = {v, sizeof v}; }
void ggml_metal_cv_set_int32(ggml_metal_cv_t cv, int32_t v, int32_t i) { cv->values[i] = {v, sizeof v}; }
void ggml_metal_cv_set_bool(ggml_metal_cv_t cv, bool v, int32_t i) { cv->values[i] = {v, sizeof v}; }

ggml_metal_pipeline_t ggml_metal_pipeline_init(void) { return new ggml_metal_pipeline{}; }
void ggml_metal_pipeline_free(ggml_metal_pipeline_t p) { delete p; }
int ggml_metal_pipeline_max_theads_per_threadgroup(ggml_metal_pipeline_with_params) {
    return metal_emulator::MAX_THREADS;
}

ggml_metal_library_t ggml_metal_library_init(ggml_metal_device_t dev) {
    return new ggml_metal_library{dev, ggml_metal_pipelines_init()};
}
ggml_metal_library_t ggml_metal_library_init_from_source(ggml_metal_device_t, const char *, bool) { return nullptr; }
ggml_metal_device_t ggml_metal_library_get_device(ggml_metal_library_t lib) { return lib->dev; }
void ggml_metal_library_free(ggml_metal_library_t lib) {
    ggml_metal_pipelines_free(lib->pipelines);
    delete lib;
}

ggml_metal_pipeline_with_params ggml_metal_library_get_pipeline(ggml_metal_library_t lib, const char * name) {
    ggml_metal_pipeline_with_params r{};
    r.pipeline = ggml_metal_pipelines_get(lib->pipelines, name);
    return r;
}

ggml_metal_pipeline_with_params ggml_metal_library_compile_pipeline(ggml_metal_library_t lib, const char * base,
                                                                    const char * name, ggml_metal_cv_t cv) {
    ggml_metal_pipeline_with_params r{};
    const metal_emulator::Kernel * kernel = metal_emulator::find_kernel(base);
    if (!kernel) {
        last_missing = base;
        return r;
    }
    r.pipeline = ggml_metal_pipeline_init();
    r.pipeline->kernel = kernel;
    if (cv) r.pipeline->constants = cv->values;
    ggml_metal_pipelines_add(lib->pipelines, name, r.pipeline);
    return r;
}

ggml_metal_encoder_t ggml_metal_encoder_init(ggml_metal_cmd_buf_t, bool) { return new ggml_metal_encoder{}; }
void ggml_metal_encoder_free(ggml_metal_encoder_t e) { delete e; }
void ggml_metal_encoder_debug_group_push(ggml_metal_encoder_t, const char *) {}
void ggml_metal_encoder_debug_group_pop(ggml_metal_encoder_t) {}
void ggml_metal_encoder_memory_barrier(ggml_metal_encoder_t) {} // dispatches run one after the other
void ggml_metal_encoder_end_encoding(ggml_metal_encoder_t) {}

void ggml_metal_encoder_set_pipeline(ggml_metal_encoder_t e, ggml_metal_pipeline_with_params p) {
    if (!p.pipeline) metal_emulator::report_error("missing-kernel", "no kernel " + last_missing);
    e->dispatch.kernel = p.pipeline ? p.pipeline->kernel : nullptr;
    e->dispatch.constants = p.pipeline ? &p.pipeline->constants : nullptr;
}

void ggml_metal_encoder_set_bytes(ggml_metal_encoder_t e, void * data, size_t size, int i) {
    GGML_ASSERT(size <= sizeof e->bytes[i]);
    char * p = e->bytes[i];
    memcpy(p, data, size);
    e->dispatch.buffers[i] = p;
    e->dispatch.extents[i] = {p, p + size};
}

void ggml_metal_encoder_set_buffer(ggml_metal_encoder_t e, ggml_metal_buffer_id id, int i) {
    const auto * b = (const ggml_metal_buffer *) id.metal;
    e->dispatch.buffers[i] = b ? b->data + id.offs : nullptr;
    e->dispatch.extents[i] = b ? metal_emulator_tensor_extent(*b, id.offs) : metal_emulator::Extent{};
}

void ggml_metal_encoder_set_threadgroup_memory_size(ggml_metal_encoder_t e, size_t size, int i) {
    e->dispatch.group_memory[i] = size;
}

void ggml_metal_encoder_dispatch_threadgroups(ggml_metal_encoder_t e, int g0, int g1, int g2, int t0, int t1, int t2) {
    Dispatch & d = e->dispatch;
    if (!d.kernel) return; // reported when the pipeline was set
    const int grid[3] = {g0, g1, g2}, group[3] = {t0, t1, t2};
    memcpy(d.grid, grid, sizeof grid);
    memcpy(d.group, group, sizeof group);
    static const bool log = getenv("METAL_EMULATOR_LOG");
    const int64_t start = ggml_time_us();
    metal_emulator::run(d);
    if (log) {
        fprintf(stderr, "metal-emulator: %-56s grid %4d %3d %3d  group %4d %2d %d  memory %6zu  %8.2f ms\n",
                d.kernel->name.c_str(), g0, g1, g2, t0, t1, t2, d.group_memory[0],
                (double) (ggml_time_us() - start) / 1e3);
    }
}

} // extern "C"
