#include "record.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    int64_t before, after;
};

/* Its tokens own slots[first .. first + total); the first `sent` of them are complete. */
struct request {
    char id[ID_LENGTH + 1];
    int64_t arrived, read;
    size_t first;
    uint32_t total, sent;
};

static struct request *requests;
static size_t request_count, request_room;
static struct slot *slots;
static size_t slot_count, slot_room;
static uint32_t epoch;

void *grown(void *items, size_t *room, size_t wanted, size_t size) {
    if (wanted <= *room) return items;
    size_t more = *room ? *room : 64;
    while (more < wanted) more *= 2;
    items = realloc(items, more * size);
    if (!items) {
        perror("memory");
        exit(1);
    }
    *room = more;
    return items;
}

void say(struct text *text, const char *format, ...) {
    va_list arguments;
    text->bytes = grown(text->bytes, &text->room, text->length + 512, 1);
    va_start(arguments, format);
    int length = vsnprintf(text->bytes + text->length, 512, format, arguments);
    va_end(arguments);
    text->length += length < 512 ? (size_t)length : 511;
}

struct entry record_request(const char *id, size_t id_length, uint32_t total, int64_t arrived, int64_t read) {
    requests = grown(requests, &request_room, request_count + 1, sizeof *requests);
    slots = grown(slots, &slot_room, slot_count + total, sizeof *slots);
    struct request *request = &requests[request_count];
    *request = (struct request){.arrived = arrived, .read = read, .first = slot_count, .total = total};
    memcpy(request->id, id, id_length);
    slot_count += total;
    return (struct entry){request_count++, epoch};
}

void record_before(struct entry entry, uint32_t token, int64_t at) {
    if (entry.epoch == epoch) slots[requests[entry.index].first + token].before = at;
}

void record_after(struct entry entry, uint32_t from, uint32_t to, int64_t at) {
    if (entry.epoch != epoch) return;
    struct request *request = &requests[entry.index];
    for (uint32_t token = from; token < to; token++) slots[request->first + token].after = at;
    request->sent = to;
}

void record_forget(void) {
    request_count = slot_count = 0;
    epoch++;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear interpolation between closest ranks, as numpy's default. */
static double percentile(const double *sorted, size_t count, double share) {
    if (!count) return 0;
    double rank = share * (double)(count - 1);
    size_t below = (size_t)rank;
    double above = below + 1 < count ? sorted[below + 1] : sorted[below];
    return sorted[below] + (rank - (double)below) * (above - sorted[below]);
}

static void say_values(struct text *text, const char *name, double *ms, size_t count) {
    double sum = 0;
    qsort(ms, count, sizeof *ms, ascending);
    for (size_t i = 0; i < count; i++) sum += ms[i];
    say(text, "\"%s\":{\"count\":%zu,\"mean\":%.6f,\"p50\":%.6f,\"p90\":%.6f,\"p99\":%.6f,\"max\":%.6f}", name, count,
        count ? sum / (double)count : 0, percentile(ms, count, 0.5), percentile(ms, count, 0.9),
        percentile(ms, count, 0.99), percentile(ms, count, 1));
}

static double *values(size_t count) {
    size_t room = 0;
    return grown(NULL, &room, count + 1, sizeof(double));
}

void say_stats(struct text *text) {
    double *ttft = values(request_count), *e2e = values(request_count), *gaps = values(slot_count);
    size_t begun = 0, ended = 0, gap_count = 0, tokens = 0;
    for (size_t i = 0; i < request_count; i++) {
        const struct request *request = &requests[i];
        const struct slot *token = slots + request->first;
        tokens += request->sent;
        if (request->sent) ttft[begun++] = (double)(token[0].after - request->read) / 1e6;
        for (uint32_t k = 1; k < request->sent; k++) gaps[gap_count++] = (double)(token[k].after - token[k - 1].after) / 1e6;
        if (request->sent == request->total) e2e[ended++] = (double)(token[request->total - 1].after - request->read) / 1e6;
    }
    say(text, "{\"requests\":%zu,\"tokens\":%zu,", request_count, tokens);
    say_values(text, "ttft_ms", ttft, begun);
    say(text, ",");
    say_values(text, "itl_ms", gaps, gap_count);
    say(text, ",");
    say_values(text, "e2e_ms", e2e, ended);
    say(text, "}\n");
    free(ttft);
    free(e2e);
    free(gaps);
}

void say_truth(struct text *text) {
    for (size_t i = 0; i < request_count; i++) {
        const struct request *request = &requests[i];
        const struct slot *token = slots + request->first;
        say(text, "{\"id\":\"%s\",\"arrived_ns\":%lld,\"read_ns\":%lld,\"before_ns\":[", request->id,
            (long long)request->arrived, (long long)request->read);
        for (uint32_t k = 0; k < request->sent; k++) say(text, k ? ",%lld" : "%lld", (long long)token[k].before);
        say(text, "],\"after_ns\":[");
        for (uint32_t k = 0; k < request->sent; k++) say(text, k ? ",%lld" : "%lld", (long long)token[k].after);
        say(text, "]}\n");
    }
}

void say_arrivals(struct text *text) {
    say(text, "[");
    for (size_t i = 0; i < request_count; i++) say(text, i ? ",%lld" : "%lld", (long long)requests[i].arrived);
    say(text, "]\n");
}
