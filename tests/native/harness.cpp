// The native tests of the patch series
//
//   test-tq3_0 [topic] [args]    all topics without an argument
//
// exit code: 0 all checks passed, 1 otherwise (also if there were none), 77 the test cannot run here

#include "harness.h"

#include "llama.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

static int n_checks = 0;
static int n_failed = 0;

static std::vector<std::string> arguments;

namespace {
struct deferred {
    std::string reason;
};
}

static std::vector<std::pair<std::string, std::function<void()>>> & topics() {
    static std::vector<std::pair<std::string, std::function<void()>>> res;
    return res;
}

test_case::test_case(const char * name, std::function<void()> run) {
    topics().emplace_back(name, std::move(run));
}

bool check(bool ok, const char * fmt, ...) {
    n_checks++;
    if (!ok) {
        n_failed++;

        va_list args;
        va_start(args, fmt);
        printf("  FAILED: ");
        vprintf(fmt, args);
        printf("\n");
        va_end(args);
    }
    return ok;
}

void defer(const std::string & reason) {
    throw deferred { reason };
}

const std::string & argument(size_t i, const std::string & otherwise) {
    return i < arguments.size() ? arguments[i] : otherwise;
}

ggml_type find_type(const std::string & name) {
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const char * cur = ggml_type_name((ggml_type) i);
        if (cur && name == cur) {
            return (ggml_type) i;
        }
    }
    return GGML_TYPE_COUNT;
}

ggml_type type_from_name(const std::string & name) {
    const ggml_type res = find_type(name);
    if (res == GGML_TYPE_COUNT) {
        fprintf(stderr, "there is no type %s in this library\n", name.c_str());
        exit(1);
    }
    return res;
}

std::vector<const char *> known_types(std::initializer_list<const char *> names) {
    std::vector<const char *> res;
    for (const char * name : names) {
        if (find_type(name) != GGML_TYPE_COUNT) {
            res.push_back(name);
        }
    }
    return res;
}

ggml_backend_ptr backend_from_name(const std::string & name) {
    ggml_backend_ptr backend { ggml_backend_init_by_name(name.c_str(), nullptr) };
    if (!backend) {
        defer("there is no backend " + name);
    }
    return backend;
}

double nmse(const std::vector<float> & a, const std::vector<float> & b) {
    if (a.size() != b.size() || a.empty()) {
        return INFINITY;
    }
    double err = 0.0;
    double ref = 0.0;
    for (size_t i = 0; i < a.size(); ++i) {
        err += ((double) a[i] - b[i])*((double) a[i] - b[i]);
        ref += (double) b[i]*b[i];
    }
    return err/ref;
}

double norm(const float * x, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) {
        sum += (double) x[i]*x[i];
    }
    return sqrt(sum);
}

std::vector<float> random_normal(size_t n, uint32_t seed, float stdev) {
    std::mt19937 rng(seed);
    std::normal_distribution<float> dist(0.0f, stdev);
    std::vector<float> res(n);
    for (auto & x : res) {
        x = dist(rng);
    }
    return res;
}

bool all_finite(const std::vector<float> & x) {
    return !x.empty() && std::all_of(x.begin(), x.end(), [](float v) { return std::isfinite(v); });
}

std::string log_text;

static void log_callback(ggml_log_level level, const char * text, void * user_data) {
    GGML_UNUSED(level);
    GGML_UNUSED(user_data);
    log_text += text;
}

bool log_has(const std::string & s) {
    return log_text.find(s) != std::string::npos;
}

std::string log_end() {
    return log_text.substr(log_text.size() - std::min<size_t>(log_text.size(), 400));
}

int in_child(const std::function<void()> & f) {
#ifdef _WIN32
    GGML_UNUSED(f);
    defer("needs fork()");
#else
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        f();
        fflush(stdout);
        _exit(n_failed ? 1 : 0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
#endif
}

int main(int argc, char ** argv) {
    const std::string name = argc > 1 ? argv[1] : "";
    arguments.assign(argv + std::min(argc, 2), argv + argc);

    llama_log_set(log_callback, nullptr);
    ggml_backend_load_all();

    bool ok    = true;
    bool found = false;
    int  n_run = 0;
    for (const auto & topic : topics()) {
        if (!name.empty() && name != topic.first) {
            continue;
        }
        found = true;
        try {
            topic.second();
            n_run++;
            ok = ok && n_checks > 0;
        } catch (const deferred & d) {
            printf("  skipped: %s\n", d.reason.c_str());
        }
        printf("%s: %d checks, %d failed\n", topic.first.c_str(), n_checks, n_failed);
        ok = ok && n_failed == 0;
        n_checks = n_failed = 0;
    }
    if (!found) {
        fprintf(stderr, "there is no test %s\n", name.c_str());
        return 1;
    }
    return !ok ? 1 : n_run > 0 ? 0 : EXIT_DEFERRED;
}
