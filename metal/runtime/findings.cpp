#include "findings.h"

#include "suppressions.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace metal_emulator {

Totals totals{};

namespace {

struct Finding {
    const char * severity;
    std::string kind, kernel, text, known_as;
    Site site, other;
    uint64_t count;
};
typedef std::tuple<const Kernel *, std::string, uintptr_t, uintptr_t, std::string> Key;

constexpr size_t MAX_FINDINGS = 500;
constexpr int EXIT_WITH_ERRORS = 3;

std::vector<Finding> findings;
std::map<Key, size_t> index_of;
std::map<std::string, uint64_t> dispatches; // by kernel
const Kernel * current = nullptr;
int errors = 0;

// the text tells findings apart only where no place in a kernel does
Key key(const char * kind, const std::string & text, Site site, Site other) {
    return {current, kind, site.key(), other.key(), site.key() ? "" : text};
}

bool count_again(const Key & k) {
    auto it = index_of.find(k);
    if (it == index_of.end()) return false;
    ++findings[it->second].count;
    return true;
}

void add(const char * severity, const char * kind, const std::string & text, Site site, Site other) {
    const Key k = key(kind, text, site, other);
    if (count_again(k) || findings.size() >= MAX_FINDINGS) return;
    Finding f{severity, kind, current ? current->name : "", text, "", site, other, 1};
    if (!strcmp(severity, "error")) {
        if (const Suppression * s = find_suppression(kind, f.kernel, site, other)) {
            f.severity = "known";
            f.known_as = s->id;
        } else {
            ++errors;
        }
    }
    index_of[k] = findings.size();
    findings.push_back(f);
    static const bool quiet = getenv("METAL_EMULATOR_QUIET");
    if (!quiet || !strcmp(f.severity, "error")) {
        const std::string against = other.key() ? ", against " + other.str() : "";
        fprintf(stderr, "metal-emulator: %s: %s: [%s] %s: %s%s\n", f.severity, kind, f.kernel.c_str(), text.c_str(),
                site.key() ? site.str().c_str() : "-", against.c_str());
    }
    if (!strcmp(f.severity, "error")) write_report(); // the process may not live to its end
}

std::string quoted(const std::string & s) {
    std::string r = "\"";
    for (unsigned char c : s) {
        if (c == '"' || c == '\\') {
            r += '\\';
            r += (char) c;
        } else if (c < 0x20) {
            char b[8];
            snprintf(b, sizeof b, "\\u%04x", c);
            r += b;
        } else r += (char) c;
    }
    return r + "\"";
}

std::string json(const Places & places) {
    std::string r = "[";
    for (size_t i = 0; i < places.size(); ++i) {
        r += (i ? ", " : "") + std::string("{\"file\": ") + quoted(places[i].file)
             + ", \"line\": " + std::to_string(places[i].line) + ", \"text\": " + quoted(places[i].text) + "}";
    }
    return r + "]";
}

std::string json(const Finding & f) {
    return std::string("{\"severity\": ") + quoted(f.severity) + ", \"kind\": " + quoted(f.kind)
           + ", \"kernel\": " + quoted(f.kernel) + ", \"text\": " + quoted(f.text)
           + ", \"known_as\": " + quoted(f.known_as) + ", \"count\": " + std::to_string(f.count)
           + ", \"places\": " + (f.site.key() ? json(f.site.places()) : "[]")
           + ", \"against\": " + (f.other.key() ? json(f.other.places()) : "[]") + "}";
}

// a process that met an error does not end as if all were well: test-backend-ops ignores the status of a graph
struct AtExit {
    ~AtExit() {
        write_report();
        const bool idle = getenv("METAL_EMULATOR_EXPECT_DISPATCHES") && totals.dispatches == 0;
        if (idle) fprintf(stderr, "metal-emulator: no kernel was dispatched: nothing ran here\n");
        if (!errors && !idle) return;
        fflush(nullptr);
        _exit(EXIT_WITH_ERRORS);
    }
} at_exit;

} // namespace

bool already_found(const char * kind, Site site, Site other) { return count_again(key(kind, "", site, other)); }

void add_error(const char * kind, const std::string & text, Site site, Site other) {
    add("error", kind, text, site, other);
}
void add_note(const char * kind, const std::string & text, Site site, Site other) {
    add("note", kind, text, site, other);
}
void report_error(const char * kind, const std::string & text) { add_error(kind, text); }
int n_errors() { return errors; }

void set_current_kernel(const Kernel * k) { current = k; }
void count_dispatch(const Kernel & k) {
    ++totals.dispatches;
    ++dispatches[k.name];
}

void write_report() {
    const char * path = getenv("METAL_EMULATOR_REPORT");
    if (!path) return;
    const std::string temporary = std::string(path) + "." + std::to_string(getpid());
    FILE * out = fopen(temporary.c_str(), "w");
    if (!out) {
        fprintf(stderr, "metal-emulator: cannot write %s\n", path);
        return;
    }
    const Totals & t = totals;
    fprintf(out, "{\n\"variant\": \"%s\",\n\"order\": %s,\n\"gpu_family\": %s,\n", metal_emulator_variant,
            quoted(getenv("METAL_EMULATOR_ORDER") ? getenv("METAL_EMULATOR_ORDER") : "reverse").c_str(),
            getenv("METAL_EMULATOR_FAMILY") ? getenv("METAL_EMULATOR_FAMILY") : "7");
    fprintf(out,
            "\"totals\": {\"dispatches\": %zu, \"threadgroups\": %zu, \"threads\": %zu, \"collectives\": %zu, "
            "\"barriers\": %zu, \"accesses\": %zu},\n",
            (size_t) t.dispatches, (size_t) t.threadgroups, (size_t) t.threads, (size_t) t.collectives,
            (size_t) t.barriers, (size_t) t.accesses);
    fprintf(out, "\"errors\": %d,\n\"dispatches\": {", errors);
    const char * separator = "\n";
    for (auto & [name, n] : dispatches) {
        fprintf(out, "%s  %s: %zu", separator, quoted(name).c_str(), (size_t) n);
        separator = ",\n";
    }
    fprintf(out, "\n},\n\"findings\": [");
    separator = "\n";
    for (auto & f : findings) {
        fprintf(out, "%s  %s", separator, json(f).c_str());
        separator = ",\n";
    }
    fprintf(out, "\n]\n}\n");
    fclose(out);
    rename(temporary.c_str(), path);
}

} // namespace metal_emulator

// for a process that loaded the backend and wants to know before its end what ran so far
extern "C" void metal_emulator_write_report(void) { metal_emulator::write_report(); }
