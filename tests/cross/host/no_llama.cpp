// What main of test-tq3_0 calls in any case.
#include "llama.h"

void llama_log_set(ggml_log_callback, void *) {}
