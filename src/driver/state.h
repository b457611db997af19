/*
 * state.h - what a struct driver is made of; for the files of this room only.
 */
#ifndef DIVVY_DRIVER_STATE_H
#define DIVVY_DRIVER_STATE_H

#include "driver/driver.h"
#include "driver/library.h"

#define DRIVER_CARDS_MAX 256

/* NVLinks that go straight to another card. */
struct link_end {
    char bus_id[CARD_BUS_ID_SIZE];
    uint32_t links;
};

/* What does not change while a card is there; kept over driver_release. */
struct known_card {
    char uuid[CARD_UUID_SIZE];
    char bus_id[CARD_BUS_ID_SIZE];
    char name[BOARD_NAME_SIZE];
    uint32_t pci_device_id;
    uint32_t index;
    int32_t numa_node; /* -1: not told */
    struct link_end links[CARD_PEERS_MAX];
    uint32_t link_count;
    uint32_t switch_links; /* NVLinks to NVSwitches, over which all cards reach each other */
    enum { GPM_NOT_ASKED, GPM_THERE, GPM_NONE } gpm; /* of the library that is open */
    bool links_asked[2];                             /* with MIG off, on: MIG turns the links off */
    struct board *boards[2]; /* geometry as told with MIG off and on; NULL: not asked yet */
};

/* PCIe path between two cards, lower bus id first. */
struct pair_path {
    char a[CARD_BUS_ID_SIZE], b[CARD_BUS_ID_SIZE];
    uint32_t path;
};

struct driver {
    struct library lib;
    char *nvml; /* NULL: the default name */
    char *driver_root;
    char version[80]; /* of the driver that the known boards were asked of */
    char **reset_argv;
    bool no_activity;
    driver_board_fn board;
    void *board_arg;
    driver_at_fn at;
    void *at_arg;
    struct known_card *known;
    size_t known_count, known_alloc;
    nvmlEventSet_t events;       /* NULL: not subscribed */
    bool events_none;            /* subscribing found nothing to wait for */
    struct activity *activities; /* of GPU instances; activity.c */
    size_t activity_count, activity_alloc;
    struct pair_path *paths;
    size_t path_count, path_alloc;
};

/* Opens the library when it is not: every public function begins with it. */
int driver_ready(struct driver *d, struct err *e);
/* Says which card the next calls are about; NULL: none. */
void driver_at(struct driver *d, const char *card);

/* The entry of a card, made when there is none. Valid until the next one is made. */
struct known_card *driver_know(struct driver *d, const char *uuid, const char *bus_id);
struct known_card *driver_known_at(struct driver *d, const char *bus_id, int64_t index);

/* geometry.c: the board of a card in its present mode, asked once; borrowed. */
const struct board *driver_board(struct driver *d, nvmlDevice_t dev, struct known_card *k,
                                 bool mig_on);
/* What compute instances fit into this instance; filled into the board once per profile. */
void driver_learn_cis(struct driver *d, struct known_card *k, nvmlGpuInstance_t gi,
                      uint32_t profile_id);
/* The id of the compute instance profile that fills it; false: not told. */
bool driver_full_ci(struct driver *d, nvmlGpuInstance_t gi, uint32_t slices, uint32_t *ret_id);

/* topology.c: asks for a card's links, once for each MIG mode. */
void driver_learn_links(struct driver *d, nvmlDevice_t dev, struct known_card *k, bool mig_on);
/* Fills the peers of all healthy cards; the PCIe path of a pair is asked once. */
void driver_add_peers(struct driver *d, struct snapshot *s);

/* process.c: adds the processes of a card; false where the driver does not list them. */
bool driver_add_processes(struct driver *d, nvmlDevice_t dev, struct card *c);

/* settings.c: what of them the driver tells. */
void driver_read_settings(const struct library *lib, nvmlDevice_t dev, struct card *c);

/* slice.c: fills c->slices. Returns the first failure that says something of the card. */
nvmlReturn_t driver_add_slices(struct driver *d, nvmlDevice_t dev, struct known_card *k,
                               struct card *c);
/* Calls `each` for every GPU instance until it returns true. */
typedef bool (*gi_fn)(nvmlGpuInstance_t gi, const nvmlGpuInstanceInfo_t *info, void *arg);
nvmlReturn_t driver_each_gi(struct driver *d, nvmlDevice_t dev, const struct board *b, gi_fn each,
                            void *arg);
/* The UUID of a MIG device; false: there is none. */
bool driver_mig_uuid(struct driver *d, nvmlDevice_t dev, uint32_t gi, uint32_t ci,
                     char uuid[CARD_UUID_SIZE]);

/* activity.c: fills the activity of the slices that are there. */
void driver_add_activity(struct driver *d, nvmlDevice_t dev, struct known_card *k, struct card *c,
                         int64_t now_boot_us);
/* Before the library is closed: its samples go. */
void driver_drop_activity(struct driver *d);

/* reset.c: runs the reset command. NVML must be let go. */
int driver_run_reset(struct driver *d, const char *uuid, const char *bus_id, struct err *e);

bool driver_skips(const struct driver_skip *skip, size_t n, const char *uuid, const char *bus_id,
                  int64_t index);

#endif
