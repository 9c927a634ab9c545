// Compiled once into each loadable backend.
extern const char * metal_emulator_variant;
namespace {
struct SetVariant {
    SetVariant() { metal_emulator_variant = METAL_EMULATOR_VARIANT; }
} set_variant;
} // namespace
