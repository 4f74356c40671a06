/* SPDX-License-Identifier: Apache-2.0
 *
 * URLs and addresses. See http_url.h.
 */
#include "load/http_url.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

static int bad_url(const char *text, const char *what, struct error *err)
{
    return error_set(err, E_USAGE, "URL \"%s\": %s, expected http://HOST[:PORT][/PATH]", text,
                     what);
}

/* "[::1]:80", "host:80", "host" → host and port. */
static int split_authority(const char *text, struct http_url *url, struct error *err)
{
    const char *host = url->authority, *end, *port;
    long long number;
    if (*host == '[') {
        end = strchr(++host, ']');
        if (!end || (end[1] && end[1] != ':'))
            return bad_url(text, "no ] after an IPv6 address", err);
        port = end[1] ? end + 2 : "80";
    } else {
        end = strchr(host, ':');
        port = end ? end + 1 : "80";
        end = end ? end : host + strlen(host);
    }
    if (end == host || (size_t)(end - host) >= sizeof url->host)
        return bad_url(text, "no host in it", err);
    if (!text_to_int(port, 1, 65535, &number))
        return bad_url(text, "a port that is no number from 1 to 65535", err);
    snprintf(url->host, sizeof url->host, "%.*s", (int)(end - host), host);
    snprintf(url->port, sizeof url->port, "%lld", number);
    return 0;
}

int http_url_parse(const char *text, struct http_url *ret_url, struct error *err)
{
    struct http_url url;
    if (text_starts_with(text, "https://"))
        return bad_url(text, "https is not spoken (put a TLS proxy before the server)", err);
    if (!text_starts_with(text, "http://"))
        return bad_url(text, "it does not begin with http://", err);
    const char *authority = text + strlen("http://");
    size_t length = strcspn(authority, "/?#");
    const char *path = authority + length;
    if (length == 0 || length >= sizeof url.authority || memchr(authority, '@', length))
        return bad_url(text, "no host in it", err);
    if (strlen(path) + 2 > sizeof url.path || text[strcspn(text, " \t\r\n#")])
        return bad_url(text, "blanks, a # or too long a path", err);
    snprintf(url.authority, sizeof url.authority, "%.*s", (int)length, authority);
    snprintf(url.path, sizeof url.path, "%s%s", *path == '/' ? "" : "/", path);
    int failure = split_authority(text, &url, err);
    if (!failure)
        *ret_url = url;
    return failure;
}

/* Connects within the time; 0 or an errno. */
static int try_connect(const struct addrinfo *info, int timeout_ms)
{
    CLEANUP(close_fd)
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (connect(fd, info->ai_addr, info->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    if (poll(&wait, 1, timeout_ms) <= 0)
        return ETIMEDOUT;
    int problem = 0;
    socklen_t length = sizeof problem;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &length) < 0 ? errno : problem;
}

int http_url_reach(const struct http_url *url, int timeout_ms, struct http_address *ret_address,
                   struct error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int problem = getaddrinfo(url->host, url->port, &hints, &list);
    if (problem)
        return error_set(err, E_MISSING, "%s: %s", url->host, gai_strerror(problem));
    int reason = ECONNREFUSED;
    for (const struct addrinfo *info = list; info; info = info->ai_next) {
        reason = try_connect(info, timeout_ms);
        if (reason != 0)
            continue;
        memcpy(&ret_address->address, info->ai_addr, info->ai_addrlen);
        ret_address->length = info->ai_addrlen;
        break;
    }
    freeaddrinfo(list);
    if (reason == 0)
        return 0;
    return error_set(err, E_MISSING, "cannot connect to %s: %s (is the server running?)",
                     url->authority, strerror(reason));
}
