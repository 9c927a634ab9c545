// log: what a program logged is on the screen before it ends

#include "harness.h"

#include "log.h"

#include <cstdio>
#include <cstdlib>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

static void test_log() {
    static const char * text = "the reason why it ends\n";
#ifdef _WIN32
    defer("needs fork()");
#else
    int n_seen = 0;
    for (int i = 0; i < 20; ++i) {
        int fd[2];
        check(pipe(fd) == 0, "pipe");
        fflush(stdout);
        const pid_t pid = fork();
        if (pid == 0) {
            dup2(fd[1], 1);
            dup2(fd[1], 2);
            close(fd[0]);
            LOG_ERR("%s", text);
            exit(1);
        }
        close(fd[1]);
        std::string out;
        char buf[256];
        for (ssize_t n; (n = read(fd[0], buf, sizeof(buf))) > 0;) {
            out.append(buf, n);
        }
        close(fd[0]);
        int status = 0;
        waitpid(pid, &status, 0);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 1, "the program does not end as it should");
        n_seen += out.find(text) != std::string::npos;
    }
    printf("  %d of 20 programs showed their error\n", n_seen);
    check(n_seen == 20, "%d of 20 programs showed their error", n_seen);
#endif
}

static const test_case reg("log", test_log);
