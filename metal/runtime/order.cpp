#include "order.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace metal_emulator {

namespace {

enum Kind { REVERSE, FORWARD, SHUFFLE, WILD };
struct Order {
    Kind kind;
    uint64_t random;
};

Order parse(const char * s) {
    if (!s || !strcmp(s, "reverse")) return {REVERSE, 0};
    if (!strcmp(s, "forward")) return {FORWARD, 0};
    const char * colon = strchr(s, ':');
    const uint64_t seed = 0x9E3779B97F4A7C15ull * (1 + (colon ? strtoull(colon + 1, nullptr, 10) : 0)) | 1;
    if (!strncmp(s, "shuffle", 7)) return {SHUFFLE, seed};
    if (!strncmp(s, "wild", 4)) return {WILD, seed};
    fprintf(stderr, "metal-emulator: METAL_EMULATOR_ORDER=%s is not one of reverse, forward, shuffle:SEED, wild:SEED\n",
            s);
    exit(2);
}

Order & order() {
    static Order o = parse(getenv("METAL_EMULATOR_ORDER"));
    return o;
}

uint32_t lowest(uint32_t set) { return __builtin_ctz(set); }
uint32_t highest(uint32_t set) { return 31 - __builtin_clz(set); }

uint32_t any(uint32_t set) {
    uint64_t & r = order().random;
    r ^= r << 13;
    r ^= r >> 7;
    r ^= r << 17;
    for (int skip = (int) ((r >> 11) % __builtin_popcount(set)); skip > 0; --skip) set &= set - 1;
    return lowest(set);
}

uint32_t pick(uint32_t set, bool is_lanes) {
    switch (order().kind) {
    case REVERSE: return highest(set);
    case FORWARD: return lowest(set);
    case SHUFFLE: return any(is_lanes && set != 1 ? set & ~1u : set);
    case WILD: return any(set);
    }
    return lowest(set);
}

} // namespace

void ReadySet::clear() {
    groups = 0;
    memset(lanes, 0, sizeof lanes);
}

void ReadySet::add(int thread) {
    groups |= 1u << thread / 32;
    lanes[thread / 32] |= 1u << thread % 32;
}

int ReadySet::take() {
    if (!groups) return -1;
    const uint32_t g = pick(groups, false), l = pick(lanes[g], true);
    lanes[g] &= ~(1u << l);
    if (!lanes[g]) groups &= ~(1u << g);
    return (int) (g * 32 + l);
}

} // namespace metal_emulator
