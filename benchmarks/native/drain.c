/*
 * drain PORT STREAMS REQUESTS TOKENS [PROMPT_BYTES]: the floor under every client.
 *
 * What a client pays at the least for receiving streamed tokens: epoll, one recv and one clock read for each read, nothing
 * else. Keeps STREAMS requests of TOKENS tokens in flight until REQUESTS have ended; with TOKENS 1 it shows the request rate.
 * Prints one JSON object: seconds, cpu_s, cpu_share, tokens, tokens_s, requests_s, reads, us_per_read, us_per_token.
 *
 * A response is taken to have ended when a read ends in the last chunk. That is sound for a server that hands every event over
 * whole, and cheaper than any parser.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char END[] = "0\r\n\r\n";
static char wire[1 << 16];
static int wire_length;
static int64_t *stamps; /* one for each read: a client that keeps no times would be no floor for one that does */
static size_t reads, stamp_room;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void make_request(int tokens, int prompt_bytes) {
    static char body[1 << 15];
    int length = snprintf(body, sizeof body,
                          "{\"model\":\"truth\",\"messages\":[{\"role\":\"user\",\"content\":\"%0*d\"}],\"max_tokens\":%d,"
                          "\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
                          prompt_bytes, 0, tokens);
    if (length >= (int)sizeof body) {
        fprintf(stderr, "the prompt is too long\n");
        exit(2);
    }
    wire_length = snprintf(wire, sizeof wire,
                           "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           "Content-Length: %d\r\n\r\n%s",
                           length, body);
}

static void ask(int fd) {
    if (send(fd, wire, (size_t)wire_length, MSG_NOSIGNAL) != wire_length) die("send");
}

static int connect_to(int port) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* Read until `requests` responses have ended, `asked` of them being under way already. */
static void drain(int poller, long requests, long asked) {
    static char buffer[1 << 16];
    struct epoll_event ready[512];
    long ended = 0;
    while (ended < requests) {
        int count = epoll_wait(poller, ready, 512, -1);
        for (int i = 0; i < count; i++) {
            int fd = ready[i].data.fd;
            ssize_t length = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
            if (length == 0) {
                fprintf(stderr, "the server closed a connection\n");
                exit(1);
            }
            if (length < 0) continue;
            stamps[reads++ % stamp_room] = now();
            if (length < 5 || memcmp(buffer + length - 5, END, 5)) continue;
            ended++;
            if (asked < requests) {
                ask(fd);
                asked++;
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: %s PORT STREAMS REQUESTS TOKENS [PROMPT_BYTES]\n", argv[0]);
        return 2;
    }
    int port = atoi(argv[1]), streams = atoi(argv[2]), tokens = atoi(argv[4]);
    long requests = atol(argv[3]);
    if (streams > requests) streams = (int)requests;
    make_request(tokens, argc == 6 ? atoi(argv[5]) : 32);
    stamp_room = (size_t)requests * (size_t)tokens + 1;
    stamps = malloc(stamp_room * sizeof *stamps);
    int *fds = malloc((size_t)streams * sizeof *fds);
    if (!stamps || !fds) die("memory");
    int poller = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < streams; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i] = connect_to(port)};
        epoll_ctl(poller, EPOLL_CTL_ADD, fds[i], &event);
    }
    double cpu = cpu_seconds();
    int64_t start = now();
    for (int i = 0; i < streams; i++) ask(fds[i]);
    drain(poller, requests, streams);
    double seconds = (double)(now() - start) / 1e9;
    cpu = cpu_seconds() - cpu;
    double sum = (double)requests * tokens;
    printf("{\"seconds\":%.4f,\"cpu_s\":%.4f,\"cpu_share\":%.4f,\"tokens\":%.0f,\"tokens_s\":%.1f,\"requests_s\":%.1f,"
           "\"reads\":%zu,\"us_per_read\":%.3f,\"us_per_token\":%.3f}\n",
           seconds, cpu, cpu / seconds, sum, sum / seconds, (double)requests / seconds, reads,
           reads ? 1e6 * cpu / (double)reads : 0, 1e6 * cpu / sum);
    return 0;
}
