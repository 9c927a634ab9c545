// The calls that `clang -fsanitize=thread` emits before every access. Its own runtime is not linked: these are ours.
#include "memory.h"
#include "scheduler.h"

#include <cstring>

using metal_emulator::Access;

static inline void check(const void * p, size_t n, Access access, const void * pc) {
    if (metal_emulator_lane)
        metal_emulator::check_access(p, n, access, metal_emulator::Site::code(pc), metal_emulator::current_thread());
}

#define PC __builtin_return_address(0)
#define HOOKS(n)                                                                 \
    void __tsan_read##n(void * p) { check(p, n, Access::READ, PC); }             \
    void __tsan_write##n(void * p) { check(p, n, Access::WRITE, PC); }           \
    void __tsan_read_write##n(void * p) { check(p, n, Access::READ_WRITE, PC); } \
    void __tsan_unaligned_read##n(void * p) { check(p, n, Access::READ, PC); }   \
    void __tsan_unaligned_write##n(void * p) { check(p, n, Access::WRITE, PC); } \
    void __tsan_unaligned_read_write##n(void * p) { check(p, n, Access::READ_WRITE, PC); }

extern "C" {
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}

void * __tsan_memcpy(void * to, const void * from, size_t n) {
    check(from, n, Access::READ, PC);
    check(to, n, Access::WRITE, PC);
    return memcpy(to, from, n);
}
void * __tsan_memmove(void * to, const void * from, size_t n) {
    check(from, n, Access::READ, PC);
    check(to, n, Access::WRITE, PC);
    return memmove(to, from, n);
}
void * __tsan_memset(void * to, int c, size_t n) {
    check(to, n, Access::WRITE, PC);
    return memset(to, c, n);
}
}
