#include "fiber.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

#if !defined(__x86_64__) && !defined(METAL_EMULATOR_UCONTEXT)
#define METAL_EMULATOR_UCONTEXT
#endif

namespace metal_emulator {

static void allocate_stack(Fiber & f) {
    void * p = mmap(nullptr, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "metal-emulator: no memory for a stack\n");
        abort();
    }
    mprotect(p, 4096, PROT_NONE);
    f.stack = (char *) p;
}

} // namespace metal_emulator

#ifdef METAL_EMULATOR_UCONTEXT

#include <ucontext.h>

namespace metal_emulator {

void fiber_reset(Fiber & f, void (*entry)()) {
    if (!f.stack) allocate_stack(f);
    if (!f.state) f.state = new ucontext_t;
    auto & u = *(ucontext_t *) f.state;
    getcontext(&u);
    u.uc_stack.ss_sp = f.stack;
    u.uc_stack.ss_size = STACK_SIZE;
    u.uc_link = nullptr;
    makecontext(&u, entry, 0);
}

void fiber_switch(Fiber & from, Fiber & to) {
    if (!from.state) from.state = new ucontext_t;
    swapcontext((ucontext_t *) from.state, (ucontext_t *) to.state);
}

} // namespace metal_emulator

#else

asm(R"(
.text
.globl metal_emulator_switch
.type metal_emulator_switch,@function
metal_emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size metal_emulator_switch,.-metal_emulator_switch
)");
extern "C" void metal_emulator_switch(void ** save, void * load);

namespace metal_emulator {

void fiber_reset(Fiber & f, void (*entry)()) {
    if (!f.stack) allocate_stack(f);
    void ** sp = (void **) (f.stack + STACK_SIZE - 64);
    *--sp = nullptr; // return address of entry, and the alignment it expects
    *--sp = (void *) entry;
    for (int i = 0; i < 6; ++i) *--sp = nullptr;
    f.state = sp;
}

void fiber_switch(Fiber & from, Fiber & to) { metal_emulator_switch(&from.state, to.state); }

} // namespace metal_emulator

#endif
