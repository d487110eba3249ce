#include "tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

static SSL_CTX *context;

static void die(void) {
    ERR_print_errors_fp(stderr);
    exit(1);
}

void tls_start(const char *chain_pem, const char *key_pem) {
    context = SSL_CTX_new(TLS_server_method());
    if (!context || SSL_CTX_use_certificate_chain_file(context, chain_pem) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, key_pem, SSL_FILETYPE_PEM) != 1)
        die();
    /* What one call did not take is offered again from another place in memory. */
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

struct ssl_st *tls_accept(int fd) {
    SSL *session = SSL_new(context);
    if (!session || !SSL_set_fd(session, fd)) die();
    SSL_set_accept_state(session);
    return session;
}

static ssize_t result(SSL *session, int returned) {
    if (returned > 0) return returned;
    int reason = SSL_get_error(session, returned);
    if (reason == SSL_ERROR_ZERO_RETURN) return 0;
    errno = reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return -1;
}

ssize_t tls_send(struct ssl_st *session, const char *bytes, size_t length) {
    ERR_clear_error();
    return result(session, SSL_write(session, bytes, (int)length));
}

ssize_t tls_receive(struct ssl_st *session, char *bytes, size_t room) {
    ERR_clear_error();
    return result(session, SSL_read(session, bytes, (int)room));
}

void tls_free(struct ssl_st *session) { SSL_free(session); }
