/*
 * uuid.h - names that come out the same each time (RFC 4122, version 5).
 *
 *     char text[37];
 *     uuid_v5("some identity", text);   // "xxxxxxxx-xxxx-5xxx-yxxx-xxxxxxxxxxxx"
 */
#ifndef DIVVY_SIM_UUID_H
#define DIVVY_SIM_UUID_H

#include <stddef.h>
#include <stdint.h>

#define UUID_TEXT_SIZE 37

/* SHA-1 (FIPS 180-4): for names only, not for secrets. */
void sha1(const void *data, size_t len, uint8_t ret_digest[20]);

/* The version-5 UUID of `name` in the DNS namespace; only its first 256 bytes count. */
void uuid_v5(const char *name, char ret_text[UUID_TEXT_SIZE]);

#endif
