#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "driver/state.h"

#define PROCESSES_MAX 65536u

typedef nvmlReturn_t (*list_fn)(nvmlDevice_t, unsigned int *, void *);

/* The three ABIs of one list, newest last; NULL where the library has none. */
struct lists {
    list_fn v1, v2, v3;
    bool graphics;
};

/* How the records of the chosen function lie in memory. */
struct records {
    list_fn list;
    size_t size;
    bool has_instances;
};

/*
 * The v2 and v3 functions give the same records, so v2 is preferred: v3 of some 535 drivers writes
 * 32 bytes a record. Those are told by the presence of one function and the absence of another.
 */
static struct records choose(const struct library *lib, const struct lists *l)
{
    bool wide =
        lib->nvmlDeviceGetConfComputeMemSizeInfo && !lib->nvmlDeviceGetRunningProcessDetailList;
    if (l->v2)
        return (struct records){ l->v2, sizeof(nvmlProcessInfo_v2_t), true };
    if (l->v3)
        return (struct records){
            l->v3, wide ? sizeof(nvmlProcessDetail_v1_t) : sizeof(nvmlProcessInfo_v2_t), true
        };
    return (struct records){ l->v1, sizeof(nvmlProcessInfo_v1_t), false };
}

/* Name, owner and start: what makes a pid one process. Gone or hidden: left as not readable. */
static void look_up(struct gpu_process *p)
{
    char path[64];
    char buf[1024];
    struct stat st;
    p->uid = (uid_t)-1;
    (void)snprintf(path, sizeof path, "/proc/%d", (int)p->pid);
    if (stat(path, &st) == 0)
        p->uid = st.st_uid;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)p->pid);
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
    if (n <= 0)
        return;
    buf[n] = '\0';
    char *open_paren = strchr(buf, '(');
    char *close_paren = strrchr(buf, ')'); /* a name may have brackets in it */
    if (!open_paren || !close_paren || close_paren < open_paren)
        return;
    (void)snprintf(p->name, sizeof p->name, "%.*s", (int)(close_paren - open_paren - 1),
                   open_paren + 1);
    unsigned long long start;
    if (sscanf(close_paren + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &start) == 1)
        p->start_ticks = start;
}

static struct gpu_process *find(struct card *c, pid_t pid, uint32_t gi, uint32_t ci)
{
    for (size_t i = 0; i < c->process_count; i++)
        if (c->processes[i].pid == pid && c->processes[i].gi == gi && c->processes[i].ci == ci)
            return &c->processes[i];
    return NULL;
}

static void add_record(struct card *c, const unsigned char *at, const struct records *rec,
                       bool graphics)
{
    nvmlProcessInfo_v2_t info = { .gpuInstanceId = NVML_NO_INSTANCE,
                                  .computeInstanceId = NVML_NO_INSTANCE };
    memcpy(&info, at, rec->has_instances ? sizeof info : sizeof(nvmlProcessInfo_v1_t));
    if (find(c, (pid_t)info.pid, info.gpuInstanceId, info.computeInstanceId))
        return; /* MPS clients may stand in two lists */
    struct gpu_process *p = card_add_process(c);
    p->pid = (pid_t)info.pid;
    p->gi = info.gpuInstanceId;
    p->ci = info.computeInstanceId;
    p->mem_bytes = info.usedGpuMemory; /* all ones when not told, on both sides */
    p->graphics = graphics;
    look_up(p);
}

/* Processes appear between asking how many there are and listing them: ask again with room. */
static bool add_list(const struct library *lib, nvmlDevice_t dev, const struct lists *l,
                     struct card *c)
{
    struct records rec = choose(lib, l);
    if (!rec.list)
        return false;
    unsigned int room = 32;
    for (int tries = 0; tries < 8 && room <= PROCESSES_MAX; tries++) {
        unsigned int n = room;
        auto_free unsigned char *list = mem_new((size_t)room * sizeof(nvmlProcessDetail_v1_t));
        nvmlReturn_t r = rec.list(dev, &n, list);
        if (r == NVML_ERROR_INSUFFICIENT_SIZE) {
            room = (n > room ? n : room) + 32;
            continue;
        }
        if (r != NVML_SUCCESS)
            return false;
        for (unsigned int i = 0; i < n && i < room; i++)
            add_record(c, list + (size_t)i * rec.size, &rec, l->graphics);
        return true;
    }
    return false;
}

bool driver_add_processes(struct driver *d, nvmlDevice_t dev, struct card *c)
{
    const struct library *lib = &d->lib;
    const struct lists compute = { lib->nvmlDeviceGetComputeRunningProcesses,
                                   lib->nvmlDeviceGetComputeRunningProcesses_v2,
                                   lib->nvmlDeviceGetComputeRunningProcesses_v3, false };
    const struct lists graphics = { lib->nvmlDeviceGetGraphicsRunningProcesses,
                                    lib->nvmlDeviceGetGraphicsRunningProcesses_v2,
                                    lib->nvmlDeviceGetGraphicsRunningProcesses_v3, true };
    const struct lists mps = { lib->nvmlDeviceGetMPSComputeRunningProcesses,
                               lib->nvmlDeviceGetMPSComputeRunningProcesses_v2,
                               lib->nvmlDeviceGetMPSComputeRunningProcesses_v3, false };
    bool told = add_list(lib, dev, &compute, c);
    (void)add_list(lib, dev, &graphics, c); /* not told on compute cards, and nothing is missed */
    (void)add_list(lib, dev, &mps, c);
    return told;
}
