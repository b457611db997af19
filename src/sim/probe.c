/*
 * divvy-probe: what a CUDA program sees and may take, through the CUDA driver
 * API alone. The library is opened at run time, so one program serves real
 * and simulated cards.
 */
#include <argp.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"

DEFINE_AUTO_PTR(json_t, json_decref);

#define PERIOD_NS INT64_C(100000000) /* one turn of busy and idle */
#define ATTRIBUTE_MULTIPROCESSORS 16
#define CUDA_OUT_OF_MEMORY 2
#define CUDA_NO_DEVICE 100

enum {
    EXIT_OTHER = 1,
    EXIT_MEMORY = 2,
    EXIT_NO_DEVICE = 3,
    EXIT_NO_LIBRARY = 4,
};

typedef struct {
    unsigned char bytes[16];
} uuid_t;

/* Spins until the card's own clock says that the time is over. */
static const char spin_ptx[] = ".version 6.0\n"
                               ".target sm_50\n"
                               ".address_size 64\n"
                               ".visible .entry spin(.param .u64 duration_ns)\n"
                               "{\n"
                               "  .reg .pred %p<2>;\n"
                               "  .reg .b64 %rd<5>;\n"
                               "  ld.param.u64 %rd1, [duration_ns];\n"
                               "  mov.u64 %rd2, %globaltimer;\n"
                               "AGAIN:\n"
                               "  mov.u64 %rd3, %globaltimer;\n"
                               "  sub.s64 %rd4, %rd3, %rd2;\n"
                               "  setp.lt.u64 %p1, %rd4, %rd1;\n"
                               "  @%p1 bra AGAIN;\n"
                               "  ret;\n"
                               "}\n";

/* The functions that are used, by the names that the library exports. */
static struct {
    int (*init)(unsigned flags);
    int (*driver_version)(int *version);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_name)(char *name, int len, int device);
    int (*device_uuid)(uuid_t *uuid, int device);
    int (*part_uuid)(uuid_t *uuid, int device); /* NULL before driver 470 */
    int (*device_total)(size_t *bytes, int device);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*context_create)(void **context, unsigned flags, int device);
    int (*context_destroy)(void *context);
    int (*synchronize)(void);
    int (*memory_info)(size_t *free_bytes, size_t *total_bytes);
    int (*memory_alloc)(unsigned long long *address, size_t bytes);
    int (*memory_free)(unsigned long long address);
    int (*module_load)(void **module, const void *image);
    int (*module_function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared_bytes, void *stream, void **params, void **extra);
    int (*error_name)(int error, const char **name);
    int (*error_text)(int error, const char **text);
} cuda;

static const struct {
    void *to;
    const char *name;
    bool optional;
} symbols[] = {
    { &cuda.init, "cuInit", false },
    { &cuda.driver_version, "cuDriverGetVersion", false },
    { &cuda.device_count, "cuDeviceGetCount", false },
    { &cuda.device_get, "cuDeviceGet", false },
    { &cuda.device_name, "cuDeviceGetName", false },
    { &cuda.device_uuid, "cuDeviceGetUuid", false },
    { &cuda.part_uuid, "cuDeviceGetUuid_v2", true },
    { &cuda.device_total, "cuDeviceTotalMem_v2", false },
    { &cuda.device_attribute, "cuDeviceGetAttribute", false },
    { &cuda.context_create, "cuCtxCreate_v2", false },
    { &cuda.context_destroy, "cuCtxDestroy_v2", false },
    { &cuda.synchronize, "cuCtxSynchronize", false },
    { &cuda.memory_info, "cuMemGetInfo_v2", false },
    { &cuda.memory_alloc, "cuMemAlloc_v2", false },
    { &cuda.memory_free, "cuMemFree_v2", false },
    { &cuda.module_load, "cuModuleLoadData", false },
    { &cuda.module_function, "cuModuleGetFunction", false },
    { &cuda.launch, "cuLaunchKernel", false },
    { &cuda.error_name, "cuGetErrorName", false },
    { &cuda.error_text, "cuGetErrorString", false },
};

struct options {
    uint64_t mem_bytes;
    double seconds;
    uint64_t load_percent;
    uint64_t device;
    bool json;
    bool quiet;
};

struct seen {
    char name[128];
    char uuid[64];
    size_t total_bytes;
    size_t free_bytes;
};

static int exit_code(int error)
{
    return error == CUDA_NO_DEVICE       ? EXIT_NO_DEVICE
           : error == CUDA_OUT_OF_MEMORY ? EXIT_MEMORY
                                         : EXIT_OTHER;
}

/* Tells of a CUDA error and returns the exit code for it; 0 for no error. */
static int check(int error, const char *doing)
{
    const char *name = NULL;
    const char *text = NULL;
    if (error == 0)
        return 0;
    (void)cuda.error_name(error, &name); /* NULL for an error that it does not know */
    (void)cuda.error_text(error, &text);
    fprintf(stderr, "divvy-probe: CUDA error %d (%s) while %s: %s\n", error, name ? name : "?",
            doing, text ? text : "no words for it");
    return exit_code(error);
}

static int open_library(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr,
                "divvy-probe: %s; it comes with the NVIDIA driver, or from: eval "
                "\"$(divvy-sim env)\"\n",
                dlerror());
        return EXIT_NO_LIBRARY;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol && !symbols[i].optional) {
            fprintf(stderr, "divvy-probe: libcuda.so.1 lacks %s; it is too old\n", symbols[i].name);
            return EXIT_NO_LIBRARY;
        }
        memcpy(symbols[i].to, &symbol, sizeof symbol);
    }
    return 0;
}

/* Where the two calls differ, the device is a MIG device. */
static int read_uuid(int device, char ret[64])
{
    uuid_t card;
    uuid_t part;
    int rc = check(cuda.device_uuid(&card, device), "asking for a UUID");
    if (rc)
        return rc;
    part = card;
    if (cuda.part_uuid)
        rc = check(cuda.part_uuid(&part, device), "asking for a UUID");
    AUTO(text) struct text t = TEXT_INIT;
    text_add(&t, memcmp(&card, &part, sizeof card) ? "MIG-" : "GPU-");
    for (size_t i = 0; i < sizeof part.bytes; i++)
        text_addf(&t, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", part.bytes[i]);
    memcpy(ret, t.buf, t.len + 1); /* 40 characters */
    return rc;
}

static int look_at(int ordinal, struct seen *ret)
{
    int device;
    void *context;
    size_t total;
    int rc = check(cuda.device_get(&device, ordinal), "opening a device");
    if (!rc)
        rc = check(cuda.device_name(ret->name, sizeof ret->name, device), "asking for a name");
    if (!rc)
        rc = read_uuid(device, ret->uuid);
    if (!rc)
        rc = check(cuda.device_total(&ret->total_bytes, device), "asking for the memory");
    if (!rc)
        rc = check(cuda.context_create(&context, 0, device), "making a context");
    if (rc)
        return rc;
    rc = check(cuda.memory_info(&ret->free_bytes, &total), "asking for free memory");
    int ended = check(cuda.context_destroy(context), "ending a context");
    return rc ? rc : ended;
}

static void print_seen(const struct seen *seen, int count)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    printf("CUDA_VISIBLE_DEVICES %s\n", visible ? visible : "is not set");
    for (int i = 0; i < count; i++) {
        AUTO(text) struct text memory = TEXT_INIT;
        text_add_size(&memory, seen[i].total_bytes);
        text_add(&memory, ", free ");
        text_add_size(&memory, seen[i].free_bytes);
        printf("%d  %s  %s  %s\n", i, seen[i].name, seen[i].uuid, memory.buf);
    }
}

static void print_json(const struct seen *seen, int count, const struct options *o)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int version = 0;
    (void)cuda.driver_version(&version); /* 0 says that it is not known */
    json_t *devices = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(devices, json_pack("{s:i, s:s, s:s, s:I, s:I}", "index", i, "name",
                                                 seen[i].name, "uuid", seen[i].uuid, "total_bytes",
                                                 (json_int_t)seen[i].total_bytes, "free_bytes",
                                                 (json_int_t)seen[i].free_bytes));
    AUTO_PTR(json_decref)
    json_t *all = json_pack("{s:o, s:i, s:I, s:o}", "cuda_visible_devices",
                            visible ? json_string(visible) : json_null(), "driver_version", version,
                            "holds_bytes", (json_int_t)o->mem_bytes, "devices", devices);
    (void)json_dumpf(all, stdout, 0); /* main looks at standard output's error */
    putchar('\n');
}

static int look_at_all(const struct options *o)
{
    int count;
    int rc = check(cuda.device_count(&count), "counting devices");
    if (rc)
        return rc;
    auto_free struct seen *seen = mem_new((size_t)count * sizeof *seen);
    for (int i = 0; i < count && !rc; i++)
        rc = look_at(i, &seen[i]);
    if (rc || o->quiet)
        return rc;
    if (o->json)
        print_json(seen, count, o);
    else
        print_seen(seen, count);
    (void)fflush(stdout); /* whoever watches wants it before we hold; main looks at the error */
    return 0;
}

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void sleep_ns(int64_t ns)
{
    struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
    while (ns > 0 && nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

static int keep_busy(int device, double seconds, uint64_t load_percent)
{
    void *module;
    void *spin;
    int blocks;
    int rc = check(cuda.module_load(&module, spin_ptx), "loading the kernel");
    if (!rc)
        rc = check(cuda.module_function(&spin, module, "spin"), "finding the kernel");
    if (!rc)
        rc = check(cuda.device_attribute(&blocks, ATTRIBUTE_MULTIPROCESSORS, device),
                   "counting multiprocessors");
    unsigned long long busy_ns = (unsigned long long)PERIOD_NS * load_percent / 100;
    void *params[] = { &busy_ns };
    int64_t end = now_ns() + (int64_t)(seconds * 1e9);
    while (!rc && now_ns() < end) {
        int64_t next = now_ns() + PERIOD_NS;
        rc = check(cuda.launch(spin, (unsigned)blocks, 1, 1, 128, 1, 1, 0, NULL, params, NULL),
                   "starting the kernel");
        if (!rc)
            rc = check(cuda.synchronize(), "waiting for the kernel");
        sleep_ns(next - now_ns());
    }
    return rc;
}

static int hold(const struct options *o)
{
    int device;
    void *context;
    unsigned long long address = 0;
    int rc = check(cuda.device_get(&device, (int)o->device), "opening the device");
    if (!rc)
        rc = check(cuda.context_create(&context, 0, device), "making a context");
    if (!rc && o->mem_bytes)
        rc = check(cuda.memory_alloc(&address, o->mem_bytes), "taking memory");
    if (!rc && o->load_percent)
        rc = keep_busy(device, o->seconds, o->load_percent);
    else if (!rc)
        sleep_ns((int64_t)(o->seconds * 1e9));
    if (!rc && address)
        rc = check(cuda.memory_free(address), "giving memory back");
    return rc; /* the context ends with the process */
}

static int probe(const struct options *o)
{
    int rc = open_library();
    if (!rc)
        rc = check(cuda.init(0), "starting CUDA");
    if (!rc)
        rc = look_at_all(o);
    if (!rc && (o->mem_bytes || o->seconds > 0))
        rc = hold(o);
    return rc;
}

static const struct argp_option option_table[] = {
    { "mem", 'm', "SIZE", 0, "take so much memory, like 6G", 0 },
    { "seconds", 's', "N", 0, "hold it for N seconds", 0 },
    { "load", 'l', "PERCENT", 0, "keep the device busy for this part of the time", 0 },
    { "device", 'd', "N", 0, "of the devices seen, the one to use (default: 0)", 0 },
    { "json", 'j', NULL, 0, "print JSON, one line", 0 },
    { "quiet", 'q', NULL, 0, "print nothing but errors", 0 },
    { 0 }
};

static void take_seconds(const char *arg, struct options *o, struct argp_state *state)
{
    char *end;
    o->seconds = strtod(arg, &end);
    if (end == arg || *end || !isfinite(o->seconds) || o->seconds < 0 || o->seconds > 1e8)
        argp_error(state, "--seconds: '%s' is no number of seconds from 0 to 100000000", arg);
}

static error_t take_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    struct err e = ERR_INIT;
    int rc = 0;
    switch (key) {
    case 'm':
        rc = text_parse_size(arg, "--mem", &o->mem_bytes, &e);
        break;
    case 's':
        take_seconds(arg, o, state);
        break;
    case 'l':
        rc = text_parse_u64(arg, 0, 100, "--load", &o->load_percent, &e);
        break;
    case 'd':
        rc = text_parse_u64(arg, 0, 63, "--device", &o->device, &e);
        break;
    case 'j':
        o->json = true;
        break;
    case 'q':
        o->quiet = true;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is one word too many", arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (rc < 0)
        argp_error(state, "%s", e.text);
    return 0;
}

int main(int argc, char **argv)
{
    const struct argp argp = {
        option_table,
        take_option,
        "",
        "Show the GPUs that a CUDA program sees here, and use one for a while.\v"
        "Without options it only looks. Errors are CUDA's own.\n\n"
        "Exit: 0 done, 1 a CUDA error, 2 out of memory (CUDA error 2), 3 no device (CUDA error "
        "100), 4 no libcuda.so.1, 64 wrong usage.",
        NULL,
        NULL,
        NULL
    };
    struct options o = { .seconds = 0 };
    argp_program_version = "divvy-probe " DIVVY_VERSION;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return EXIT_OTHER;
    int rc = probe(&o);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "divvy-probe: cannot write to standard output\n");
        return EXIT_OTHER;
    }
    return rc;
}
