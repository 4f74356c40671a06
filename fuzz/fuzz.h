/* SPDX-License-Identifier: Apache-2.0
 *
 * What every fuzzer defines: libFuzzer's entry point.
 */
#ifndef TRANCHE_FUZZ_FUZZ_H
#define TRANCHE_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Gives one input to the parser and asserts what must hold for any; returns 0. */
__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *data,
                                                                  size_t size);

#endif
