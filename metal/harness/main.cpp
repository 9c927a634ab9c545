// usage: metal-emulator-direct [--pair K/V]... [--heads DK[/DV]]... [--suite rows|blocks|vec|matrix|sizes|long]...
// [--force Q/NE]...
// --force runs the vec cases once more with the kernel variant for Q queries and NE elements, instead of the tuned one.
// Exit: 0 all well, 1 a case fell short, 2 usage, 77 a named type is not in this tree (nothing was judged).
#include "cases.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

struct Options {
    std::vector<std::string> pairs, heads, suites, forced;
    static int usage(const char * what) {
        fprintf(stderr,
                "%s\nusage: metal-emulator-direct [--pair K/V]... [--heads DK[/DV]]... [--suite "
                "rows|blocks|vec|matrix|sizes|long]... [--force Q/NE]...\n",
                what);
        return 2;
    }
};

static std::pair<std::string, std::string> split(const std::string & s) {
    const size_t slash = s.find('/');
    return slash == s.npos ? std::make_pair(s, s) : std::make_pair(s.substr(0, slash), s.substr(slash + 1));
}

// runs `c` with a fixed kernel variant, through the hook that ggml keeps for its own tests
static Case forced(const Case & c, const std::string & variant) {
    const auto [q, ne] = split(variant);
    const int Q = atoi(q.c_str()), NE = atoi(ne.c_str());
    return {c.name + " Q " + q + " NE " + ne, [c, Q, NE](ggml_backend_t backend) {
                const auto reg = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
                const auto set = (void (*)(int, int)) ggml_backend_reg_get_proc_address(
                    reg, "ggml_backend_metal_tuning_set_fa_vec_override");
                const auto clear = (void (*)()) ggml_backend_reg_get_proc_address(
                    reg, "ggml_backend_metal_tuning_clear_fa_vec_override");
                if (!set || !clear) return Outcome{false, 0, 0, "this tree has no override of the kernel variant"};
                set(Q, NE);
                const Outcome o = c.run(backend);
                clear();
                return o;
            }};
}

static std::vector<Case> cases_of(const Options & o, const Pair & pair) {
    std::vector<Case> all;
    auto append = [&](const std::vector<Case> & v) { all.insert(all.end(), v.begin(), v.end()); };
    for (const std::string & suite : o.suites) {
        if (suite == "rows" && pair.k == pair.v) append(row_cases(pair.k));
        if (suite == "blocks" && pair.k == pair.v) append(block_cases(pair.k));
        for (const std::string & h : o.heads) {
            const auto [dk, dv] = split(h);
            const auto vec = vec_cases(pair, atoi(dk.c_str()), atoi(dv.c_str()));
            if (suite == "vec") append(vec);
            if (suite == "vec")
                for (const auto & v : o.forced)
                    for (const auto & c : vec) all.push_back(forced(c, v));
            if (suite == "long") append(long_case(pair, atoi(dk.c_str()), atoi(dv.c_str())));
            if (suite == "sizes") append(size_cases(pair, atoi(dk.c_str()), atoi(dv.c_str())));
            if (suite == "matrix") append(matrix_cases(pair, atoi(dk.c_str()), atoi(dv.c_str())));
        }
    }
    return all;
}

static int run(const Options & o, ggml_backend_t backend) {
    int bad = 0, n = 0;
    for (const std::string & name : o.pairs) {
        const auto [k, v] = split(name);
        const Pair pair{type_by_name(k), type_by_name(v), name};
        if (pair.k == GGML_TYPE_COUNT || pair.v == GGML_TYPE_COUNT) {
            printf("skipped: this tree has no type for %s\n", name.c_str());
            return 77;
        }
        for (const Case & c : cases_of(o, pair)) {
            timespec a, b;
            clock_gettime(CLOCK_MONOTONIC, &a);
            const Outcome r = c.run(backend);
            clock_gettime(CLOCK_MONOTONIC, &b);
            printf("%-4s %-78s nmse %.2e (limit %.0e) %6.2f s %s\n", r.ok ? "ok" : "FAIL", c.name.c_str(), r.nmse,
                   r.limit, (double) (b.tv_sec - a.tv_sec) + 1e-9 * (double) (b.tv_nsec - a.tv_nsec), r.detail.c_str());
            fflush(stdout);
            ++n;
            bad += !r.ok;
        }
    }
    printf("%d cases, %d failed\n", n, bad);
    return n == 0 || bad ? 1 : 0;
}

int main(int argc, char ** argv) {
    Options o;
    for (int i = 1; i < argc; i += 2) {
        auto * list = !strcmp(argv[i], "--pair")    ? &o.pairs
                      : !strcmp(argv[i], "--heads") ? &o.heads
                      : !strcmp(argv[i], "--suite") ? &o.suites
                      : !strcmp(argv[i], "--force") ? &o.forced
                                                    : nullptr;
        if (!list || i + 1 == argc) return Options::usage(argv[i]);
        list->push_back(argv[i + 1]);
    }
    if (o.pairs.empty()) o.pairs = {"q4_0/q4_0", "q8_0/q8_0"};
    if (o.heads.empty()) o.heads = {"64", "128"};
    if (o.suites.empty()) o.suites = {"rows", "vec", "matrix"};
    const char * path = getenv("GGML_BACKEND_PATH");
    if (!path || !ggml_backend_load(path))
        return Options::usage("GGML_BACKEND_PATH does not name the Metal emulator's library");
    ggml_backend_dev_t device = ggml_backend_dev_by_name("MTL0");
    if (!device) return Options::usage("the library has no device MTL0");
    ggml_backend_t backend = ggml_backend_dev_init(device, nullptr);
    const int code = run(o, backend);
    ggml_backend_free(backend);
    return code;
}
