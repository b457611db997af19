/*
 * db.h - inside store/: the database handle, and one prepared statement at a
 * time.
 *
 *     AUTO(query) struct query q;
 *     query_open(&q, s, "SELECT uid, name FROM jobs WHERE id = ?");
 *     query_bind_int(&q, id);
 *     while ((r = query_next(&q, e)) > 0)
 *         use(query_int(&q), query_text(&q));
 *
 * Binding and reading go from left to right. A failure while opening or
 * binding is kept and comes out of query_next or query_write. SQL texts are
 * string literals: statements are cached by their address.
 */
#ifndef DIVVY_STORE_DB_H
#define DIVVY_STORE_DB_H

#include <jansson.h>
#include <sqlite3.h>

#include "base/map.h"
#include "store/store.h"

enum store_tx { TX_NONE = 0, TX_OPEN, TX_GIVEN_UP };

struct store {
    sqlite3 *db;
    char *path;
    int lock_fd;
    char boot_id[BOOT_ID_SIZE];
    int64_t boot; /* its row in boots */
    enum store_tx tx;
    struct err why_given_up;
    struct map statements; /* by the address of their text */
};

struct query {
    struct store *s;
    sqlite3_stmt *statement;
    int rc; /* first failure while opening or binding */
    int bound, column;
    bool own; /* not from the cache: finalized at the end */
};

/* Never fails visibly. `sql` must live as long as the store. */
void query_open(struct query *q, struct store *s, const char *sql);
/* For texts made on the spot. */
void query_open_once(struct query *q, struct store *s, const char *sql);
void query_done(struct query *q);

void query_bind_int(struct query *q, int64_t n);
void query_bind_u64(struct query *q, uint64_t n); /* above INT64_MAX becomes INT64_MAX */
void query_bind_real(struct query *q, double x);
void query_bind_text(struct query *q, const char *text); /* NULL is NULL; must live until done */
void query_bind_blob(struct query *q, const void *data, size_t len);

/* 1 a row, 0 no more, negative a failure. */
int query_next(struct query *q, struct err *e);
/*
 * Runs a statement that writes, in the open transaction (asserted). The
 * number of rows changed; -EEXIST for a row that is there already; any other
 * failure gives the transaction up.
 */
int query_write(struct query *q, struct err *e);
/* As query_write, and -ENOENT with "there is no WHAT" when no row was changed. */
int query_write_one(struct query *q, struct err *e, const char *what);

int64_t query_int(struct query *q);
uint64_t query_u64(struct query *q); /* negative becomes 0 */
double query_real(struct query *q);
const char *query_text(struct query *q);                  /* NULL becomes "" */
void query_copy(struct query *q, char *buf, size_t size); /* cut when longer */
const void *query_blob(struct query *q, size_t *ret_len);

/* As text for a column; takes the value. Caller frees. */
char *db_json(json_t *take_json);

/* The code and sentence of a failed SQLite call. */
int db_failed(sqlite3 *db, const char *path, int rc, struct err *e);
/* Statements outside of any transaction: pragmas, BEGIN. */
int db_run(sqlite3 *db, const char *path, const char *sql, struct err *e);
int db_number(sqlite3 *db, const char *path, const char *sql, int64_t *ret, struct err *e);

#endif
