#include "suppressions.h"
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace metal_host {

// stanzas of `key: value` lines, separated by empty lines; `#` begins a comment line
static std::vector<Suppression> load() {
    std::vector<Suppression> all;
    const char * path = getenv("METAL_HOST_SUPPRESSIONS");
    if (!path) path = METAL_HOST_DEFAULT_SUPPRESSIONS;
    std::ifstream in(path);
    if (!in && *path) {
        fprintf(stderr, "metal-host: cannot read %s\n", path);
        abort();
    }
    bool open = false;
    for (std::string line; std::getline(in, line);) {
        if (line.empty()) { open = false; continue; }
        const size_t colon = line.find(": ");
        if (line[0] == '#' || colon == line.npos) continue;
        const std::string k = line.substr(0, colon), v = line.substr(colon + 2);
        if (!open) { all.emplace_back(); open = true; }
        Suppression & s = all.back();
        if (k == "id") s.id = v;
        if (k == "kind") s.kind = v;
        if (k == "file") s.file = v;
        if (k == "text") s.text = v;
    }
    return all;
}

static bool matches(const Suppression & s, const Places & places) {
    for (const Place & p : places) if (p.file == s.file && p.text == s.text) return true;
    return false;
}

const Suppression * find_suppression(const std::string & kind, Site site, Site) {
    static const std::vector<Suppression> all = load();
    for (const Suppression & s : all) if (s.kind == kind && matches(s, site.places())) return &s;
    return nullptr;
}

} // namespace metal_host
