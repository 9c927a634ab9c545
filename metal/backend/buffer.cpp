// Device memory is host memory: filled with NaN, a guard page on each side, every tensor's extent remembered.
#include "emulator.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"
#include "ggml-metal-ops.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <sys/mman.h>

static std::map<const char *, size_t> op_tensors; // of the running op: start and size

void metal_emulator_begin_op() { op_tensors.clear(); }

static void add_extent(const char * p, size_t n) {
    size_t & known = op_tensors[p];
    known = std::max(known, n);
}

// A result may be followed by scratch space of its op. The parts of attention's are extents of their own, so that an
// overrun from one into the next is seen; any other op's is one extent with the result.
static void add_result(const ggml_tensor * t) {
    const char * p = (const char *) t->data;
    if (t->op != GGML_OP_FLASH_ATTN_EXT) return add_extent(p, ggml_backend_buffer_get_alloc_size(t->buffer, t));
    add_extent(p, ggml_nbytes(t));
    p += ggml_nbytes(t);
    for (auto size : {ggml_metal_op_flash_attn_ext_extra_pad, ggml_metal_op_flash_attn_ext_extra_blk,
                      ggml_metal_op_flash_attn_ext_extra_tmp, ggml_metal_op_flash_attn_ext_extra_kv_f16,
                      ggml_metal_op_flash_attn_ext_extra_idx}) {
        const size_t n = size(t);
        if (n) add_extent(p, n);
        p += n;
    }
}

metal_emulator::Extent metal_emulator_tensor_extent(const ggml_metal_buffer & b, size_t offset) {
    const char * p = b.data + offset;
    auto it = op_tensors.upper_bound(p);
    if (it != op_tensors.begin()) {
        --it;
        if (p == it->first || p < it->first + it->second) return {it->first, it->first + it->second};
    }
    return {b.data, b.data + b.size};
}

extern "C" {

ggml_metal_buffer_t ggml_metal_buffer_init(ggml_metal_device_t, size_t size, bool) {
    const size_t page = 4096, inner = GGML_PAD(size, page);
    void * map = mmap(nullptr, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return nullptr;
    mprotect((char *) map + page, inner, PROT_READ | PROT_WRITE);
    auto * b = new ggml_metal_buffer{(char *) map + page, size, map, inner + 2 * page};
    memset(b->data, 0xff, size);
    return b;
}

ggml_metal_buffer_t ggml_metal_buffer_map(ggml_metal_device_t, void * p, size_t size, size_t) {
    return new ggml_metal_buffer{(char *) p, size, nullptr, 0};
}

void ggml_metal_buffer_free(ggml_metal_buffer_t b) {
    if (b->map) munmap(b->map, b->map_size);
    delete b;
}

void * ggml_metal_buffer_get_base(ggml_metal_buffer_t b) { return b->data; }
bool ggml_metal_buffer_is_shared(ggml_metal_buffer_t) { return true; }
void ggml_metal_buffer_clear(ggml_metal_buffer_t b, uint8_t v) { memset(b->data, v, b->size); }

void ggml_metal_buffer_memset_tensor(ggml_metal_buffer_t, ggml_tensor * t, uint8_t v, size_t o, size_t n) {
    memset((char *) t->data + o, v, n);
}
void ggml_metal_buffer_set_tensor(ggml_metal_buffer_t, ggml_tensor * t, const void * d, size_t o, size_t n) {
    memcpy((char *) t->data + o, d, n);
}
void ggml_metal_buffer_get_tensor(ggml_metal_buffer_t, const ggml_tensor * t, void * d, size_t o, size_t n) {
    memcpy(d, (const char *) t->data + o, n);
}
bool ggml_metal_buffer_cpy_tensor(ggml_metal_buffer_t, const ggml_tensor * s, ggml_tensor * d) {
    memcpy(d->data, s->data, ggml_nbytes(s));
    return true;
}

ggml_metal_buffer_id ggml_metal_buffer_get_id(ggml_metal_buffer_t b, const ggml_tensor * t) {
    const char * p = (const char *) t->data;
    const size_t n = ggml_nbytes(t);
    if (p < b->data || p + n > b->data + b->size) {
        metal_emulator::report_error("tensor-outside-buffer", t->name);
        return {nullptr, 0};
    }
    if (!t->view_src && t->buffer) add_result(t);
    else add_extent(p, n);
    return {b, (size_t) (p - b->data)};
}

} // extern "C"
