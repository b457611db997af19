/*
 * fuzz.h - what every fuzz_<parser>.c offers: one function that takes any
 * bytes at all and neither crashes, leaks nor runs wild. It holds what must be
 * true of whatever the parser accepted by assertions of its own.
 *
 * Linked with libFuzzer it is called with inputs that search for new paths;
 * linked with replay.c with each file of its corpus.
 */
#ifndef DIVVY_TESTS_FUZZ_H
#define DIVVY_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
