// kernels <function> <n> <output> <input>...: one CPU kernel of tq3_0 on raw files, row by row of n values.
//
//   encode, encode-plain, encode-ref     values        -> blocks
//   query                                values        -> blocks of the type that the query takes
//   dot, dot-plain                       blocks, query -> one float per row
//   rows, rows-plain                     blocks        -> values, still rotated
//   rotate, rotate-plain                 values        -> rotated values
//   rotate-inv, rotate-inv-plain         rotated values -> values
//
// `-plain` is the C code of the same library. Inputs end where the next page cannot be read.

#include "ggml-cpu.h"
#include "ggml.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

extern "C" {
void quantize_row_tq3_0(const float * x, void * y, int64_t k);
void quantize_row_tq3_0_generic(const float * x, void * y, int64_t k);
void quantize_row_tq3_0_ref(const float * x, void * y, int64_t k);
void ggml_vec_dot_tq3_0_q8_tq3(int n, float * s, size_t bs, const void * x, size_t bx, const void * y, size_t by, int nrc);
void ggml_vec_dot_tq3_0_q8_tq3_generic(int n, float * s, size_t bs, const void * x, size_t bx, const void * y, size_t by, int nrc);
void dequantize_row_tq3_0_rot(const void * x, float * y, int64_t k);
void dequantize_row_tq3_0_rot_generic(const void * x, float * y, int64_t k);
void ggml_tq3_0_rotate(const float * x, float * y, int64_t k);
void ggml_tq3_0_rotate_generic(const float * x, float * y, int64_t k);
void ggml_tq3_0_rotate_inv(const float * x, float * y, int64_t k);
void ggml_tq3_0_rotate_inv_generic(const float * x, float * y, int64_t k);
}

static void fail(const std::string & text) {
    fprintf(stderr, "%s\n", text.c_str());
    exit(2);
}

struct input {
    char * data;
    size_t size;
};

// a file at the end of a mapping, before a page that is not there
static input read(const char * path) {
    FILE * file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        fail(std::string("cannot read ") + path);
    }
    const size_t size = ftell(file);
    const size_t page = sysconf(_SC_PAGESIZE);
    const size_t room = (size + page - 1)/page*page;
    rewind(file);
    char * base = (char *) mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + room, page, PROT_NONE)) {
        fail("no memory");
    }
    char * data = base + room - size;
    if (fread(data, 1, size, file) != size) {
        fail(std::string("cannot read ") + path);
    }
    fclose(file);
    return { data, size };
}

static ggml_type type_from_name(const char * name) {
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const char * cur = ggml_type_name((ggml_type) i);
        if (cur && !strcmp(cur, name)) {
            return (ggml_type) i;
        }
    }
    fail(std::string("no type ") + name);
    return GGML_TYPE_COUNT;
}

static std::vector<char> rows_of(const input & x, int64_t n, size_t out, ggml_from_float_t convert) {
    const size_t rows = x.size/(n*sizeof(float));
    std::vector<char> res(rows*out);
    for (size_t i = 0; i < rows; ++i) {
        convert((const float *) x.data + i*n, res.data() + i*out, n);
    }
    return res;
}

int main(int argc, char ** argv) {
    if (argc < 5) {
        fail("kernels <function> <n> <output> <input>...");
    }
    ggml_cpu_init();

    const std::string name = argv[1];
    const int64_t     n    = atoll(argv[2]);
    const ggml_type   type = type_from_name("tq3_0");
    const ggml_type   type_q = ggml_get_type_traits_cpu(type)->vec_dot_type;
    const size_t      size   = ggml_row_size(type, n);
    const size_t      size_q = ggml_row_size(type_q, n);

    std::vector<input> in;
    for (int i = 4; i < argc; ++i) {
        in.push_back(read(argv[i]));
    }

    std::vector<char> res;
    if (name == "encode") {
        res = rows_of(in[0], n, size, quantize_row_tq3_0);
    } else if (name == "encode-plain") {
        res = rows_of(in[0], n, size, quantize_row_tq3_0_generic);
    } else if (name == "encode-ref") {
        res = rows_of(in[0], n, size, quantize_row_tq3_0_ref);
    } else if (name == "query") {
        res = rows_of(in[0], n, size_q, ggml_get_type_traits_cpu(type_q)->from_float);
    } else if (name == "dot" || name == "dot-plain") {
        const auto dot = name == "dot" ? ggml_vec_dot_tq3_0_q8_tq3 : ggml_vec_dot_tq3_0_q8_tq3_generic;
        for (size_t i = 0; i < in[0].size/size; ++i) {
            float s;
            dot(n, &s, 0, in[0].data + i*size, 0, in[1].data + i*size_q, 0, 1);
            res.insert(res.end(), (char *) &s, (char *) (&s + 1));
        }
    } else if (name == "rows" || name == "rows-plain") {
        const auto rows = name == "rows" ? dequantize_row_tq3_0_rot : dequantize_row_tq3_0_rot_generic;
        for (size_t i = 0; i < in[0].size/size; ++i) {
            std::vector<float> y(n);
            rows(in[0].data + i*size, y.data(), n);
            res.insert(res.end(), (char *) y.data(), (char *) (y.data() + n));
        }
    } else if (name == "rotate" || name == "rotate-plain" || name == "rotate-inv" || name == "rotate-inv-plain") {
        const auto rotate = name == "rotate" ? ggml_tq3_0_rotate : name == "rotate-plain" ? ggml_tq3_0_rotate_generic :
            name == "rotate-inv" ? ggml_tq3_0_rotate_inv : ggml_tq3_0_rotate_inv_generic;
        res.resize(in[0].size);
        rotate((const float *) in[0].data, (float *) res.data(), in[0].size/sizeof(float));
    } else {
        fail("no function " + name);
    }

    FILE * file = fopen(argv[3], "wb");
    if (!file || fwrite(res.data(), 1, res.size(), file) != res.size() || fclose(file)) {
        fail(std::string("cannot write ") + argv[3]);
    }
    return 0;
}
