// The device and its properties. What it says it can do is in supports.cpp.
#include "emulator.h"
#include "ggml-impl.h"

#include <cstdlib>
#include <cstring>

static const size_t MEMORY = (size_t) 16 << 30;

static int gpu_family() {
    const char * s = getenv("METAL_EMULATOR_FAMILY");
    return s ? atoi(s) : 7;
}

extern "C" {

ggml_metal_device_t ggml_metal_device_init(int device, int) {
    auto * d = new ggml_metal_device{};
    ggml_metal_device_props & p = d->props;
    p.device = p.device_virt = device;
    snprintf(p.name, sizeof p.name, "MTL%d", device);
    snprintf(p.desc, sizeof p.desc, "Metal emulator (kernels executed on the CPU, %s build)", metal_emulator_variant);
    p.max_buffer_size = p.max_working_set_size = MEMORY;
    p.max_theadgroup_memory_size = 32768;
    p.has_simdgroup_reduction = p.has_simdgroup_mm = p.has_unified_memory = p.use_shared_buffers =
        p.supports_gpu_family_apple7 = true;
    p.device_id = GGML_METAL_DEVICE_GENERIC;
    p.gpu_family = gpu_family();
    p.op_offload_min_batch_size = 32;
    d->fusion = ggml_metal_fusion_info_init(getenv("GGML_METAL_FUSION_DISABLE") == nullptr, 0);
    d->library = ggml_metal_library_init(d);
    return d;
}

void ggml_metal_device_free(ggml_metal_device_t) {} // lives as long as the process
void * ggml_metal_device_get_obj(ggml_metal_device_t d) { return d; }
void * ggml_metal_device_get_queue(ggml_metal_device_t d) { return d; }
ggml_metal_library_t ggml_metal_device_get_library(ggml_metal_device_t d) { return d->library; }
const ggml_metal_device_props * ggml_metal_device_get_props(ggml_metal_device_t d) { return &d->props; }
ggml_metal_fusion_info * ggml_metal_device_get_fusion_info(ggml_metal_device_t d) { return d->fusion; }
void ggml_metal_device_get_memory(ggml_metal_device_t, size_t * free, size_t * total) { *free = *total = MEMORY; }
const char * ggml_metal_device_id_token(enum ggml_metal_device_id) { return "generic"; }

ggml_metal_rsets_t ggml_metal_rsets_init(ggml_metal_device_t) { return nullptr; }
void ggml_metal_rsets_free(ggml_metal_rsets_t) {}
void ggml_metal_device_rsets_add(ggml_metal_device_t, ggml_metal_rset_t) {}
void ggml_metal_device_rsets_rm(ggml_metal_device_t, ggml_metal_rset_t) {}
void ggml_metal_device_rsets_keep_alive(ggml_metal_device_t) {}

void ggml_metal_event_encode_signal(ggml_metal_event_t, ggml_metal_cmd_buf_t) {}
void ggml_metal_event_encode_wait(ggml_metal_event_t, ggml_metal_cmd_buf_t) {}
ggml_metal_event_t ggml_metal_device_event_init(ggml_metal_device_t) { return new ggml_metal_event; }
void ggml_metal_device_event_free(ggml_metal_device_t, ggml_metal_event_t e) { delete e; }
void ggml_metal_device_event_synchronize(ggml_metal_device_t, ggml_metal_event_t) {}

} // extern "C"
