/* SPDX-License-Identifier: Apache-2.0
 *
 * What Triton adds to the protocol and its clients ask for: a model's configuration and its
 * statistics, in Triton's words (model_config.proto and the statistics extension).
 */
#ifndef TRANCHE_SERVE_TRITON_H
#define TRANCHE_SERVE_TRITON_H

#include "base/str.h"
#include "serve/batcher.h"
#include "serve/server_metrics.h"

/* The answer to GET /v2/models/MODEL/config. */
void triton_config_write(const struct session *session, const char *model,
                         const struct batcher_options *options, struct str *body);
/* The answer to GET /v2/models/MODEL/stats. */
void triton_stats_write(struct server_metrics *metrics, const struct batcher_stats *batcher,
                        const char *model, struct str *body);

#endif
