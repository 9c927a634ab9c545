// Checks, cache types by name, random data: shared by all tests
#pragma once

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// the exit code of a test that cannot run here
static const int EXIT_DEFERRED = 77;

// one topic of the program; it registers itself
struct test_case {
    test_case(const char * name, std::function<void()> run);
};

#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
bool check(bool ok, const char * fmt, ...);

// ends the topic, and with it a program that runs nothing else: EXIT_DEFERRED
[[noreturn]] void defer(const std::string & reason);

// the arguments behind the topic
const std::string & argument(size_t i, const std::string & otherwise);

// a type by its name in this library, GGML_TYPE_COUNT when it has none
ggml_type find_type(const std::string & name);

// the same, or the end of the program
ggml_type type_from_name(const std::string & name);

// the names that this library has
std::vector<const char *> known_types(std::initializer_list<const char *> names);

ggml_backend_ptr backend_from_name(const std::string & name);

double nmse(const std::vector<float> & a, const std::vector<float> & b);
double norm(const float * x, int n);

std::vector<float> random_normal(size_t n, uint32_t seed, float stdev = 1.0f);

bool all_finite(const std::vector<float> & x);

// what llama.cpp logged since the last clear()
extern std::string log_text;

bool log_has(const std::string & s);

// its last characters, for a message
std::string log_end();

// runs f in a child process; its exit code, or minus the signal that ended it
int in_child(const std::function<void()> & f);
