/*
 * server PORT TTFT_US ITL_US [CHAIN_PEM KEY_PEM]: an LLM server whose timings are known, to hold an instrument's numbers against.
 *
 * It shares no code with the instrument. One thread, epoll and a timerfd, loopback only; PORT 0 takes a free port. Prints
 * "listening PORT" when it is up. A request's first token is due TTFT_US after the request was read, each further one
 * ITL_US after the one before was due; every token is one server-sent event in one chunk, handed over in one send().
 * With a certificate it speaks TLS only. A whole (not streamed) answer is a stream of which nothing is sent before its last token.
 *
 *   POST /v1/chat/completions, /v1/completions   max_completion_tokens or max_tokens, stream, stream_options.include_usage
 *   GET  /v1/models, /health
 *   GET  /stats, /truth, /arrivals       the record of what was done (record.h)
 *   GET or POST /reset                   forget that record
 *
 * What the instants in the record mean is said in record.h.
 *
 * Why there is no heap: every stream has the same TTFT and the same interval, so two first-in-first-out queues, one of streams
 * that wait for their first token and one of those that wait for a further one, are each in order of due time by themselves.
 */
#define _GNU_SOURCE
#include "record.h"
#include "tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define MOST_TOKENS 1000000   /* of one request */
#define MOST_INPUT (64 << 20) /* bytes of one request */
#define DEFAULT_TOKENS 64
#define COUNT_WIDTH 8 /* JSON allows white space before a number */
#define BURST 64 /* tokens sent between two looks at the sockets: due tokens must not keep requests waiting */

struct conn;

struct queue {
    struct conn *head, *tail;
};

struct conn {
    int fd;
    struct ssl_st *tls; /* NULL: plain */
    char *in; /* what was read and not yet handled; one byte of room is kept for a terminator */
    size_t in_length, in_room;
    char *out; /* what the kernel would not take yet: out[out_at .. out_length) */
    size_t out_at, out_length, out_room;
    bool wants_write;
    struct queue *queue; /* NULL: no answer under way */
    struct conn *earlier, *later;
    int64_t due, arrived;
    struct entry entry;
    uint32_t total, sent, stamped;
    uint32_t prompt_tokens;
    bool chat, stream, usage, close_after;
    char number[8]; /* of the answer, in hexadecimal */
};

/* A chunk's bytes, with the places where the answer's number and, right-aligned in COUNT_WIDTH, token counts go. */
struct template {
    char bytes[512];
    size_t length, number_at, counts_at[3];
};

enum { FIRST, MIDDLE, LAST, ONLY, KINDS };

static const char END[] = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
static const char HEAD[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                           "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";

static struct template templates[2][KINDS], usages[2]; /* [chat] */
static struct queue first_queue, next_queue;
static uint32_t answer_count;
static int64_t ttft_ns, interval_ns;
static int poller;
static bool tls;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static int64_t now(void) { return clock_ns(CLOCK_MONOTONIC); }

/* --- Queues --------------------------------------------------------------------------------------------------------- */

static void enqueue(struct queue *queue, struct conn *c) {
    c->queue = queue;
    c->later = NULL;
    c->earlier = queue->tail;
    if (queue->tail)
        queue->tail->later = c;
    else
        queue->head = c;
    queue->tail = c;
}

static void dequeue(struct conn *c) {
    struct queue *queue = c->queue;
    if (!queue) return;
    if (c->earlier)
        c->earlier->later = c->later;
    else
        queue->head = c->later;
    if (c->later)
        c->later->earlier = c->earlier;
    else
        queue->tail = c->earlier;
    c->queue = NULL;
}

/* The stream whose token is due first, or NULL. */
static struct conn *earliest(void) {
    struct conn *a = first_queue.head, *b = next_queue.head;
    if (!a || !b) return a ? a : b;
    return a->due <= b->due ? a : b;
}

/* --- Sending -------------------------------------------------------------------------------------------------------- */

static void drop(struct conn *c) {
    dequeue(c);
    tls_free(c->tls);
    close(c->fd);
    free(c->in);
    free(c->out);
    free(c);
}

static void watch(struct conn *c, bool write) {
    if (c->wants_write == write) return;
    struct epoll_event event = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
    c->wants_write = write;
}

/* All tokens sent so far are the kernel's as of now. */
static void stamp_after(struct conn *c) {
    record_after(c->entry, c->stamped, c->sent, now());
    c->stamped = c->sent;
}

static ssize_t put_out(struct conn *c, const char *bytes, size_t length) {
    return c->tls ? tls_send(c->tls, bytes, length) : send(c->fd, bytes, length, MSG_NOSIGNAL);
}

/* Hand bytes to the kernel, or keep what it does not take. False: the connection is gone. */
static bool hand_over(struct conn *c, const char *bytes, size_t length) {
    if (c->out_at == c->out_length) {
        c->out_at = c->out_length = 0;
        ssize_t taken = put_out(c, bytes, length);
        if (taken < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
            taken = 0;
        }
        if ((size_t)taken == length) return true;
        bytes += taken;
        length -= (size_t)taken;
    }
    c->out = grown(c->out, &c->out_room, c->out_length + length, 1);
    memcpy(c->out + c->out_length, bytes, length);
    c->out_length += length;
    watch(c, true);
    return true;
}

/* The socket takes more. False: the connection is gone. */
static bool flush(struct conn *c) {
    while (c->out_at < c->out_length) {
        ssize_t taken = put_out(c, c->out + c->out_at, c->out_length - c->out_at);
        if (taken < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        c->out_at += (size_t)taken;
    }
    stamp_after(c);
    watch(c, false);
    return !(c->close_after && !c->queue);
}

static bool reply(struct conn *c, int status, const char *type, const char *body, size_t length) {
    char head[256];
    int head_length = snprintf(head, sizeof head, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                               status, status == 200 ? "OK" : "Error", type, length);
    return hand_over(c, head, (size_t)head_length) && hand_over(c, body, length);
}

static bool say_json(struct conn *c, int status, const char *json) {
    return reply(c, status, "application/json", json, strlen(json));
}

/* --- Tokens --------------------------------------------------------------------------------------------------------- */

static void finish_template(struct template *made, const char *event, int length) {
    made->length = (size_t)snprintf(made->bytes, sizeof made->bytes, "%x\r\n%s\r\n", length, event);
    made->number_at = (size_t)(strchr(made->bytes, '#') - made->bytes);
    const char *at = made->bytes;
    for (int i = 0; (at = strchr(at, '@')); i++, at += COUNT_WIDTH) made->counts_at[i] = (size_t)(at - made->bytes);
}

static void make_token(struct template *made, bool chat, int kind) {
    char event[400];
    const char *role = kind == FIRST || kind == ONLY ? "\"role\":\"assistant\"," : "";
    const char *finish = kind == LAST || kind == ONLY ? "\"length\"" : "null";
    int length =
        chat ? snprintf(event, sizeof event,
                        "data: {\"id\":\"chatcmpl-########\",\"object\":\"chat.completion.chunk\",\"created\":1762666106,"
                        "\"model\":\"truth\",\"choices\":[{\"index\":0,\"delta\":{%s\"content\":\" can\"},"
                        "\"finish_reason\":%s}]}\n\n",
                        role, finish)
             : snprintf(event, sizeof event,
                        "data: {\"id\":\"cmpl-########\",\"object\":\"text_completion\",\"created\":1762666106,"
                        "\"model\":\"truth\",\"choices\":[{\"index\":0,\"text\":\" can\",\"logprobs\":null,"
                        "\"finish_reason\":%s}]}\n\n",
                        finish);
    finish_template(made, event, length);
}

static void make_usage(struct template *made, bool chat) {
    char event[400];
    int length = snprintf(event, sizeof event,
                          "data: {\"id\":\"%s########\",\"object\":\"%s\",\"created\":1762666106,\"model\":\"truth\","
                          "\"choices\":[],\"usage\":{\"prompt_tokens\":@@@@@@@@,\"completion_tokens\":@@@@@@@@,"
                          "\"total_tokens\":@@@@@@@@}}\n\n",
                          chat ? "chatcmpl-" : "cmpl-", chat ? "chat.completion.chunk" : "text_completion");
    finish_template(made, event, length);
}

static size_t put(char *to, const struct template *template, const char *number) {
    memcpy(to, template->bytes, template->length);
    memcpy(to + template->number_at, number, 8);
    return template->length;
}

static void put_count(char *to, uint32_t count) {
    memset(to, ' ', COUNT_WIDTH);
    for (int i = COUNT_WIDTH - 1; i == COUNT_WIDTH - 1 || count; i--, count /= 10) to[i] = (char)('0' + count % 10);
}

/* What follows the last token: usage if asked for, the terminator, the end of the body. Gives its length. */
static size_t closing(const struct conn *c, char *to) {
    size_t length = 0;
    if (c->usage) {
        const struct template *usage = &usages[c->chat];
        length = put(to, usage, c->number);
        put_count(to + usage->counts_at[0], c->prompt_tokens);
        put_count(to + usage->counts_at[1], c->total);
        put_count(to + usage->counts_at[2], c->prompt_tokens + c->total);
    }
    memcpy(to + length, END, sizeof END - 1);
    return length + sizeof END - 1;
}

/* A whole answer's text and all. False: the connection is gone. */
static bool send_whole(struct conn *c) {
    struct text body = {0};
    say(&body, "{\"id\":\"%s%.8s\",\"object\":\"%s\",\"created\":1762666106,\"model\":\"truth\",\"choices\":[{\"index\":0,",
        c->chat ? "chatcmpl-" : "cmpl-", c->number, c->chat ? "chat.completion" : "text_completion");
    say(&body, c->chat ? "\"message\":{\"role\":\"assistant\",\"content\":\"" : "\"text\":\"");
    for (uint32_t i = 0; i < c->total; i++) say(&body, " can");
    say(&body, c->chat ? "\"}," : "\",\"logprobs\":null,");
    say(&body, "\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":%u,\"completion_tokens\":%u,\"total_tokens\":%u}}",
        c->prompt_tokens, c->total, c->total + c->prompt_tokens);
    bool alive = reply(c, 200, "application/json", body.bytes, body.length);
    free(body.bytes);
    return alive;
}

/* One token of a stream: everything that goes out with it in one piece, so that one send() takes it. */
static bool send_token(struct conn *c) {
    char bytes[2048]; /* the head and two templates at most */
    size_t length = 0;
    bool first = c->sent == 0, last = c->sent + 1 == c->total;
    const struct template *template = &templates[c->chat][first ? (last ? ONLY : FIRST) : (last ? LAST : MIDDLE)];
    if (first) {
        memcpy(bytes, HEAD, sizeof HEAD - 1);
        length = sizeof HEAD - 1;
    }
    length += put(bytes + length, template, c->number);
    if (last) length += closing(c, bytes + length);
    return hand_over(c, bytes, length);
}

/* The token that is due, with its stamps. False: the connection is gone. */
static bool tick(struct conn *c) {
    bool last = c->sent + 1 == c->total;
    int64_t before = now();
    bool alive = c->stream ? send_token(c) : last ? send_whole(c) : true;
    if (!alive) return false;
    record_before(c->entry, c->sent, before);
    c->sent++;
    if (c->out_at == c->out_length) stamp_after(c);
    dequeue(c);
    if (!last) {
        c->due += interval_ns;
        enqueue(&next_queue, c);
    } else if (c->close_after && c->out_at == c->out_length) {
        return false;
    }
    return true;
}

/* --- Reading requests ------------------------------------------------------------------------------------------------ */

/* What is read of a request's body: where the values begin, or NULL. */
struct asked {
    const char *max_completion_tokens, *max_tokens, *stream, *include_usage, *user, *content, *prompt;
};

/*
 * Find the keys in one pass from quote to quote. No parser is needed: inside a JSON string a quote is written \", so a key with
 * both its quotes is never part of a prompt, and a value spelled like a key is told from it by the colon that does not follow.
 */
static struct asked read_body(const char *body, const char *end) {
    struct asked asked = {0};
    const struct {
        const char *name;
        const char **value;
    } keys[] = {{"\"max_completion_tokens\"", &asked.max_completion_tokens},
                {"\"max_tokens\"", &asked.max_tokens},
                {"\"stream\"", &asked.stream},
                {"\"include_usage\"", &asked.include_usage},
                {"\"user\"", &asked.user},
                {"\"content\"", &asked.content},
                {"\"prompt\"", &asked.prompt}};
    while ((body = memchr(body, '"', (size_t)(end - body)))) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            size_t length = strlen(keys[i].name);
            if (body[1] != keys[i].name[1] || strncmp(body, keys[i].name, length)) continue;
            const char *at = body + length + strspn(body + length, " \t\r\n");
            if (*at == ':' && !*keys[i].value) *keys[i].value = at + 1 + strspn(at + 1, " \t\r\n");
            break;
        }
        body++;
    }
    return asked;
}

static bool is_true(const char *value) { return value && !strncmp(value, "true", 4); }

/* What a client's record is joined by: the `user` field, or else how the prompt begins (a nonce does). Plain characters only. */
static struct entry record(const struct conn *c, const struct asked *asked, int64_t read) {
    static const char PLAIN[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.,:";
    const char *from = asked->user ? asked->user : asked->content ? asked->content : asked->prompt ? asked->prompt : "";
    from += strspn(from, "[\"");
    size_t length = strspn(from, PLAIN);
    return record_request(from, length < ID_LENGTH ? length : ID_LENGTH, c->total, c->arrived, read);
}

/* A generation was asked for. */
static bool generate(struct conn *c, const char *body, size_t length, bool chat, int64_t read) {
    struct asked asked = read_body(body, body + length);
    const char *tokens = asked.max_completion_tokens ? asked.max_completion_tokens : asked.max_tokens;
    long total = tokens ? atol(tokens) : DEFAULT_TOKENS;
    if (total < 1 || total > MOST_TOKENS) return say_json(c, 400, "{\"error\":{\"message\":\"max_tokens: 1 to 1000000\"}}");
    uint32_t number = ++answer_count;
    for (int i = 7; i >= 0; i--, number >>= 4) c->number[i] = "0123456789abcdef"[number & 15];
    c->chat = chat;
    c->stream = is_true(asked.stream);
    c->usage = is_true(asked.include_usage);
    c->total = (uint32_t)total;
    c->sent = c->stamped = 0;
    c->prompt_tokens = (uint32_t)length / 5; /* near enough; the true count would need a tokenizer */
    c->due = read + ttft_ns;
    c->entry = record(c, &asked, read);
    enqueue(&first_queue, c);
    return true;
}

/* One of the record's documents. */
static bool tell(struct conn *c, const char *type, void (*write)(struct text *)) {
    struct text text = {0};
    write(&text);
    bool alive = reply(c, 200, type, text.bytes ? text.bytes : "", text.length);
    free(text.bytes);
    return alive;
}

static bool route(struct conn *c, const char *target, const char *body, size_t content, int64_t read) {
    size_t length = strcspn(target, " ?\r\n");
#define IS(path) (length == sizeof path - 1 && !memcmp(target, path, length))
    if (IS("/v1/chat/completions")) return generate(c, body, content, true, read);
    if (IS("/v1/completions")) return generate(c, body, content, false, read);
    if (IS("/stats")) return tell(c, "application/json", say_stats);
    if (IS("/truth")) return tell(c, "application/x-ndjson", say_truth);
    if (IS("/arrivals")) return tell(c, "application/json", say_arrivals);
    if (IS("/health")) return say_json(c, 200, "{\"status\":\"ok\"}");
    if (IS("/v1/models"))
        return say_json(c, 200, "{\"object\":\"list\",\"data\":[{\"id\":\"truth\",\"object\":\"model\",\"created\":1,"
                                "\"owned_by\":\"benchmark\"}]}");
    if (IS("/reset")) {
        record_forget();
        return say_json(c, 200, "{\"status\":\"forgotten\"}");
    }
#undef IS
    return say_json(c, 404, "{\"error\":{\"message\":\"no such path\"}}");
}

/* Handle one request if it is complete. Bytes used; 0: more is needed; -1: the connection is gone. */
static ssize_t handle(struct conn *c) {
    c->in[c->in_length] = '\0';
    char *end = memmem(c->in, c->in_length, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t head = (size_t)(end - c->in) + 4, content = 0;
    char kept = c->in[head];
    c->in[head] = '\0'; /* so that the searches below stay inside the head */
    const char *field = strcasestr(c->in, "\r\ncontent-length:");
    if (field) content = (size_t)strtoul(field + 17, NULL, 10);
    bool close_after = strcasestr(c->in, "\r\nconnection: close") != NULL;
    c->in[head] = kept;
    if (content > MOST_INPUT) return -1;
    if (c->in_length < head + content) return 0;
    int64_t read = now();
    kept = c->in[head + content];
    c->in[head + content] = '\0';
    c->close_after = close_after;
    const char *target = strchr(c->in, ' ');
    bool alive = target && target < end && route(c, target + 1, c->in + head, content, read);
    c->in[head + content] = kept;
    if (alive && !c->queue && close_after && c->out_at == c->out_length) alive = false;
    return alive ? (ssize_t)(head + content) : -1;
}

static bool handle_all(struct conn *c) {
    while (c->in_length && !c->queue) {
        ssize_t used = handle(c);
        if (used <= 0) return used == 0;
        c->in_length -= (size_t)used;
        memmove(c->in, c->in + used, c->in_length);
    }
    return true;
}

/* One recvmsg, with the kernel's receive time in `arrived`. As recv(). */
static ssize_t take_stamped(struct conn *c, char *into, size_t room) {
    union {
        char bytes[CMSG_SPACE(sizeof(struct timespec))];
        struct cmsghdr align;
    } control;
    struct iovec place = {.iov_base = into, .iov_len = room};
    struct msghdr message = {.msg_iov = &place, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t length = recvmsg(c->fd, &message, 0);
    struct cmsghdr *item = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (item && item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_TIMESTAMPNS) {
        struct timespec at;
        memcpy(&at, CMSG_DATA(item), sizeof at);
        c->arrived += at.tv_sec * NS_PER_S + at.tv_nsec - clock_ns(CLOCK_REALTIME);
    }
    return length;
}

/* Read what is there. False: the connection is gone. */
static bool receive(struct conn *c) {
    for (;;) {
        c->in = grown(c->in, &c->in_room, c->in_length + 4096 + 1, 1);
        char *into = c->in + c->in_length;
        size_t room = c->in_room - c->in_length - 1;
        c->arrived = now();
        ssize_t length = c->tls ? tls_receive(c->tls, into, room) : take_stamped(c, into, room);
        if (length < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (length == 0 || c->in_length + (size_t)length > MOST_INPUT) return false;
        c->in_length += (size_t)length;
        if (!handle_all(c)) return false;
        if (!c->tls) return true; /* epoll is level-triggered; but it knows nothing of bytes inside a TLS session */
    }
}

/* --- The loop -------------------------------------------------------------------------------------------------------- */

static void accept_all(int listener) {
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
        struct conn *c = calloc(1, sizeof *c);
        if (!c) die("memory");
        c->fd = fd;
        if (tls) c->tls = tls_accept(fd);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0) die("epoll_ctl");
    }
}

/* Send what is due, a burst at most. True: more is due already. */
static bool send_due(void) {
    int64_t at = now();
    struct conn *c;
    for (int i = 0; (c = earliest()) && c->due <= at; i++) {
        if (i == BURST) return true;
        /* A request that was waiting behind this answer goes on once the answer has ended. */
        if (!tick(c) || (!c->queue && !handle_all(c))) drop(c);
    }
    return false;
}

static void arm(int timer) {
    static int64_t armed;
    const struct conn *c = earliest();
    if (!c || c->due == armed) return;
    armed = c->due;
    struct itimerspec at = {.it_value = {armed / NS_PER_S, armed % NS_PER_S}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static int listen_on(int port) {
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, length) < 0) die("bind");
    if (listen(listener, 8192) < 0) die("listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("listening %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 6) {
        fprintf(stderr, "usage: %s PORT TTFT_US ITL_US [CHAIN_PEM KEY_PEM]\n", argv[0]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    tls = argc == 6;
    if (tls) tls_start(argv[4], argv[5]);
    ttft_ns = atoll(argv[2]) * 1000;
    interval_ns = atoll(argv[3]) * 1000;
    for (int chat = 0; chat < 2; chat++) {
        make_usage(&usages[chat], chat);
        for (int kind = 0; kind < KINDS; kind++) make_token(&templates[chat][kind], chat, kind);
    }
    poller = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    int listener = listen_on(atoi(argv[1]));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener}, ready[512];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    /* Edge-triggered: the expiry need not be read away, arming it anew is enough. */
    event = (struct epoll_event){.events = EPOLLIN | EPOLLET, .data.ptr = &timer};
    epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
    for (;;) {
        bool more = send_due();
        if (!more) arm(timer);
        int count = epoll_wait(poller, ready, 512, more ? 0 : -1);
        for (int i = 0; i < count; i++) {
            if (ready[i].data.ptr == &timer) continue;
            if (ready[i].data.ptr == &listener) {
                accept_all(listener);
                continue;
            }
            struct conn *c = ready[i].data.ptr;
            bool alive = !(ready[i].events & EPOLLOUT) || flush(c);
            if (alive && ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) alive = receive(c);
            if (!alive) drop(c);
        }
    }
}
