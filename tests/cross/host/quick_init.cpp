// test-quantize-fns makes the search grids of the IQ types, minutes under emulation, and encodes to none of them.
extern "C" void __wrap_ggml_quantize_init(int) {}
