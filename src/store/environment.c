#include "store/environment.h"

#include <string.h>

#include "base/text.h"
#include "store/db.h"

static void join(char *const *env, struct text *ret)
{
    for (size_t i = 0; env[i]; i++)
        text_addn(ret, env[i], strlen(env[i]) + 1);
}

static int64_t hash_bytes(const char *data, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a; collisions only cost a comparison */
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
    return (int64_t)h;
}

static int find(struct store *s, int64_t hash, const struct text *t, int64_t *ret_id, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "SELECT id FROM environments WHERE hash = ? AND content = ?");
    query_bind_int(&q, hash);
    query_bind_blob(&q, t->buf, t->len);
    int r = query_next(&q, e);
    if (r > 0)
        *ret_id = query_int(&q);
    return r;
}

int environment_keep(struct store *s, char *const *env, int64_t *ret_id, struct err *e)
{
    AUTO(text) struct text t = TEXT_INIT;
    join(env, &t);
    int64_t hash = hash_bytes(t.buf, t.len);
    int r = find(s, hash, &t, ret_id, e);
    if (r != 0)
        return r < 0 ? r : 0;
    AUTO(query) struct query q;
    query_open(&q, s, "INSERT INTO environments (hash, content) VALUES (?, ?)");
    query_bind_int(&q, hash);
    query_bind_blob(&q, t.buf, t.len);
    r = query_write(&q, e);
    *ret_id = sqlite3_last_insert_rowid(s->db);
    return r < 0 ? r : 0;
}

char **environment_split(const char *data, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += data[i] == '\0';
    char **env = mem_new((n + 1) * sizeof *env);
    for (size_t i = 0; i < n; i++) {
        env[i] = text_dup(data);
        data += strlen(data) + 1;
    }
    return env;
}
