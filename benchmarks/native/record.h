/*
 * The server's own record of what it did: the truth that an instrument is held against. All instants in ns, CLOCK_MONOTONIC.
 *
 *   arrived   the kernel received the request's last bytes (SO_TIMESTAMPNS, moved from CLOCK_REALTIME)
 *   read      the server has read it; arrived <= read, and the difference is the server's own delay
 *   before    just before the send() that hands a token to the kernel
 *   after     when that send() has returned; over loopback the client's kernel receives the token in between
 */
#ifndef RECORD_H
#define RECORD_H

#include <stddef.h>
#include <stdint.h>

#define ID_LENGTH 24

/* Text that grows. */
struct text {
    char *bytes;
    size_t length, room;
};

/* Append; no single call may come to 512 bytes. */
__attribute__((format(printf, 2, 3))) void say(struct text *text, const char *format, ...);

/* Room for `wanted` items of `size` bytes; grows by doubling. */
void *grown(void *items, size_t *room, size_t wanted, size_t size);

/* Names one request's entry; of no effect once the record was forgotten. */
struct entry {
    size_t index;
    uint32_t epoch;
};

/* A request of `total` tokens has been read. `id` has `id_length` plain characters, ID_LENGTH at most. */
struct entry record_request(const char *id, size_t id_length, uint32_t total, int64_t arrived, int64_t read);

/* Token `token` is about to be handed to the kernel. */
void record_before(struct entry entry, uint32_t token, int64_t at);

/* Tokens from `from` to before `to` are the kernel's. */
void record_after(struct entry entry, uint32_t from, uint32_t to, int64_t at);

/* Forget everything; answers under way leave no further trace. */
void record_forget(void);

/* count, mean, p50, p90, p99, max (ms) of TTFT (after[0] - read), gaps (after[i] - after[i - 1]) and whole requests, as JSON. */
void say_stats(struct text *text);

/* One JSON line a request: id, arrived_ns, read_ns, before_ns[], after_ns[]. */
void say_truth(struct text *text);

/* One JSON array of all `arrived`. */
void say_arrivals(struct text *text);

#endif
