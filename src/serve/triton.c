/* SPDX-License-Identifier: Apache-2.0
 *
 * See triton.h.
 */
#include "serve/triton.h"

#include <stdbool.h>
#include <string.h>

#include "base/json.h"

/* Triton says the first size of batched models by max_batch_size, not in dims. */
static bool is_batched(const struct session *session)
{
    for (size_t i = 0; i < session_input_count(session); i++)
        if (session_input(session, i)->shape.rank < 1 ||
            session_input(session, i)->shape.size[0] != TENSOR_OPEN)
            return false;
    return true;
}

static json_t *tensors_json(const struct session *session, size_t count, bool batched,
                            const struct session_tensor *(*get)(const struct session *, size_t))
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct session_tensor *tensor = get(session, i);
        json_t *dims = json_array();
        char type[32];
        const char *name = tensor_element_name(tensor->element);
        snprintf(type, sizeof type, "TYPE_%s", strcmp(name, "BYTES") == 0 ? "STRING" : name);
        for (int k = batched && tensor->shape.rank > 0; k < tensor->shape.rank; k++)
            json_array_append_new(dims, json_integer(tensor->shape.size[k]));
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", tensor->name,
                                              "data_type", type, "dims", dims));
    }
    return list;
}

void triton_config_write(const struct session *session, const char *model,
                         const struct batcher_options *options, struct str *body)
{
    bool batched = is_batched(session);
    CLEANUP(json_decref_ptr)
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:i, s:o, s:o, s:[{s:s, s:s, s:i}]}", "name", model, "platform",
        "onnxruntime_onnx", "backend", "onnxruntime", "max_batch_size",
        batched ? options->batch_max : 0, "input",
        tensors_json(session, session_input_count(session), batched, session_input), "output",
        tensors_json(session, session_output_count(session), batched, session_output),
        "instance_group", "name", model, "kind", "KIND_AUTO", "count", options->procs);
    if (batched && options->batch_max > 1)
        json_object_set_new(json, "dynamic_batching",
                            json_pack("{s:[i], s:I}", "preferred_batch_size",
                                      options->batch_max, "max_queue_delay_microseconds",
                                      (json_int_t)(options->max_wait_ms * 1000)));
    json_write_line(json, body);
}

static json_t *duration(uint64_t count, uint64_t ns)
{
    return json_pack("{s:I, s:I}", "count", (json_int_t)count, "ns", (json_int_t)ns);
}

void triton_stats_write(struct server_metrics *metrics, const struct batcher_stats *batcher,
                        const char *model, struct str *body)
{
    static const char *const phases[SERVER_PHASE_COUNT] = {
        [PHASE_QUEUE] = "queue",
        [PHASE_INPUT] = "compute_input",
        [PHASE_COMPUTE] = "compute_infer",
        [PHASE_OUTPUT] = "compute_output",
    };
    pthread_mutex_lock(&metrics->lock);
    struct server_metrics now = *metrics;
    pthread_mutex_unlock(&metrics->lock);
    json_t *stats = json_pack("{s:o, s:o}", "success", duration(now.succeeded, now.request_ns),
                              "fail", duration(now.failed, 0));
    for (int i = 0; i < SERVER_PHASE_COUNT; i++)
        json_object_set_new(stats, phases[i], duration(now.succeeded, now.phase_ns[i]));
    CLEANUP(json_decref_ptr)
    json_t *json = json_pack(
        "{s:[{s:s, s:s, s:I, s:I, s:o, s:[]}]}", "model_stats", "name", model, "version", "1",
        "inference_count", (json_int_t)batcher->rows, "execution_count",
        (json_int_t)batcher->batches, "inference_stats", stats, "batch_stats");
    json_write_line(json, body);
}
