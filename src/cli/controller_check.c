/* SPDX-License-Identifier: Apache-2.0
 *
 * Preflight and clean-up, for people as a table and for programs as JSON.
 */
#include "cli/controller_check.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/output.h"
#include "cli/table.h"
#include "control/clean_up.h"
#include "control/preflight.h"
#include "kube/http.h"

/* All that a call needs, in the order in which it is freed backwards. */
struct connection {
    struct kube_auth *auth;
    struct kube_http *http;
    struct kube_loop *loop;
    struct kube_client *client;
};

static void connection_done(struct connection *connection)
{
    kube_client_free(connection->client);
    kube_loop_free(connection->loop);
    kube_http_free(connection->http);
    kube_auth_free(connection->auth);
}

static int connect_to(const struct controller_check_options *options,
                      struct connection *connection, struct error *err)
{
    struct kube_auth_options auth = {.kubeconfig = options->kubeconfig,
                                     .context = options->context};
    int rc = kube_auth_find(&auth, &connection->auth, err);

    if (rc < 0)
        return rc;
    struct kube_http_options http = {.auth = connection->auth};
    connection->http = kube_http_new(&http, err);
    if (!connection->http)
        return -(int)err->code;
    connection->loop = kube_loop_new(kube_http_transport(connection->http), clock_real());
    struct kube_client_options client = {.loop = connection->loop,
                                         .field_manager = "tranche-controller",
                                         .seed = (uint64_t)getpid()};
    connection->client = kube_client_new(&client);
    return 0;
}

static void add_findings(const struct preflight_report *report, struct str *text)
{
    static const struct table_column columns[] = {
        {"", TABLE_ALIGN_LEFT}, {"what", TABLE_ALIGN_LEFT}, {"finding", TABLE_ALIGN_LEFT}};
    CLEANUP(table_free_ptr)
    struct table *table = table_new(columns, sizeof columns / sizeof *columns);

    for (size_t i = 0; i < report->findings.count; i++) {
        const struct preflight_finding *finding = &report->findings.data[i];
        table_add(table, finding_level_name(finding->level));
        table_add(table, finding->subject);
        table_add(table, finding->text);
    }
    table_write(table, text);
    str_add(text, report->ok ? "\nready\n" : "\nnot ready: see what is bad above\n");
}

int controller_check(const struct controller_check_options *options, struct error *err)
{
    CLEANUP(connection_done) struct connection connection = {0};
    CLEANUP(preflight_report_done) struct preflight_report report = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    int rc = connect_to(options, &connection, err);

    if (rc < 0)
        return rc;
    struct preflight_options preflight = {
        .client = connection.client,
        .namespace = options->namespace ? options->namespace : connection.auth->namespace,
        .lease = options->lease};
    rc = preflight_run(&preflight, &report, err);
    if (rc < 0)
        return rc;
    if (options->json) {
        json_t *json = preflight_to_json(&report);
        json_write_pretty(json, &text);
        json_decref(json);
    } else {
        add_findings(&report, &text);
    }
    rc = output_write(options->output, &text, err);
    if (rc < 0 || report.ok)
        return rc;
    return error_set(err, E_NO, "the cluster is not ready for the controller");
}

int controller_clean_up(const struct controller_check_options *options, struct error *err)
{
    CLEANUP(connection_done) struct connection connection = {0};
    CLEANUP(clean_up_report_done) struct clean_up_report report = {0};
    CLEANUP(str_done) struct str text = STR_EMPTY;
    int rc = connect_to(options, &connection, err);

    assert(options->clean_up_seconds >= 0);
    if (rc < 0)
        return rc;
    struct clean_up_options clean_up = {.client = connection.client,
                                        .wait_ns = (int64_t)(options->clean_up_seconds * 1e9)};
    rc = clean_up_run(&clean_up, &report, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < report.left.count; i++)
        str_addf(&text, "%s\n", report.left.data[i]);
    str_addf(&text, "%d objects deleted, %d released from their finalizer, %zu left\n",
             report.deleted, report.released, report.left.count);
    rc = output_write(options->output, &text, err);
    if (rc < 0 || report.left.count == 0)
        return rc;
    return error_set(err, E_NO, "%s%s", report.left.data[0],
                     report.left.count > 1 ? ", and others" : "");
}
