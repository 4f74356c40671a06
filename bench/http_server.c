/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests' server (tests/load/http_server.h) as a program, for bench_http.sh and for trying
 * things out: http_server PORT [SERVICE_US]. Prints the port, ends with standard input; a line
 * "stall MS" there makes it do nothing for so long, once.
 */

#include "../tests/load/http_server.h"

int main(int argc, char **argv)
{
    static struct http_server server;
    char line[64];
    unsigned port = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    server.service_ns = argc > 2 ? atoll(argv[2]) * 1000 : 1000000;
    if (!http_server_start(&server, port)) {
        perror("http_server");
        return 1;
    }
    printf("%u\n", server.port);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "stall ", 6) != 0)
            continue;
        server.stall_ns = atoll(line + 6) * 1000000;
        server.stall_at_ns = clock_now_ns(clock_real());
    }
    http_server_stop(&server);
    return 0;
}
