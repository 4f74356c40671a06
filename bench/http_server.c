/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests' server (tests/load/http_server.h) as a program, for bench_http.sh and for trying
 * things out: http_server PORT [SERVICE_US]. Prints the port, ends with standard input.
 */
#include <unistd.h>

#include "../tests/load/http_server.h"

int main(int argc, char **argv)
{
    static struct http_server server;
    char byte;
    unsigned port = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    server.service_ns = argc > 2 ? atoll(argv[2]) * 1000 : 1000000;
    if (!http_server_start(&server, port)) {
        perror("http_server");
        return 1;
    }
    printf("%u\n", server.port);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    http_server_stop(&server);
    return 0;
}
