/*
 * migrate.h - inside store/: bringing a store to the version of this program.
 *
 * Version N is what the first N migrations made. They are only ever appended
 * to; what stands in a release is never edited. Each runs in one transaction
 * together with its version number, after a backup of the whole file.
 */
#ifndef DIVVY_STORE_MIGRATE_H
#define DIVVY_STORE_MIGRATE_H

#include <sqlite3.h>

#include "base/err.h"

#define STORE_APPLICATION_ID 0x44765679 /* "DvVy", in the file's header */
#define STORE_BACKUPS_KEPT 3

extern const char *const store_migrations[];
extern const int store_version; /* how many there are */

/*
 * `dir` is where the store lies, `path` its file for messages. An empty
 * database gets all migrations and no backup. -EPROTO: newer than `count`, or
 * some other program's. On failure the database is as before, at the version
 * that it reached.
 */
int migrate(sqlite3 *db, const char *dir, const char *path, const char *const *migrations,
            int count, struct err *e);

/* Is this an (empty or older or present) store of ours? Changes nothing. -EPROTO, -EILSEQ. */
int migrate_check(sqlite3 *db, const char *path, int count, struct err *e);

#endif
