/* SPDX-License-Identifier: Apache-2.0
 *
 * See running.h.
 */
#include "cli/running.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/str.h"
#include "engine/model_catalog.h"
#include "runtime/control.h"
#include "runtime/state_folder.h"

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

void running_catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool running_sleep(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    if (!interrupted)
        nanosleep(&time, NULL);
    return !interrupted;
}

char *running_folder(const char *given)
{
    CLEANUP(str_done) struct str path = STR_EMPTY;
    char here[PATH_MAX];
    if (given)
        str_add(&path, given);
    else
        state_folder_default(&path);
    if (path.bytes[0] == '/' || !getcwd(here, sizeof here))
        return str_take(&path);
    return xasprintf("%s/%s", here, path.bytes);
}

char *running_program(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    return length > 0 ? xstrndup(path, (size_t)length) : xstrdup("tranche");
}

int running_ask(const char *folder, const char *what, json_t **ret_answer, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *question = json_pack("{s:s}", "do", what);
    return control_ask(folder, question, ret_answer, err);
}

/* ---- models ----------------------------------------------------------------------- */

static const char *given_file(const struct running_models *models, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < models->files.count; i++)
        if (strncmp(models->files.items[i], name, length) == 0 &&
            models->files.items[i][length] == '=')
            return models->files.items[i] + length + 1;
    return NULL;
}

static const struct service *find_service(const struct service_set *set, const char *name)
{
    for (size_t i = 0; set && i < set->services.count; i++)
        if (strcmp(set->services.data[i].name, name) == 0)
            return &set->services.data[i];
    return NULL;
}

static char *default_file(const struct running_models *models, const char *model)
{
    if (models->folder)
        return xasprintf("%s/%s.onnx", models->folder, model);
    CLEANUP(free_ptr) char *program = running_program();
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    return xasprintf("%s/models/%s.onnx", slash ? program : ".", model);
}

static int check_name(const char *name, struct error *err)
{
    static const char ALLOWED[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (!*name || strlen(name) > 100 || strspn(name, ALLOWED) != strlen(name))
        return error_set(err, E_INPUT,
                         "service \"%s\": to be served its name must be at most 100 letters, "
                         "digits, '.', '_', '-'",
                         name);
    return 0;
}

/* Training is done by built-in models: what a plan calls them, or what --model says. */
static int add_training(const struct running_models *models, const char *name,
                        const char *model, json_t *list, struct error *err)
{
    const char *given = given_file(models, name);
    struct model_choice choice;
    if (!given)
        given = given_file(models, model);
    int failed = model_choose(given ? given : model, &choice, err);
    if (failed)
        return error_wrap(err,
                          "training service \"%s\": trained here are built-in models (--model "
                          "%s=resnet:…)",
                          name, name);
    json_object_set_new(list, name,
                        json_pack("{s:s, s:s, s:s}", "path", given ? given : model, "model",
                                  model, "task", "training"));
    return 0;
}

/* Without a services file the plan tells: training has no latency. */
static bool plan_is_training(const struct plan *plan, const char *name)
{
    int service = plan_find_service(plan, name);
    bool any = false;
    for (size_t g = 0; g < plan->gpus.count; g++)
        for (size_t i = 0; i < plan->gpus.data[g].instances.count; i++) {
            const struct plan_instance *instance = &plan->gpus.data[g].instances.data[i];
            if (instance->service != service)
                continue;
            any = true;
            if (isfinite(instance->latency_ms))
                return false;
        }
    return any;
}

static int add_model(const struct running_models *models, const struct plan *plan,
                     const char *name, json_t *list, struct error *err)
{
    const struct service *service = find_service(models->services, name);
    const char *model = service ? service->model : name;
    const char *file = given_file(models, name);
    char absolute[PATH_MAX];
    int failed = check_name(name, err);
    if (failed)
        return failed;
    bool training = service
                        ? service->task == TASK_TRAINING
                        : model_is_builtin(file ? file : model) && plan_is_training(plan, name);
    if (training)
        return add_training(models, name, model, list, err);
    if (!file)
        file = given_file(models, model);
    CLEANUP(free_ptr) char *path = file ? xstrdup(file) : default_file(models, model);
    if (!realpath(path, absolute) || access(absolute, R_OK) != 0)
        return error_set_errno(err, E_IO,
                               "service \"%s\": cannot read its model %s (--models FOLDER, "
                               "--model %s=FILE%s)",
                               name, path, model, models->services ? "" : ", -s SERVICES.yaml");
    json_t *entry = json_pack("{s:s, s:s}", "path", absolute, "model", model);
    if (service && isfinite(service->latency_ms)) {
        json_object_set_new(entry, "latency_ms", json_real(service->latency_ms));
        json_object_set_new(entry, "percentile", json_real(service->percentile));
    }
    json_object_set_new(list, name, entry);
    return 0;
}

int running_models_find(const struct running_models *models, const struct plan *plan,
                        json_t **ret_models, struct error *err)
{
    CLEANUP(json_decref_ptr) json_t *list = json_object();
    int failed = 0;
    for (size_t i = 0; i < plan->services.count && !failed; i++)
        failed = add_model(models, plan, plan->services.data[i].name, list, err);
    if (failed)
        return failed;
    *ret_models = STEAL(list);
    return 0;
}
