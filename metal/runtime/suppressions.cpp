#include "suppressions.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fnmatch.h>
#include <fstream>

namespace metal_emulator {

// stanzas of `key: value` lines, separated by empty lines; `#` begins a comment line
static std::vector<Suppression> load() {
    std::vector<Suppression> all;
    const char * path = getenv("METAL_EMULATOR_SUPPRESSIONS");
    if (!path) path = METAL_EMULATOR_DEFAULT_SUPPRESSIONS;
    std::ifstream in(path);
    if (!in && *path) {
        fprintf(stderr, "metal-emulator: cannot read %s\n", path);
        abort();
    }
    bool open = false;
    for (std::string line; std::getline(in, line);) {
        if (line.empty()) {
            open = false;
            continue;
        }
        const size_t colon = line.find(": ");
        if (line[0] == '#' || colon == line.npos) continue;
        const std::string k = line.substr(0, colon), v = line.substr(colon + 2);
        if (!open) {
            all.emplace_back();
            open = true;
        }
        Suppression & s = all.back();
        if (k == "id") s.id = v;
        if (k == "kind") s.kind = v;
        if (k == "file") s.file = v;
        if (k == "text") s.text = v;
        if (k == "against") s.against.push_back(v);
        if (k == "kernel") s.kernels.push_back(v);
    }
    return all;
}

static bool is_at(const std::string & file, const std::string & text, const Places & places) {
    return std::any_of(places.begin(), places.end(), [&](const Place & p) { return p.file == file && p.text == text; });
}

static bool matches(const Suppression & s, const std::string & kind, const std::string & kernel, Site site,
                    Site other) {
    if (s.kind != kind || !is_at(s.file, s.text, site.places())) return false;
    const auto is_kernel = [&](const std::string & pattern) {
        return fnmatch(pattern.c_str(), kernel.c_str(), 0) == 0;
    };
    const auto is_other = [&](const std::string & text) { return other.key() && is_at(s.file, text, other.places()); };
    return (s.kernels.empty() || std::any_of(s.kernels.begin(), s.kernels.end(), is_kernel))
           && (s.against.empty() || std::any_of(s.against.begin(), s.against.end(), is_other));
}

const Suppression * find_suppression(const std::string & kind, const std::string & kernel, Site site, Site other) {
    static const std::vector<Suppression> all = load();
    for (const Suppression & s : all)
        if (matches(s, kind, kernel, site, other)) return &s;
    return nullptr;
}

} // namespace metal_emulator
