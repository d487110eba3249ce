/*
 * TLS for the server where OpenSSL is at hand (WITH_TLS); without it there is none to be had. All calls are non-blocking and
 * fail as send() and recv() do: -1 and EAGAIN in errno where the socket must be waited for. The handshake goes on by itself.
 */
#ifndef TLS_H
#define TLS_H

#include <stddef.h>
#include <sys/types.h>

struct ssl_st; /* OpenSSL's SSL */

#ifdef WITH_TLS
void tls_start(const char *chain_pem, const char *key_pem); /* exits with OpenSSL's words on failure */
struct ssl_st *tls_accept(int fd);
ssize_t tls_send(struct ssl_st *session, const char *bytes, size_t length);
ssize_t tls_receive(struct ssl_st *session, char *bytes, size_t room);
void tls_free(struct ssl_st *session);
#else
#include <stdio.h>
#include <stdlib.h>
static inline void tls_start(const char *chain_pem, const char *key_pem) {
    fprintf(stderr, "built without TLS: %s and %s are of no use\n", chain_pem, key_pem);
    exit(2);
}
static inline struct ssl_st *tls_accept(int fd) { return (void)fd, NULL; }
static inline ssize_t tls_send(struct ssl_st *s, const char *b, size_t n) { return (void)s, (void)b, (void)n, -1; }
static inline ssize_t tls_receive(struct ssl_st *s, char *b, size_t n) { return (void)s, (void)b, (void)n, -1; }
static inline void tls_free(struct ssl_st *session) { (void)session; }
#endif
#endif
