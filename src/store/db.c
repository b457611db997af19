#include "store/db.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static bool no_room(int system_errno)
{
    return system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG;
}

static int fail_by_system(sqlite3 *db, const char *path, struct err *e)
{
    int code = sqlite3_system_errno(db);
    if (no_room(code))
        return err_set(e, -ENOSPC, "no room left for %s; nothing of this change was kept", path);
    return err_set(e, -EIO, "cannot read or write %s: %s; nothing of this change was kept", path,
                   code ? strerror(code) : sqlite3_errmsg(db));
}

int db_failed(sqlite3 *db, const char *path, int rc, struct err *e)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return err_set(e, -ENOSPC, "no room left for %s; nothing of this change was kept", path);
    case SQLITE_IOERR:
        return fail_by_system(db, path, e);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(e, -EILSEQ,
                       "%s is damaged (%s); move it away and put the newest file of backup/ in its "
                       "place, or start with an empty store",
                       path, sqlite3_errmsg(db));
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return err_set(e, -EACCES, "cannot write %s: %s", path, sqlite3_errmsg(db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(e, -EBUSY, "%s is locked by a program that is not divvyd", path);
    case SQLITE_CONSTRAINT:
        if (rc == SQLITE_CONSTRAINT_FOREIGNKEY)
            return err_set(e, -ENOENT, "%s has nothing of the number that was named", path);
        return err_set(e, -EEXIST, "%s: %s", path, sqlite3_errmsg(db));
    case SQLITE_TOOBIG:
        return err_set(e, -E2BIG, "%s: too much for one row", path);
    case SQLITE_NOMEM:
        return err_set(e, -ENOMEM, "out of memory in %s", path);
    default:
        return err_set(e, -EIO, "%s: %s", path, sqlite3_errmsg(db));
    }
}

int db_run(sqlite3 *db, const char *path, const char *sql, struct err *e)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : db_failed(db, path, rc, e);
}

int db_number(sqlite3 *db, const char *path, const char *sql, int64_t *ret, struct err *e)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(statement, 0);
    int code = rc == SQLITE_ROW ? 0 : db_failed(db, path, rc, e);
    (void)sqlite3_finalize(statement); /* repeats the failure that was seen */
    return code;
}

static void prepare(struct query *q, const char *sql, unsigned int flags)
{
    q->rc = sqlite3_prepare_v3(q->s->db, sql, -1, flags, &q->statement, NULL);
}

void query_open(struct query *q, struct store *s, const char *sql)
{
    uint64_t key = (uint64_t)(uintptr_t)sql;
    *q = (struct query){ .s = s, .statement = map_get(&s->statements, key) };
    if (q->statement && !sqlite3_stmt_busy(q->statement))
        return;
    q->own = q->statement != NULL; /* a callback walks what is being walked: a second one */
    prepare(q, sql, q->own ? 0 : SQLITE_PREPARE_PERSISTENT);
    if (q->statement && !q->own)
        map_put(&s->statements, key, q->statement);
}

void query_open_once(struct query *q, struct store *s, const char *sql)
{
    *q = (struct query){ .s = s, .own = true };
    prepare(q, sql, 0);
}

void query_done(struct query *q)
{
    /* both repeat a failure that query_next or query_write has told */
    if (q->own)
        (void)sqlite3_finalize(q->statement);
    else if (q->statement) {
        (void)sqlite3_reset(q->statement);
        (void)sqlite3_clear_bindings(q->statement);
    }
    q->statement = NULL;
}

static void keep(struct query *q, int rc)
{
    if (q->rc == SQLITE_OK)
        q->rc = rc;
}

void query_bind_int(struct query *q, int64_t n)
{
    keep(q, sqlite3_bind_int64(q->statement, ++q->bound, n));
}

void query_bind_u64(struct query *q, uint64_t n)
{
    query_bind_int(q, n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

void query_bind_real(struct query *q, double x)
{
    keep(q, sqlite3_bind_double(q->statement, ++q->bound, x));
}

void query_bind_text(struct query *q, const char *text)
{
    keep(q, sqlite3_bind_text(q->statement, ++q->bound, text, -1, SQLITE_STATIC));
}

void query_bind_blob(struct query *q, const void *data, size_t len)
{
    keep(q, sqlite3_bind_blob64(q->statement, ++q->bound, data, len, SQLITE_STATIC));
}

int query_next(struct query *q, struct err *e)
{
    int rc = q->rc == SQLITE_OK ? sqlite3_step(q->statement) : q->rc;
    q->column = 0;
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : db_failed(q->s->db, q->s->path, rc, e);
}

/* After FULL or IOERR SQLite may have rolled back by itself, or not: make it so. */
static int give_up(struct store *s, int rc, struct err *e)
{
    int code = db_failed(s->db, s->path, rc, &s->why_given_up);
    if (!sqlite3_get_autocommit(s->db))
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* nothing better is left */
    s->tx = TX_GIVEN_UP;
    return err_set(e, code, "%s", s->why_given_up.text);
}

int query_write(struct query *q, struct err *e)
{
    struct store *s = q->s;
    assert(s->tx != TX_NONE);
    if (s->tx == TX_GIVEN_UP)
        return err_set(e, s->why_given_up.code, "%s", s->why_given_up.text);
    int rc = q->rc == SQLITE_OK ? sqlite3_step(q->statement) : q->rc;
    if (rc == SQLITE_DONE || rc == SQLITE_ROW)
        return rc == SQLITE_DONE ? sqlite3_changes(s->db) : 1;
    if ((rc & 0xff) == SQLITE_CONSTRAINT || rc == SQLITE_TOOBIG)
        return db_failed(s->db, s->path, rc, e);
    (void)sqlite3_reset(q->statement); /* it must not be running while all is rolled back */
    return give_up(s, rc, e);
}

int query_write_one(struct query *q, struct err *e, const char *what)
{
    int changed = query_write(q, e);
    if (changed == 0)
        return err_set(e, -ENOENT, "the store has no %s", what);
    return changed < 0 ? changed : 0;
}

int64_t query_int(struct query *q)
{
    return sqlite3_column_int64(q->statement, q->column++);
}

uint64_t query_u64(struct query *q)
{
    int64_t n = query_int(q);
    return n < 0 ? 0 : (uint64_t)n;
}

double query_real(struct query *q)
{
    return sqlite3_column_double(q->statement, q->column++);
}

const char *query_text(struct query *q)
{
    const unsigned char *text = sqlite3_column_text(q->statement, q->column++);
    return text ? (const char *)text : "";
}

void query_copy(struct query *q, char *buf, size_t size)
{
    const char *text = query_text(q);
    size_t len = strnlen(text, size - 1);
    memcpy(buf, text, len);
    buf[len] = '\0';
}

const void *query_blob(struct query *q, size_t *ret_len)
{
    const void *data = sqlite3_column_blob(q->statement, q->column);
    *ret_len = (size_t)sqlite3_column_bytes(q->statement, q->column++);
    return data;
}

char *db_json(json_t *take_json)
{
    char *text = json_dumps(take_json, JSON_COMPACT);
    json_decref(take_json);
    if (!text)
        abort(); /* out of memory: as in base/text.h */
    return text;
}
