/* SPDX-License-Identifier: Apache-2.0
 *
 * FNV-1a with splitmix64's finish: for UUIDs and for telling a damaged state file. Not for
 * anything that must resist an attacker.
 */
#ifndef TRANCHE_SIM_HASH_H
#define TRANCHE_SIM_HASH_H

#include <stddef.h>
#include <stdint.h>

/* 64 bits of the bytes; other seeds give other functions. */
static inline uint64_t sim_hash(const void *bytes, size_t length, uint64_t seed)
{
    const unsigned char *byte = bytes;
    uint64_t hash = 0xcbf29ce484222325ULL ^ seed * 0x9e3779b97f4a7c15ULL;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3ULL;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
    return hash ^ hash >> 31;
}

#endif
