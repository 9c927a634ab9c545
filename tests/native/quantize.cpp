// quantize: llama-quantize takes no cache type and no intermediate type for weights

#include "harness.h"

#include <cstdio>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

static void test_quantize() {
#ifdef _WIN32
    defer("needs popen()");
#else
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n < 0) {
        defer("needs /proc");
    }
    const std::string self(path, n);
    const std::string program = self.substr(0, self.rfind('/')) + "/llama-quantize";
    check(access(program.c_str(), X_OK) == 0, "there is no %s", program.c_str());
    check(find_type("tq3_0") != GGML_TYPE_COUNT, "there is no type tq3_0");

    for (const char * type : known_types({ "tq3_0", "q8_tq3", "q8_1" })) {
        for (const char * option : { "--tensor-type blk=", "--token-embedding-type ", "--output-tensor-type " }) {
            const std::string command = program + " " + option + type + " none.gguf none-out.gguf q8_0 2>&1";
            FILE * pipe = popen(command.c_str(), "r");
            std::string out;
            char buf[256];
            for (size_t k; (k = fread(buf, 1, sizeof(buf), pipe)) > 0;) {
                out.append(buf, k);
            }
            const int status = pclose(pipe);
            check(WIFEXITED(status) && WEXITSTATUS(status) == 1 && out.find("is not a type for weights") != std::string::npos,
                    "%s%s: status %d, %s", option, type, status, out.substr(0, 200).c_str());
        }
    }
#endif
}

static const test_case reg("quantize", test_quantize);
