#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nvml/nvml.h"
#include "sim/process.h"
#include "sim_boards.h"

/* Calls the library's exact symbol, as every client does. */
#define CALL(name, types, ...) (((nvmlReturn_t(*) types)symbol(#name))(__VA_ARGS__))

static void *library;
static char dir[64];
static struct machine *machine;

static void *symbol(const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        fail_msg("the library has no %s", name);
    return found;
}

/* gpu0 and gpu1 Ampere, gpu2 Hopper. */
static int put_up(void **state)
{
    (void)state;
    static const uint32_t cards[3] = { 0, 0, 1 };
    struct sim_board boards[2] = { sim_a100(), sim_hopper() };
    struct machine_plan plan = {
        .boards = boards, .board_count = 2, .cards = cards, .card_count = 3
    };
    (void)snprintf(dir, sizeof dir, "/tmp/divvy-test-nvml-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    assert_int_equal(setenv("DIVVY_SIM", dir, 1), 0);
    assert_int_equal(unsetenv("DIVVY_DRIVER_ROOT"), 0);
    assert_int_equal(machine_make(dir, &plan, NULL), 0);
    assert_int_equal(machine_open(dir, &machine, NULL), 0);
    library = dlopen(getenv("DIVVY_NVML"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    assert_int_equal(CALL(nvmlInit_v2, (void)), NVML_SUCCESS);
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    assert_int_equal(CALL(nvmlShutdown, (void)), NVML_SUCCESS);
    assert_int_equal(machine_remove(dir, NULL), 0); /* so that the next init opens the next one */
    assert_int_equal(dlclose(library), 0);
    machine_close(machine);
    (void)file_remove_tree(AT_FDCWD, dir, NULL); /* best effort; the folder is the test's own */
    return 0;
}

static struct machine_edit edit = MACHINE_EDIT_INIT;

static struct sim_state *change(void)
{
    assert_int_equal(machine_edit_begin(machine, &edit, NULL), 0);
    return edit.state;
}

static void changed(void)
{
    assert_int_equal(machine_edit_commit(&edit), 0);
}

static void fault(uint32_t card, const char *words)
{
    assert_int_equal(sim_fault_set(change(), card, words, NULL), 0);
    changed();
}

static void driver(const char *version)
{
    struct sim_state *st = change();
    (void)snprintf(st->driver_version, sizeof st->driver_version, "%s", version);
    changed();
}

static nvmlDevice_t card(unsigned int index)
{
    nvmlDevice_t device = NULL;
    assert_int_equal(
        CALL(nvmlDeviceGetHandleByIndex_v2, (unsigned int, nvmlDevice_t *), index, &device),
        NVML_SUCCESS);
    return device;
}

static nvmlReturn_t set_mig(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation)
{
    return CALL(nvmlDeviceSetMigMode, (nvmlDevice_t, unsigned int, nvmlReturn_t *), device, mode,
                activation);
}

static nvmlReturn_t cut(nvmlDevice_t device, unsigned int profile, nvmlGpuInstance_t *gi)
{
    return CALL(nvmlDeviceCreateGpuInstance, (nvmlDevice_t, unsigned int, nvmlGpuInstance_t *),
                device, profile, gi);
}

static nvmlReturn_t cut_ci(nvmlGpuInstance_t gi, unsigned int profile, nvmlComputeInstance_t *ci)
{
    return CALL(nvmlGpuInstanceCreateComputeInstance,
                (nvmlGpuInstance_t, unsigned int, nvmlComputeInstance_t *), gi, profile, ci);
}

static nvmlReturn_t mig_device(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
    return CALL(nvmlDeviceGetMigDeviceHandleByIndex, (nvmlDevice_t, unsigned int, nvmlDevice_t *),
                device, index, mig);
}

static void enable(nvmlDevice_t device)
{
    nvmlReturn_t activation = NVML_ERROR_UNKNOWN;
    assert_int_equal(set_mig(device, 1, &activation), NVML_SUCCESS);
    assert_int_equal(activation, NVML_SUCCESS);
}

/* MIG on and one 3g.40gb with its compute instance. */
static nvmlDevice_t sliced(nvmlDevice_t device, nvmlGpuInstance_t *gi, nvmlComputeInstance_t *ci)
{
    nvmlDevice_t mig = NULL;
    enable(device);
    assert_int_equal(cut(device, 9, gi), NVML_SUCCESS);
    assert_int_equal(cut_ci(*gi, 2, ci), NVML_SUCCESS);
    assert_int_equal(mig_device(device, 0, &mig), NVML_SUCCESS);
    return mig;
}

static void calls_count_their_initialisation(void **state)
{
    (void)state;
    unsigned int count = 0;
    assert_int_equal(CALL(nvmlInitWithFlags, (unsigned int), 0), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlShutdown, (void)), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlDeviceGetCount_v2, (unsigned int *), &count), NVML_SUCCESS);
    assert_int_equal(count, 3);
    assert_int_equal(CALL(nvmlShutdown, (void)), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlDeviceGetCount_v2, (unsigned int *), &count),
                     NVML_ERROR_UNINITIALIZED);
    assert_int_equal(CALL(nvmlShutdown, (void)), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(CALL(nvmlInit_v2, (void)), NVML_SUCCESS);
}

static void a_driver_that_is_not_there_is_not_loaded(void **state)
{
    (void)state;
    unsigned int minor;
    nvmlDevice_t device = card(0);
    assert_int_equal(machine_remove(dir, NULL), 0);
    assert_int_equal(CALL(nvmlDeviceGetMinorNumber, (nvmlDevice_t, unsigned int *), device, &minor),
                     NVML_ERROR_DRIVER_NOT_LOADED);
    assert_int_equal(CALL(nvmlShutdown, (void)), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlInit_v2, (void)), NVML_ERROR_DRIVER_NOT_LOADED);
    static const uint32_t cards[1] = { 0 };
    struct sim_board board = sim_a100();
    struct machine_plan plan = {
        .boards = &board, .board_count = 1, .cards = cards, .card_count = 1
    };
    assert_int_equal(machine_make(dir, &plan, NULL), 0);
    assert_int_equal(CALL(nvmlInit_v2, (void)), NVML_SUCCESS);
    (void)card(0);
}

static void rubbish_is_no_handle(void **state)
{
    (void)state;
    unsigned int minor;
    int local;
    void *bad[] = { NULL, &local, (void *)(uintptr_t)1,
                    (char *)card(0) + 1 - 1 + (1ULL << 44) * 9 };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(
            CALL(nvmlDeviceGetMinorNumber, (nvmlDevice_t, unsigned int *), bad[i], &minor),
            NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(CALL(nvmlDeviceGetMinorNumber, (nvmlDevice_t, unsigned int *), card(0), NULL),
                     NVML_ERROR_INVALID_ARGUMENT);
}

static void texts_need_their_room(void **state)
{
    (void)state;
    char uuid[96];
    nvmlDevice_t same = NULL;
    assert_int_equal(
        CALL(nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned int), card(1), uuid, 40),
        NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(
        CALL(nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned int), card(1), uuid, 41),
        NVML_SUCCESS);
    assert_int_equal(CALL(nvmlDeviceGetHandleByUUID, (const char *, nvmlDevice_t *), uuid, &same),
                     NVML_SUCCESS);
    assert_ptr_equal(same, card(1));
    assert_int_equal(CALL(nvmlDeviceGetHandleByPciBusId_v2, (const char *, nvmlDevice_t *),
                          "0000:0E:00.0", &same),
                     NVML_SUCCESS);
    assert_ptr_equal(same, card(1));
    assert_int_equal(CALL(nvmlDeviceGetHandleByPciBusId_v2, (const char *, nvmlDevice_t *),
                          "0000:FF:00.0", &same),
                     NVML_ERROR_NOT_FOUND);
}

static void a_wrong_tag_is_answered_as_its_branch_does(void **state)
{
    (void)state;
    nvmlMemory_v2_t memory = { .version = NVML_TAG(nvmlMemory_v2_t, 2) };
    assert_int_equal(memory.version, 0x02000028);
#define ASK() CALL(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t, nvmlMemory_v2_t *), card(0), &memory)
    assert_int_equal(ASK(), NVML_SUCCESS);
    assert_int_equal(memory.total, memory.reserved + memory.used + memory.free);
    memory.version = 2;
    assert_int_equal(ASK(), NVML_ERROR_FUNCTION_NOT_FOUND);
    driver("570.86.15");
    assert_int_equal(ASK(), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
#undef ASK
}

static nvmlReturn_t profile(unsigned int index, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    return CALL(nvmlDeviceGetGpuInstanceProfileInfoV,
                (nvmlDevice_t, unsigned int, nvmlGpuInstanceProfileInfo_v2_t *), card(0), index,
                info);
}

static void one_symbol_fills_two_structures(void **state)
{
    (void)state;
    nvmlGpuInstanceProfileInfo_v2_t two = { .version = 0x02000098 };
    union {
        nvmlGpuInstanceProfileInfo_v2_t asked;
        nvmlGpuInstanceProfileInfo_v3_t given;
    } three = { .given.version = 0x03000098 };
    enable(card(0));
    assert_int_equal(profile(2, &two), NVML_SUCCESS);
    assert_int_equal(two.id, 9);
    assert_int_equal(two.memorySizeMB, 40192);
    assert_string_equal(two.name, "MIG 3g.40gb");
    assert_int_equal(profile(2, &three.asked), NVML_SUCCESS);
    assert_int_equal(three.given.id, 9);
    assert_int_equal(three.given.memorySizeMB, 40192);
    assert_string_equal(three.given.name, "MIG 3g.40gb");
    driver("535.261.03");
    three.given.version = 0x03000098;
    assert_int_equal(profile(2, &three.asked), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(profile(2, &two), NVML_SUCCESS);
    assert_int_equal(profile(6, &two), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(profile(10, &two), NVML_ERROR_INVALID_ARGUMENT);
    driver("470.256.02");
    assert_int_equal(profile(9, &two), NVML_ERROR_INVALID_ARGUMENT);
}

static void geometry_is_told_with_mig_off_since_550(void **state)
{
    (void)state;
    nvmlGpuInstanceProfileInfo_v2_t info = { .version = 0x02000098 };
    nvmlFieldValue_t field = { .fieldId = 199 };
    assert_int_equal(profile(0, &info), NVML_SUCCESS);
    assert_int_equal(
        CALL(nvmlDeviceGetFieldValues, (nvmlDevice_t, int, nvmlFieldValue_t *), card(0), 1, &field),
        NVML_SUCCESS);
    assert_int_equal(field.nvmlReturn, NVML_SUCCESS);
    assert_int_equal(field.value.uiVal, 1);
    driver("535.261.03");
    assert_int_equal(profile(0, &info), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(
        CALL(nvmlDeviceGetFieldValues, (nvmlDevice_t, int, nvmlFieldValue_t *), card(0), 1, &field),
        NVML_SUCCESS);
    assert_int_equal(field.nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
}

static void handles_end_with_their_instance(void **state)
{
    (void)state;
    nvmlGpuInstance_t gi, again;
    nvmlComputeInstance_t ci;
    nvmlDevice_t mig = sliced(card(0), &gi, &ci), fresh = NULL;
    char before[96], after[96];
    unsigned int id;
    assert_ptr_not_equal(mig, card(0));
    assert_ptr_not_equal((void *)gi, (void *)ci);
    assert_int_equal(CALL(nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned int), mig, before, 96),
                     NVML_SUCCESS);
    assert_int_equal(CALL(nvmlGpuInstanceDestroy, (nvmlGpuInstance_t), gi), NVML_ERROR_IN_USE);
    assert_int_equal(CALL(nvmlComputeInstanceDestroy, (nvmlComputeInstance_t), ci), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlDeviceGetGpuInstanceId, (nvmlDevice_t, unsigned int *), mig, &id),
                     NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(CALL(nvmlGpuInstanceDestroy, (nvmlGpuInstance_t), gi), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlGpuInstanceDestroy, (nvmlGpuInstance_t), gi),
                     NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(cut(card(0), 9, &again), NVML_SUCCESS);
    assert_int_equal(cut_ci(again, 2, &ci), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlGpuInstanceDestroy, (nvmlGpuInstance_t), gi),
                     NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(mig_device(card(0), 0, &fresh), NVML_SUCCESS);
    assert_int_equal(
        CALL(nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned int), fresh, after, 96),
        NVML_SUCCESS);
    assert_string_equal(before, after);
    assert_int_equal(CALL(nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned int), mig, after, 96),
                     NVML_ERROR_INVALID_ARGUMENT);
}

static void a_mig_device_knows_its_own(void **state)
{
    (void)state;
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    nvmlDevice_t mig = sliced(card(0), &gi, &ci), parent = NULL;
    nvmlDeviceAttributes_t attributes;
    nvmlUtilization_t busy;
    unsigned int value = 9;
    char name[96];
    assert_int_equal(
        CALL(nvmlDeviceGetTemperature, (nvmlDevice_t, int, unsigned int *), mig, 0, &value),
        NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(CALL(nvmlDeviceIsMigDeviceHandle, (nvmlDevice_t, unsigned int *), mig, &value),
                     NVML_SUCCESS);
    assert_int_equal(value, 1);
    assert_int_equal(CALL(nvmlDeviceGetGpuInstanceId, (nvmlDevice_t, unsigned int *), mig, &value),
                     NVML_SUCCESS);
    assert_int_equal(value, 2);
    assert_int_equal(CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle,
                          (nvmlDevice_t, nvmlDevice_t *), mig, &parent),
                     NVML_SUCCESS);
    assert_ptr_equal(parent, card(0));
    assert_int_equal(CALL(nvmlDeviceGetAttributes_v2, (nvmlDevice_t, nvmlDeviceAttributes_t *), mig,
                          &attributes),
                     NVML_SUCCESS);
    assert_int_equal(attributes.memorySizeMB, 40192);
    assert_int_equal(attributes.gpuInstanceSliceCount, 3);
    assert_int_equal(CALL(nvmlDeviceGetName, (nvmlDevice_t, char *, unsigned int), mig, name, 96),
                     NVML_SUCCESS);
    assert_string_equal(name, "NVIDIA A100 MIG 3g.40gb");
    assert_int_equal(
        CALL(nvmlDeviceGetUtilizationRates, (nvmlDevice_t, nvmlUtilization_t *), mig, &busy),
        NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(
        CALL(nvmlDeviceGetUtilizationRates, (nvmlDevice_t, nvmlUtilization_t *), card(0), &busy),
        NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(mig_device(card(0), 1, &parent), NVML_ERROR_NOT_FOUND);
    assert_int_equal(mig_device(card(0), 7, &parent), NVML_ERROR_INVALID_ARGUMENT);
}

static nvmlReturn_t processes(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos)
{
    return CALL(nvmlDeviceGetComputeRunningProcesses_v3,
                (nvmlDevice_t, unsigned int *, nvmlProcessInfo_v2_t *), device, count, infos);
}

static void processes_hold_what_they_run_on(void **state)
{
    (void)state;
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    nvmlDevice_t mig = sliced(card(0), &gi, &ci);
    nvmlReturn_t activation;
    nvmlProcessInfo_v2_t infos[4];
    nvmlProcessInfo_v1_t old[2] = { { 0 }, { .pid = 77 } };
    unsigned int count = 0;
    struct sim_use use = { .card = 0, .gi = 2, .ci = 0, .memory_bytes = 1 << 20 };
    assert_int_equal(processes(mig, &count, NULL), NVML_SUCCESS);
    assert_int_equal(count, 0);
    assert_int_equal(sim_use_set(machine, &use, 1, NULL), 0);
    assert_int_equal(processes(mig, &count, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(count, 1);
    count = 4;
    assert_int_equal(processes(card(0), &count, infos), NVML_SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(infos[0].pid, getpid());
    assert_int_equal(infos[0].gpuInstanceId, 2);
    assert_int_equal(infos[0].usedGpuMemory, 1 << 20);
    count = 2;
    assert_int_equal(CALL(nvmlDeviceGetComputeRunningProcesses,
                          (nvmlDevice_t, unsigned int *, nvmlProcessInfo_v1_t *), mig, &count, old),
                     NVML_SUCCESS);
    assert_int_equal(old[0].pid, getpid());
    assert_int_equal(old[1].pid, 77); /* 16 bytes a record, not 24 */
    count = 4;
    assert_int_equal(processes(card(1), &count, infos), NVML_SUCCESS);
    assert_int_equal(count, 0);
    assert_int_equal(CALL(nvmlComputeInstanceDestroy, (nvmlComputeInstance_t), ci),
                     NVML_ERROR_IN_USE);
    assert_int_equal(set_mig(card(0), 0, &activation), NVML_SUCCESS);
    assert_int_equal(activation, NVML_ERROR_IN_USE);
    assert_int_equal(sim_use_set(machine, NULL, 0, NULL), 0);
    assert_int_equal(CALL(nvmlComputeInstanceDestroy, (nvmlComputeInstance_t), ci), NVML_SUCCESS);
}

static void old_calls_write_no_more_than_old_structures(void **state)
{
    (void)state;
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    nvmlDevice_t mig = sliced(card(0), &gi, &ci);
    unsigned char room[80];
    static const struct {
        const char *name;
        size_t size;
    } calls[] = { { "nvmlDeviceGetPciInfo", 32 },
                  { "nvmlDeviceGetPciInfo_v2", 52 },
                  { "nvmlDeviceGetPciInfo_v3", 68 },
                  { "nvmlDeviceGetAttributes", 24 },
                  { "nvmlDeviceGetAttributes_v2", 40 } };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        memset(room, 0xEE, sizeof room);
        assert_int_equal(((nvmlReturn_t(*)(nvmlDevice_t, void *))symbol(calls[i].name))(mig, room),
                         NVML_SUCCESS);
        for (size_t at = calls[i].size; at < sizeof room; at++)
            assert_int_equal(room[at], 0xEE);
    }
    memset(room, 0xEE, sizeof room);
    assert_int_equal(CALL(nvmlComputeInstanceGetInfo, (nvmlComputeInstance_t, void *), ci, room),
                     NVML_SUCCESS);
    assert_int_equal(room[24], 0xEE);
}

static void the_second_create_fails_as_told(void **state)
{
    (void)state;
    nvmlGpuInstance_t gi;
    unsigned int left = 9;
    enable(card(0));
    fault(0, "create-fails:2");
    assert_int_equal(cut(card(0), 19, &gi), NVML_SUCCESS);
    assert_int_equal(cut(card(0), 19, &gi), NVML_ERROR_INSUFFICIENT_RESOURCES);
    assert_int_equal(CALL(nvmlDeviceGetGpuInstanceRemainingCapacity,
                          (nvmlDevice_t, unsigned int, unsigned int *), card(0), 19, &left),
                     NVML_SUCCESS);
    assert_int_equal(left, 6);
    assert_int_equal(cut(card(0), 19, &gi), NVML_SUCCESS);
}

static void a_lost_card_hides_no_other(void **state)
{
    (void)state;
    nvmlDevice_t device = card(1), none;
    unsigned int minor = 9;
    fault(1, "lost");
    assert_int_equal(CALL(nvmlDeviceGetHandleByIndex_v2, (unsigned int, nvmlDevice_t *), 1, &none),
                     NVML_ERROR_GPU_IS_LOST);
    assert_int_equal(CALL(nvmlDeviceGetMinorNumber, (nvmlDevice_t, unsigned int *), device, &minor),
                     NVML_ERROR_GPU_IS_LOST);
    assert_int_equal(CALL(nvmlDeviceGetFanSpeedRPM, (nvmlDevice_t, void *), device, NULL),
                     NVML_ERROR_GPU_IS_LOST);
    assert_int_equal(
        CALL(nvmlDeviceGetMinorNumber, (nvmlDevice_t, unsigned int *), card(2), &minor),
        NVML_SUCCESS);
    assert_int_equal(minor, 2);
}

static nvmlReturn_t next_event(nvmlEventSet_t set, nvmlEventData_t *data)
{
    return CALL(nvmlEventSetWait_v2, (nvmlEventSet_t, nvmlEventData_t *, unsigned int), set, data,
                0);
}

static void events_come_in_order_and_once(void **state)
{
    (void)state;
    nvmlEventSet_t set = NULL;
    nvmlEventData_t data;
    fault(0, "xid:31"); /* before anybody asked */
    assert_int_equal(CALL(nvmlEventSetCreate, (nvmlEventSet_t *), &set), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlDeviceRegisterEvents,
                          (nvmlDevice_t, unsigned long long, nvmlEventSet_t), card(0),
                          nvmlEventTypeXidCriticalError | nvmlEventMigConfigChange, set),
                     NVML_SUCCESS);
    assert_int_equal(CALL(nvmlDeviceRegisterEvents,
                          (nvmlDevice_t, unsigned long long, nvmlEventSet_t), card(0),
                          nvmlEventTypeClock, set),
                     NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(next_event(set, &data), NVML_ERROR_TIMEOUT);
    fault(1, "xid:48"); /* another card's */
    fault(0, "xid:48");
    enable(card(0));
    assert_int_equal(next_event(set, &data), NVML_SUCCESS);
    assert_ptr_equal(data.device, card(0));
    assert_int_equal(data.eventType, nvmlEventTypeXidCriticalError);
    assert_int_equal(data.eventData, 48);
    assert_int_equal(data.gpuInstanceId, NVML_NO_INSTANCE);
    assert_int_equal(next_event(set, &data), NVML_SUCCESS);
    assert_int_equal(data.eventType, nvmlEventMigConfigChange);
    assert_int_equal(next_event(set, &data), NVML_ERROR_TIMEOUT);
    assert_int_equal(CALL(nvmlEventSetFree, (nvmlEventSet_t), set), NVML_SUCCESS);
    assert_int_equal(next_event(set, &data), NVML_ERROR_INVALID_ARGUMENT);
}

/* More events than the ring holds: the oldest are lost, the rest come in order. */
static void a_slow_listener_loses_only_the_oldest(void **state)
{
    (void)state;
    nvmlEventSet_t set = NULL;
    nvmlEventData_t data;
    char words[16];
    assert_int_equal(CALL(nvmlEventSetCreate, (nvmlEventSet_t *), &set), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlDeviceRegisterEvents,
                          (nvmlDevice_t, unsigned long long, nvmlEventSet_t), card(0),
                          nvmlEventTypeXidCriticalError, set),
                     NVML_SUCCESS);
    for (unsigned int i = 0; i < SIM_EVENTS_MAX + 10; i++) {
        (void)snprintf(words, sizeof words, "xid:%u", 100 + i);
        fault(0, words);
    }
    for (unsigned int i = 10; i < SIM_EVENTS_MAX + 10; i++) {
        assert_int_equal(next_event(set, &data), NVML_SUCCESS);
        assert_int_equal(data.eventData, 100 + i);
    }
    assert_int_equal(next_event(set, &data), NVML_ERROR_TIMEOUT);
    assert_int_equal(CALL(nvmlEventSetFree, (nvmlEventSet_t), set), NVML_SUCCESS);
}

/* Runs `look` as a user who owns nothing; its result is the exit status. */
static int as_stranger(int (*look)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(setuid(65534) < 0 ? 99 : look());
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static int sees_only_the_second_card(void)
{
    nvmlDevice_t device;
    unsigned int count = 0;
    if (CALL(nvmlDeviceGetCount_v2, (unsigned int *), &count) != NVML_SUCCESS || count != 3)
        return 1;
    if (CALL(nvmlDeviceGetHandleByIndex_v2, (unsigned int, nvmlDevice_t *), 0, &device) !=
        NVML_ERROR_NO_PERMISSION)
        return 2;
    if (CALL(nvmlDeviceGetHandleByIndex_v2, (unsigned int, nvmlDevice_t *), 1, &device) !=
        NVML_SUCCESS)
        return 3;
    nvmlDevice_t same = device;
    if (CALL(nvmlDeviceGetCount, (unsigned int *), &count) != NVML_SUCCESS || count != 2)
        return 4;
    return CALL(nvmlDeviceGetHandleByIndex, (unsigned int, nvmlDevice_t *), 0, &device) ==
                       NVML_SUCCESS &&
                   device == same
               ? 0
               : 5;
}

static int sees_no_mig_device(void)
{
    nvmlDevice_t mig;
    return mig_device(card(1), 0, &mig) == NVML_ERROR_NOT_FOUND ? 0 : 1;
}

/* Of two MIG devices only the second may be used: it is the caller's first. */
static int sees_the_other_as_the_first(void)
{
    nvmlDevice_t mig;
    unsigned int gi = 99, index = 99;
    if (mig_device(card(1), 0, &mig) != NVML_SUCCESS ||
        mig_device(card(1), 1, &mig) != NVML_ERROR_NOT_FOUND ||
        mig_device(card(1), 0, &mig) != NVML_SUCCESS)
        return 1;
    if (CALL(nvmlDeviceGetGpuInstanceId, (nvmlDevice_t, unsigned int *), mig, &gi) !=
            NVML_SUCCESS ||
        CALL(nvmlDeviceGetIndex, (nvmlDevice_t, unsigned int *), mig, &index) != NVML_SUCCESS)
        return 2;
    return gi == 3 && index == 0 ? 0 : 3;
}

static int may_not_change_it(void)
{
    nvmlReturn_t activation;
    nvmlGpuInstance_t gi;
    if (set_mig(card(1), 0, &activation) != NVML_ERROR_NO_PERMISSION)
        return 1;
    return cut(card(1), 19, &gi) == NVML_ERROR_NO_PERMISSION ? 0 : 2;
}

static void put_node(const char *name, mode_t mode)
{
    auto_free char *path = file_under(dir, name);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
}

static void what_may_not_be_opened_does_not_show(void **state)
{
    (void)state;
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    if (geteuid() != 0)
        skip();
    (void)sliced(card(1), &gi, &ci);
    auto_free char *root = file_under(dir, "/closed");
    auto_free char *caps = file_under(dir, "/closed/dev/nvidia-caps");
    assert_int_equal(file_mkdirs(caps, 0755, NULL), 0);
    assert_int_equal(setenv("DIVVY_DRIVER_ROOT", root, 1), 0);
    put_node("/closed/dev/nvidia0", 0600);
    put_node("/closed/dev/nvidia1", 0666);
    assert_int_equal(as_stranger(sees_only_the_second_card), 0);
    assert_int_equal(as_stranger(may_not_change_it), 0);
    assert_int_equal(as_stranger(sees_no_mig_device), 1);
    put_node("/closed/dev/nvidia-caps/nvidia-cap156", 0400); /* 3 + 135 * 1 + 9 * 2 */
    assert_int_equal(as_stranger(sees_no_mig_device), 0);
    assert_int_equal(cut(card(1), 14, &gi), NVML_SUCCESS);
    assert_int_equal(cut_ci(gi, 1, &ci), NVML_SUCCESS);
    assert_int_equal(as_stranger(sees_the_other_as_the_first), 0);
}

static void gpm_is_for_hopper(void **state)
{
    (void)state;
    nvmlGpmSupport_t support = { .version = 1 };
    nvmlGpmSample_t one = NULL, two = NULL;
    struct sim_use use = { .card = 2, .gi = 2, .ci = 0, .load_percent = 60 };
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
    assert_int_equal(
        CALL(nvmlGpmQueryDeviceSupport, (nvmlDevice_t, nvmlGpmSupport_t *), card(0), &support),
        NVML_SUCCESS);
    assert_int_equal(support.isSupportedDevice, 0);
    (void)sliced(card(2), &gi, &ci);
    assert_int_equal(sim_use_set(machine, &use, 1, NULL), 0);
    assert_int_equal(CALL(nvmlGpmSampleAlloc, (nvmlGpmSample_t *), &one), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlGpmSampleAlloc, (nvmlGpmSample_t *), &two), NVML_SUCCESS);
#define TAKE(s)                                                                                    \
    CALL(nvmlGpmMigSampleGet, (nvmlDevice_t, unsigned int, nvmlGpmSample_t), card(2), 2, s)
    assert_int_equal(TAKE(one), NVML_SUCCESS);
    assert_int_equal(TAKE(two), NVML_SUCCESS);
#undef TAKE
    /* The structure is as long as its metrics, whatever the header's age. */
    struct {
        unsigned int version, count;
        nvmlGpmSample_t samples[2];
        nvmlGpmMetric_t metrics[2];
    } get = { 1, 2, { one, two }, { { .metricId = 2 }, { .metricId = 10 } } };
    assert_int_equal(CALL(nvmlGpmMetricsGet, (void *), &get), NVML_SUCCESS);
    assert_int_equal(get.metrics[0].nvmlReturn, NVML_SUCCESS);
    assert_int_equal((int)get.metrics[0].value, 60);
    assert_int_equal(get.metrics[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(CALL(nvmlGpmSampleFree, (nvmlGpmSample_t), one), NVML_SUCCESS);
    assert_int_equal(CALL(nvmlGpmSampleFree, (nvmlGpmSample_t), two), NVML_SUCCESS);
    assert_int_equal(sim_use_set(machine, NULL, 0, NULL), 0);
}

static void the_internal_table_is_handed_out_for_its_name(void **state)
{
    (void)state;
    static const unsigned char guid[16] = { 0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                            0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4 };
    static const unsigned char other[16] = { 1 };
    const void *const *table = NULL;
#define ASK(id)                                                                                    \
    CALL(nvmlInternalGetExportTable, (const void *, const void *), (const void *)&table, id)
    assert_int_equal(ASK(other), NVML_ERROR_NOT_FOUND);
    assert_int_equal(ASK(guid), NVML_SUCCESS);
#undef ASK
    for (int i = 1; i < 256; i++)
        for (int j = i + 1; j < 256; j++)
            assert_ptr_not_equal(table[i], table[j]);
    nvmlDevice_t device = NULL;
    assert_int_equal(((nvmlReturn_t(*)(unsigned int, nvmlDevice_t *, int))(uintptr_t)table[81])(
                         1, &device, 0x22),
                     NVML_SUCCESS);
    assert_ptr_equal(device, card(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_count_their_initialisation, put_up, take_down),
        cmocka_unit_test_setup_teardown(a_driver_that_is_not_there_is_not_loaded, put_up,
                                        take_down),
        cmocka_unit_test_setup_teardown(rubbish_is_no_handle, put_up, take_down),
        cmocka_unit_test_setup_teardown(texts_need_their_room, put_up, take_down),
        cmocka_unit_test_setup_teardown(a_wrong_tag_is_answered_as_its_branch_does, put_up,
                                        take_down),
        cmocka_unit_test_setup_teardown(one_symbol_fills_two_structures, put_up, take_down),
        cmocka_unit_test_setup_teardown(geometry_is_told_with_mig_off_since_550, put_up, take_down),
        cmocka_unit_test_setup_teardown(handles_end_with_their_instance, put_up, take_down),
        cmocka_unit_test_setup_teardown(a_mig_device_knows_its_own, put_up, take_down),
        cmocka_unit_test_setup_teardown(processes_hold_what_they_run_on, put_up, take_down),
        cmocka_unit_test_setup_teardown(old_calls_write_no_more_than_old_structures, put_up,
                                        take_down),
        cmocka_unit_test_setup_teardown(the_second_create_fails_as_told, put_up, take_down),
        cmocka_unit_test_setup_teardown(a_lost_card_hides_no_other, put_up, take_down),
        cmocka_unit_test_setup_teardown(events_come_in_order_and_once, put_up, take_down),
        cmocka_unit_test_setup_teardown(a_slow_listener_loses_only_the_oldest, put_up, take_down),
        cmocka_unit_test_setup_teardown(what_may_not_be_opened_does_not_show, put_up, take_down),
        cmocka_unit_test_setup_teardown(gpm_is_for_hopper, put_up, take_down),
        cmocka_unit_test_setup_teardown(the_internal_table_is_handed_out_for_its_name, put_up,
                                        take_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
