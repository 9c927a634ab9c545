// One stack per GPU thread, switched by hand (x86-64) or by ucontext.
#pragma once
#include <cstddef>

namespace metal_emulator {

struct Fiber {
    void * state = nullptr; // saved stack pointer, or ucontext_t
    char * stack = nullptr;
    bool owns(const void * p) const;
};

constexpr size_t STACK_SIZE = 256 * 1024;

void fiber_reset(Fiber & f, void (*entry)()); // next switch to f starts entry, which must not return
void fiber_switch(Fiber & from, Fiber & to);

inline bool Fiber::owns(const void * p) const {
    return (const char *) p >= stack && (const char *) p < stack + STACK_SIZE;
}

} // namespace metal_emulator
