// From a code address or a Loc to kernel file, line and the text of the line.
#pragma once
#include "metal_emulator/abi.h"

#include <string>
#include <vector>

namespace metal_emulator {

struct Place {
    std::string file; // base name
    int line = 0;
    std::string text; // trimmed source line
    std::string str() const;
};

// innermost first; frames of the emulator's own headers are left out
typedef std::vector<Place> Places;

// a code address in a kernel library, or (tagged) the address of a Loc
class Site {
public:
    Site() = default;
    static Site code(const void * pc) {
        Site s;
        s.v = (uintptr_t) pc;
        return s;
    }
    static Site at(const Loc & loc);
    uintptr_t key() const { return v; }
    const Places & places() const; // resolved once, then remembered
    std::string str() const;

private:
    uintptr_t v = 0;
};

} // namespace metal_emulator
