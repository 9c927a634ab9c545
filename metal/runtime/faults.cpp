#include "faults.h"

#include "findings.h"
#include "scheduler.h"

#include <csignal>
#include <cstdio>
#include <ucontext.h>

namespace metal_emulator {

namespace {

// Returning repeats the fault, which then ends the process.
void default_action(int signal_number) { signal(signal_number, SIG_DFL); }

#if defined(__x86_64__)

// length of a `div` or `idiv`, or 0 if there is another instruction
int division_length(const unsigned char * begin) {
    const unsigned char * p = begin;
    while (*p == 0x66 || *p == 0x67 || (*p & 0xf0) == 0x40) ++p;
    if (*p != 0xf6 && *p != 0xf7) return 0;
    ++p;
    const unsigned char modrm = *p++, mod = modrm >> 6, rm = modrm & 7;
    if (mod != 3) {
        if (rm == 4) {
            const unsigned char sib = *p++;
            if (mod == 0 && (sib & 7) == 5) p += 4;
        }
        if (mod == 1) p += 1;
        else if (mod == 2 || (mod == 0 && rm == 5)) p += 4;
    }
    return (int) (p - begin);
}

void on_division(int signal_number, siginfo_t *, void * context) {
    auto & r = ((ucontext_t *) context)->uc_mcontext.gregs;
    const char * pc = (const char *) r[REG_RIP];
    const int length = metal_emulator_lane ? division_length((const unsigned char *) pc) : 0;
    if (!length) return default_action(signal_number);
    add_note("division-by-zero", "integer division by zero: the value is undefined in Metal", Site::code(pc + 1));
    r[REG_RAX] = r[REG_RDX] = 0;
    r[REG_RIP] += length;
}

const void * fault_address(void * context) {
    return (const char *) ((ucontext_t *) context)->uc_mcontext.gregs[REG_RIP] + 1;
}

#else

void on_division(int signal_number, siginfo_t *, void *) { default_action(signal_number); } // arm64 does not trap
const void * fault_address(void *) { return nullptr; }

#endif

void on_fault(int signal_number, siginfo_t * info, void * context) {
    if (!metal_emulator_lane) return default_action(signal_number);
    char text[100];
    snprintf(text, sizeof text, "access to address %p outside all memory of this dispatch", info->si_addr);
    add_error("fault", text, Site::code(fault_address(context)));
    stop();
}

void handle(int signal_number, void (*fn)(int, siginfo_t *, void *)) {
    struct sigaction action = {};
    action.sa_sigaction = fn;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(signal_number, &action, nullptr);
}

} // namespace

void install_fault_handlers() {
    static bool done = false;
    if (done) return;
    done = true;
    handle(SIGFPE, on_division);
    handle(SIGSEGV, on_fault);
    handle(SIGBUS, on_fault);
}

} // namespace metal_emulator
