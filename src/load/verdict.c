/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of verdicts. See verdict.h.
 */
#include "load/verdict.h"

#include <assert.h>

static const struct {
    const char *word, *meaning;
} reasons[VERDICT_REASON_COUNT] = {
#define X(name, word, meaning) [REASON_##name] = {word, meaning},
    VERDICT_REASONS(X)
#undef X
};

void verdict_words(struct verdict verdict, const char *separator, struct str *text)
{
    const char *before = "";
    assert(verdict.reasons >> VERDICT_REASON_COUNT == 0);
    for (int i = 0; i < VERDICT_REASON_COUNT; i++)
        if (verdict.reasons >> i & 1) {
            str_addf(text, "%s%s", before, reasons[i].word);
            before = separator;
        }
}

void verdict_explain(struct verdict verdict, struct str *text)
{
    assert(verdict.reasons >> VERDICT_REASON_COUNT == 0);
    for (int i = 0; i < VERDICT_REASON_COUNT; i++)
        if (verdict.reasons >> i & 1)
            str_addf(text, "%s%s: %s", text->length ? "\n" : "", reasons[i].word,
                     reasons[i].meaning);
}
