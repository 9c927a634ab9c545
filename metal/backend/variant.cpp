// Compiled once into each loadable backend.
extern const char * metal_host_variant;
namespace {
struct SetVariant { SetVariant() { metal_host_variant = METAL_HOST_VARIANT; } } set_variant;
}
