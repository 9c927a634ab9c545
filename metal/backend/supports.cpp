// ggml_metal_device_supports_op: the real one, cut out of ggml-metal-device.m by tools/extract.py.
#include "emulator.h"

#include "supports_op.inc"
