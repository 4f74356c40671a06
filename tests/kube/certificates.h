/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and certificates for a test, good for an hour: an authority that signs others.
 */
#ifndef TRANCHE_TESTS_KUBE_CERTIFICATES_H
#define TRANCHE_TESTS_KUBE_CERTIFICATES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/cleanup.h"
#include "base/memory.h"

struct certificate {
    EVP_PKEY *key;
    X509 *x509;
};

static void certificate_add_extension(X509 *x509, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;

    X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
}

/* A certificate for `name`, signed by issuer, or by itself as an authority. */
static struct certificate certificate_make(const char *name, const struct certificate *issuer)
{
    static long serial = 1;
    struct certificate made = {EVP_EC_gen("P-256"), X509_new()};
    const struct certificate *signer = issuer ? issuer : &made;
    CLEANUP(free_ptr) char *names = xasprintf("DNS:%s", name);
    X509_NAME *subject = X509_get_subject_name(made.x509);

    X509_set_version(made.x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.x509), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.x509), -60);
    X509_gmtime_adj(X509_getm_notAfter(made.x509), 3600);
    X509_set_pubkey(made.x509, made.key);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1,
                               0);
    X509_set_issuer_name(made.x509, X509_get_subject_name(signer->x509));
    certificate_add_extension(made.x509, signer->x509, NID_basic_constraints,
                              issuer ? "CA:FALSE" : "critical,CA:TRUE");
    certificate_add_extension(made.x509, signer->x509, NID_subject_alt_name, names);
    assert_true(X509_sign(made.x509, signer->key, EVP_sha256()) > 0);
    return made;
}

static void certificate_done(struct certificate *certificate)
{
    EVP_PKEY_free(certificate->key);
    X509_free(certificate->x509);
}

static char *pem_take(BIO *bio)
{
    char *bytes = NULL;
    long length = BIO_get_mem_data(bio, &bytes);
    char *text = xstrndup(bytes, (size_t)length);

    BIO_free(bio);
    return text;
}

/* PEM text, owned by the caller. */
static char *certificate_pem(const struct certificate *certificate)
{
    BIO *bio = BIO_new(BIO_s_mem());

    assert_int_equal(PEM_write_bio_X509(bio, certificate->x509), 1);
    return pem_take(bio);
}

static char *certificate_key_pem(const struct certificate *certificate)
{
    BIO *bio = BIO_new(BIO_s_mem());

    assert_int_equal(PEM_write_bio_PrivateKey(bio, certificate->key, NULL, NULL, 0, NULL, NULL),
                     1);
    return pem_take(bio);
}

#endif
