#include "source.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <map>

#ifndef METAL_EMULATOR_SYMBOLIZER
#define METAL_EMULATOR_SYMBOLIZER "llvm-symbolizer"
#endif

namespace metal_emulator {

static constexpr uintptr_t LOC_TAG = (uintptr_t) 1 << 63;

static std::string line_text(const std::string & path, int line) {
    static auto & files = *new std::map<std::string, std::vector<std::string>>; // outlives the report at exit
    auto [it, fresh] = files.try_emplace(path);
    if (fresh) {
        std::ifstream in(path);
        for (std::string s; std::getline(in, s);) {
            const size_t a = s.find_first_not_of(" \t"), b = s.find_last_not_of(" \t\r");
            it->second.push_back(a == s.npos ? "" : s.substr(a, b - a + 1));
        }
    }
    return line >= 1 && line <= (int) it->second.size() ? it->second[line - 1] : "";
}

// line 0: one access that the compiler made of those of several lines
static Place place(const std::string & path, int line) {
    const size_t slash = path.rfind('/');
    return {slash == path.npos ? path : path.substr(slash + 1), line, line ? line_text(path, line) : "(merged lines)"};
}

static bool is_host_header(const std::string & path) {
    return path.find("/metal_emulator/") != path.npos || path.find("/metal_stdlib") != path.npos;
}

// one line per frame: path:line:column
static Places symbolize(uintptr_t pc) {
    Dl_info info;
    Places places;
    if (!pc || !dladdr((void *) pc, &info) || !info.dli_fname) return places;
    char command[1024];
    snprintf(command, sizeof command,
             METAL_EMULATOR_SYMBOLIZER " --obj=%s --functions=none --inlines 0x%zx 2>/dev/null", info.dli_fname,
             (size_t) (pc - (uintptr_t) info.dli_fbase - 1));
    FILE * pipe = popen(command, "r");
    if (!pipe) return places;
    for (char buffer[1024]; fgets(buffer, sizeof buffer, pipe);) {
        std::string s = buffer;
        const size_t column = s.rfind(':'), line = column == s.npos || !column ? s.npos : s.rfind(':', column - 1);
        if (line == s.npos) continue;
        const std::string path = s.substr(0, line);
        if (path == "??" || is_host_header(path)) continue;
        places.push_back(place(path, atoi(s.c_str() + line + 1)));
    }
    pclose(pipe);
    return places;
}

std::string Place::str() const { return file + ":" + std::to_string(line) + (text.empty() ? "" : " `" + text + "`"); }

Site Site::at(const Loc & loc) {
    struct Less {
        bool operator()(const Loc & a, const Loc & b) const {
            if (a.line != b.line) return a.line < b.line;
            if (a.col != b.col) return a.col < b.col;
            const int f = strcmp(a.file, b.file);
            return f ? f < 0 : strcmp(a.op, b.op) < 0;
        }
    };
    static auto & known = *new std::map<Loc, const Loc *, Less>;
    auto & p = known[loc];
    if (!p) p = new Loc(loc);
    Site s;
    s.v = (uintptr_t) p | LOC_TAG;
    return s;
}

const Places & Site::places() const {
    static auto & known = *new std::map<uintptr_t, Places>;
    auto [it, fresh] = known.try_emplace(v);
    if (fresh) {
        if (v & LOC_TAG) {
            const Loc & loc = *(const Loc *) (v & ~LOC_TAG);
            it->second = {place(loc.file, loc.line)};
        } else {
            it->second = symbolize(v);
        }
    }
    return it->second;
}

std::string Site::str() const {
    std::string s;
    if (v & LOC_TAG) s = std::string(((const Loc *) (v & ~LOC_TAG))->op) + " at ";
    for (size_t i = 0; i < places().size(); ++i) s += (i ? " < " : "") + places()[i].str();
    return s.empty() ? "?" : s;
}

} // namespace metal_emulator
