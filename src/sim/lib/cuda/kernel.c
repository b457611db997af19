/*
 * Kernels are not run: one takes the time that its parameter says. A PTX entry
 * whose first parameter is a .u64 with a name ending in "duration_ns" runs for
 * that many nanoseconds; any other ends at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sim/lib/cuda/cuda.h"

#define PTX_MAX (16u << 20)
#define NAME_BYTES 128

struct cuda_function {
    struct cuda_function *next;
    char name[NAME_BYTES];
    bool timed;
};

struct cuda_module {
    struct cuda_module *next;
    struct cuda_function *functions;
};

static struct cuda_module *modules;

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

static size_t name_length(const char *p)
{
    size_t n = 0;
    while (is_name(p[n]))
        n++;
    return n;
}

/* Does the parameter list that begins at `p` start with ".param .u64 ..duration_ns"? */
static bool is_timed(const char *p)
{
    const char *end = strchr(p, ')');
    const char *type = strstr(p, ".param .u64");
    if (!end || !type || type > end)
        return false;
    type += strlen(".param .u64");
    type += strspn(type, " \t\n");
    const char *suffix = "duration_ns";
    size_t n = name_length(type);
    return n >= strlen(suffix) && strncmp(type + n - strlen(suffix), suffix, strlen(suffix)) == 0;
}

static void add_function(struct cuda_module *m, const char *p)
{
    size_t n = name_length(p);
    if (n == 0 || n >= NAME_BYTES)
        return;
    struct cuda_function *f = mem_new(sizeof *f);
    memcpy(f->name, p, n);
    p += n + strspn(p + n, " \t\n");
    f->timed = *p == '(' && is_timed(p);
    f->next = m->functions;
    m->functions = f;
}

static void free_module(struct cuda_module *m)
{
    while (m->functions) {
        struct cuda_function *next = m->functions->next;
        free(m->functions);
        m->functions = next;
    }
    free(m);
}

static CUresult load_locked(const char *ptx, struct cuda_module **ret)
{
    struct cuda_context *c;
    CUresult rc = context_current_locked(&c);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (strnlen(ptx, PTX_MAX) == PTX_MAX || !strstr(ptx, ".version") || !strstr(ptx, ".target"))
        return CUDA_ERROR_INVALID_IMAGE;
    struct cuda_module *m = mem_new(sizeof *m);
    for (const char *p = ptx; (p = strstr(p, ".entry"));) {
        p += strlen(".entry");
        add_function(m, p + strspn(p, " \t\n"));
    }
    if (!m->functions) {
        free_module(m);
        return CUDA_ERROR_INVALID_PTX;
    }
    m->next = modules;
    modules = m;
    *ret = m;
    return CUDA_SUCCESS;
}

CUDA(cuModuleLoadData, CUmodule *ret_module, const void *image)
{
    if (!ret_module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    device_lock();
    CUresult rc = load_locked(image, ret_module);
    device_unlock();
    return rc;
}

static struct cuda_module **find_module(const struct cuda_module *m)
{
    struct cuda_module **at = &modules;
    while (*at && *at != m)
        at = &(*at)->next;
    return at;
}

CUDA(cuModuleUnload, CUmodule module)
{
    device_lock();
    struct cuda_module **at = find_module(module);
    bool known = module && *at;
    if (known) {
        *at = module->next;
        free_module(module);
    }
    device_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUDA(cuModuleGetFunction, CUfunction *ret_function, CUmodule module, const char *name)
{
    if (!ret_function || !name)
        return CUDA_ERROR_INVALID_VALUE;
    device_lock();
    struct cuda_function *f = module && *find_module(module) ? module->functions : NULL;
    CUresult rc = f ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
    for (; f && rc != CUDA_SUCCESS; f = f->next) {
        if (strcmp(f->name, name) == 0) {
            *ret_function = f;
            rc = CUDA_SUCCESS;
        }
    }
    device_unlock();
    return rc;
}

static bool is_function(const struct cuda_function *f)
{
    for (const struct cuda_module *m = modules; m; m = m->next)
        for (const struct cuda_function *x = m->functions; x; x = x->next)
            if (x == f)
                return true;
    return false;
}

static CUresult launch_locked(const struct cuda_function *f, void **params)
{
    struct cuda_context *c;
    uint64_t duration_ns = 0;
    CUresult rc = context_current_locked(&c);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!is_function(f))
        return CUDA_ERROR_INVALID_HANDLE;
    if (f->timed && params && params[0])
        memcpy(&duration_ns, params[0], sizeof duration_ns);
    return context_launch_locked(c, duration_ns);
}

/* Eleven parameters are CUDA's. NOLINTNEXTLINE(readability-function-size) */
CUDA(cuLaunchKernel, CUfunction f, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
     unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
     CUstream stream, void **params, void **extra)
{
    (void)shared_bytes; /* nothing of what a kernel does is simulated but its time */
    (void)stream;
    (void)extra;
    if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z)
        return CUDA_ERROR_INVALID_VALUE;
    device_lock();
    CUresult rc = launch_locked(f, params);
    device_unlock();
    return rc;
}
