/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing text, terminal width and numbers as text. Numbers are written and read in the C
 * locale whatever the process has set.
 */
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/memory.h"

enum {
    STR_FIRST_CAPACITY = 64,
    NUMBER_TEXT_SIZE = 32,     /* "-1.7976931348623157e+308" and the terminator */
    NUMBER_DIGITS_ALWAYS = 17, /* so many digits identify every double */
};

char str_empty_bytes[1] = "";

/* Room for `more` bytes and the terminator. */
static void str_reserve(struct str *text, size_t more)
{
    assert(text->bytes && text->length < SIZE_MAX / 4 && more < SIZE_MAX / 4);
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity)
        return;
    size_t capacity = text->capacity ? text->capacity * 2 : STR_FIRST_CAPACITY;
    if (capacity < needed)
        capacity = needed;
    char *bytes = xrealloc(text->capacity ? text->bytes : NULL, capacity, 1);
    bytes[text->length] = '\0';
    text->bytes = bytes;
    text->capacity = capacity;
}

/* The code point at text, its length in *ret_length; -1 (and 1) for an invalid byte. */
static int32_t utf8_decode(const char *text, size_t *ret_length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = bytes[0] < 0x80             ? 1
                    : (bytes[0] & 0xE0) == 0xC0 ? 2
                    : (bytes[0] & 0xF0) == 0xE0 ? 3
                    : (bytes[0] & 0xF8) == 0xF0 ? 4
                                                : 0;
    *ret_length = 1;
    if (length <= 1)
        return length == 1 ? bytes[0] : -1;
    int32_t point = bytes[0] & (0x7F >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return -1;
        point = point << 6 | (bytes[i] & 0x3F);
    }
    if (point < least[length] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
        return -1;
    *ret_length = length;
    return point;
}

static size_t columns_in_locale(const char *text)
{
    size_t columns = 0, length;
    for (; *text; text += length) {
        int32_t point = utf8_decode(text, &length);
        int width = point < 0 ? 1 : wcwidth((wchar_t)point);
        /* Control characters print nothing; what the C library does not know takes one. */
        if (width < 0)
            width = point < 0x20 || point == 0x7F ? 0 : 1;
        columns += (size_t)width;
    }
    return columns;
}

static locale_t number_locale(void)
{
    /* glibc returns its static object here: nothing is allocated, nothing to free. */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    assert(c_locale);
    return c_locale;
}

static bool reads_back(const char *text, double value)
{
    return strtod_l(text, NULL, number_locale()) == value;
}

/* Below a power of two the doubles lie twice as close as above it, so the nearest decimal
 * of 16 digits, below, may miss where the next one up reads back: 2^-44 is
 * 5.684341886080802e-14. Such values are below 1e-4 or above 1e16, where %g has an
 * exponent. */
static bool next_decimal_up(double value, char text[NUMBER_TEXT_SIZE])
{
    int exponent;
    if (fabs(frexp(value, &exponent)) != 0.5)
        return false;
    char upper[NUMBER_TEXT_SIZE];
    snprintf(upper, sizeof upper, "%.15e", value);
    char *last_digit = strchr(upper, 'e') - 1;
    if (*last_digit == '9') /* none of the 2046 powers needs a carry */
        return false;
    (*last_digit)++;
    if (!reads_back(upper, value))
        return false;
    assert(fabs(value) < 1e-4 || fabs(value) > 1e16);
    memcpy(text, upper, sizeof upper);
    return true;
}

/* The fewest digits that read back to value, written as %g does.
 *
 * A decimal of at most 15 digits survives the way through a normal double, so if such a
 * decimal reads as value, "%.15g" prints it (and drops its trailing zeros). Subnormal
 * values have fewer digits: count up from one. 17 digits identify every double. */
static void shortest_text(double value, char text[NUMBER_TEXT_SIZE])
{
    int digits = fabs(value) < 0x1p-1022 ? 1 : 15;
    for (; digits < NUMBER_DIGITS_ALWAYS; digits++) {
        snprintf(text, NUMBER_TEXT_SIZE, "%.*g", digits, value);
        if (reads_back(text, value))
            return;
    }
    if (!next_decimal_up(value, text))
        snprintf(text, NUMBER_TEXT_SIZE, "%.*g", NUMBER_DIGITS_ALWAYS, value);
}

static const char *skip_digits(const char *text)
{
    while (*text >= '0' && *text <= '9')
        text++;
    return text;
}

static const char *skip_sign(const char *text)
{
    return *text == '-' || *text == '+' ? text + 1 : text;
}

/* [-+]? (\.[0-9]+ | [0-9]+(\.[0-9]*)?) ([eE][-+]?[0-9]+)? as in YAML 1.2's core schema,
 * which takes all that JSON does. */
static bool is_decimal(const char *text)
{
    const char *whole = skip_sign(text);
    const char *end = skip_digits(whole);
    bool has_digits = end > whole;
    if (*end == '.') {
        const char *fraction = end + 1;
        end = skip_digits(fraction);
        has_digits = has_digits || end > fraction;
    }
    if (!has_digits)
        return false;
    if (*end == 'e' || *end == 'E') {
        const char *exponent = skip_sign(end + 1);
        end = skip_digits(exponent);
        if (end == exponent)
            return false;
    }
    return *end == '\0';
}

void str_done(struct str *text)
{
    assert(text);
    if (text->capacity)
        free(text->bytes);
    *text = STR_EMPTY;
}

void str_clear(struct str *text)
{
    assert(text);
    text->length = 0;
    if (text->capacity)
        text->bytes[0] = '\0';
}

void str_add(struct str *text, const char *more)
{
    assert(more);
    str_add_bytes(text, more, strlen(more));
}

void str_add_bytes(struct str *text, const void *bytes, size_t length)
{
    assert(bytes || length == 0);
    if (length == 0)
        return;
    str_reserve(text, length);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void str_add_char(struct str *text, char c)
{
    str_add_bytes(text, &c, 1);
}

void str_addf(struct str *text, const char *format, ...)
{
    assert(text && format);
    va_list arguments;
    va_start(arguments, format);
    str_vaddf(text, format, arguments);
    va_end(arguments);
}

void str_vaddf(struct str *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    /* Measured first: vsnprintf() walks the arguments, so the second call needs a copy. */
    int length = vsnprintf(NULL, 0, format, arguments);
    assert(length >= 0 && "a text must be formattable");
    str_reserve(text, (size_t)length);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
    va_end(again);
    text->length += (size_t)length;
}

char *str_take(struct str *text)
{
    assert(text && (text->capacity == 0 || text->bytes[text->length] == '\0'));
    char *bytes = text->capacity ? text->bytes : xstrdup("");
    *text = STR_EMPTY;
    return bytes;
}

bool text_starts_with(const char *text, const char *prefix)
{
    assert(text && prefix);
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool text_ends_with(const char *text, const char *suffix)
{
    assert(text && suffix);
    size_t length = strlen(text), suffix_length = strlen(suffix);
    return length >= suffix_length && strcmp(text + length - suffix_length, suffix) == 0;
}

size_t text_columns(const char *text)
{
    size_t ascii = 0;
    while (text[ascii] >= 0x20 && text[ascii] < 0x7F)
        ascii++;
    if (text[ascii] == '\0')
        return ascii;
    /* wcwidth() knows only the characters of the thread's locale. */
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
    size_t columns = columns_in_locale(text);
    if (utf8) {
        uselocale(before);
        freelocale(utf8);
    }
    return columns;
}

void str_add_number(struct str *text, double value)
{
    assert(isfinite(value) && "the formats know no nan and no infinity");
    if (value == 0) {
        str_add_char(text, '0'); /* minus zero too: it reads back equal */
        return;
    }
    char number[NUMBER_TEXT_SIZE];
    locale_t before = uselocale(number_locale());
    shortest_text(value, number);
    uselocale(before);
    str_add(text, number);
}

bool text_to_double(const char *text, double *ret)
{
    assert(text && ret);
    if (!is_decimal(text))
        return false;
    double value = strtod_l(text, NULL, number_locale());
    if (!isfinite(value))
        return false;
    *ret = value;
    return true;
}

bool text_to_int(const char *text, long long minimum, long long maximum, long long *ret)
{
    assert(text && ret && minimum <= maximum);
    const char *digits = skip_sign(text);
    const char *end = skip_digits(digits);
    if (end == digits || *end)
        return false;
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno == ERANGE || value < minimum || value > maximum)
        return false;
    *ret = value;
    return true;
}

bool text_take_int(const char **text, long long maximum, long long *ret)
{
    assert(text && *text && ret && maximum >= 0);
    const char *end = skip_digits(*text);
    if (end == *text)
        return false;
    errno = 0;
    long long value = strtoll(*text, NULL, 10);
    if (errno == ERANGE || value > maximum)
        return false;
    *text = end;
    *ret = value;
    return true;
}
