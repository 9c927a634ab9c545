// The backend context: a graph is encoded by ggml-metal-ops.cpp, node by node, on the calling thread.
#include "emulator.h"
#include "ggml-impl.h"
#include "ggml-metal-common.h"
#include "ggml-metal-ops.h"

#include <cstring>

extern "C" {

ggml_metal_t ggml_metal_init(ggml_metal_device_t dev) { return new ggml_metal{dev, {}}; }
void ggml_metal_free(ggml_metal_t c) { delete c; }
const char * ggml_metal_get_name(ggml_metal_t c) { return c->dev->props.name; }
void ggml_metal_synchronize(ggml_metal_t) {}

void ggml_metal_set_tensor_async(ggml_metal_t, ggml_tensor * t, const void * d, size_t o, size_t n) {
    memcpy((char *) t->data + o, d, n);
}
void ggml_metal_get_tensor_async(ggml_metal_t, const ggml_tensor * t, void * d, size_t o, size_t n) {
    memcpy(d, (const char *) t->data + o, n);
}
bool ggml_metal_cpy_tensor_async(ggml_metal_t, ggml_metal_t, const ggml_tensor * s, ggml_tensor * d) {
    memcpy(d->data, s->data, ggml_nbytes(s));
    return true;
}

enum ggml_status ggml_metal_graph_compute(ggml_metal_t c, ggml_cgraph * graph) {
    static std::mutex one_at_a_time; // the executor has one set of GPU threads
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    const int errors_before = metal_emulator::n_errors();
    ggml_metal_op_t op = ggml_metal_op_init(c->dev, nullptr, graph, c->dev->fusion, 0, graph->n_nodes, true, false, 0);
    for (int i = 0; i < ggml_metal_op_n_nodes(op);) {
        metal_emulator_begin_op();
        const int n = ggml_metal_op_encode(op, i); // nodes done at once, if they were fused
        if (n == 0) break;
        i += n;
    }
    ggml_metal_op_free(op);
    return metal_emulator::n_errors() > errors_before ? GGML_STATUS_FAILED : GGML_STATUS_SUCCESS;
}

void ggml_metal_graph_optimize(ggml_metal_t, ggml_cgraph * graph) { ggml_graph_optimize(graph); }

void ggml_metal_event_record(ggml_metal_t, ggml_metal_event_t) {}
void ggml_metal_event_wait(ggml_metal_t, ggml_metal_event_t) {}
ggml_metal_event_t ggml_metal_get_ev_cpy(ggml_metal_t c) { return &c->event; }

void ggml_metal_set_n_cb(ggml_metal_t, int) {}
void ggml_metal_set_abort_callback(ggml_metal_t, ggml_abort_callback, void *) {}
bool ggml_metal_supports_family(ggml_metal_t c, int family) { return family <= c->dev->props.gpu_family; }
void ggml_metal_capture_next_compute(ggml_metal_t) {}

} // extern "C"
