/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing arrays, the map and the arena.
 */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"

struct item {
    int number;
    char text[20];
};

static void test_vec(void **state)
{
    (void)state;
    VEC(struct item) items = {0};
    for (int i = 0; i < 1000; i++) {
        struct item *item = vec_push(&items);
        assert_int_equal(item->number, 0);
        assert_int_equal(item->text[19], 0);
        memset(item, 0xEE, sizeof *item);
        item->number = i;
    }
    assert_int_equal(items.count, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(items.data[i].number, i);
    vec_clear(&items);
    assert_int_equal(items.count, 0);
    assert_int_equal(vec_push(&items)->number, 0); /* zeroed though used before */
    vec_add(&items, (struct item){.number = 9});
    assert_int_equal(items.data[1].number, 9);
    vec_done(&items);
    assert_null(items.data);
    assert_int_equal(items.count, 0);
    vec_done(&items);
}

static void test_map_empty(void **state)
{
    (void)state;
    CLEANUP(map_done) struct map map = {0};
    assert_null(map_get(&map, "a"));
    assert_int_equal(map_find(&map, ""), -1);
}

static void test_map_order_and_replace(void **state)
{
    (void)state;
    CLEANUP(map_done) struct map map = {0};
    int values[3];
    char key[] = "ranker";
    assert_int_equal(map_put(&map, key, &values[0]), 0);
    key[0] = 'X'; /* the key was copied */
    assert_int_equal(map_put(&map, "", &values[1]), 1);
    assert_int_equal(map_put(&map, "ranker", &values[2]), 0);
    assert_int_equal(map.count, 2);
    assert_ptr_equal(map_get(&map, "ranker"), &values[2]);
    assert_ptr_equal(map_get(&map, ""), &values[1]);
    assert_string_equal(map.entries[0].key, "ranker");
    assert_int_equal(map_put(&map, "null", NULL), 2);
    assert_null(map_get(&map, "null"));
    assert_int_equal(map_find(&map, "null"), 2);
}

/* Against a plain list searched from its start. */
static void test_map_random(void **state)
{
    (void)state;
    enum { KEY_COUNT = 600, STEPS = 5000 };
    CLEANUP(map_done) struct map map = {0};
    ptrdiff_t position[KEY_COUNT];
    size_t known = 0;
    for (int i = 0; i < KEY_COUNT; i++)
        position[i] = -1;
    struct rng rng = rng_seed(7);
    for (int step = 0; step < STEPS; step++) {
        uint64_t number = rng_below(&rng, KEY_COUNT);
        char key[32];
        snprintf(key, sizeof key, "service-%llu", (unsigned long long)number);
        assert_int_equal(map_find(&map, key), position[number]);
        if (position[number] < 0)
            position[number] = (ptrdiff_t)known++;
        assert_int_equal(map_put(&map, key, &position[number]), position[number]);
        assert_ptr_equal(map_get(&map, key), &position[number]);
        assert_int_equal(map.count, known);
        assert_string_equal(map.entries[position[number]].key, key);
    }
}

static void test_arena(void **state)
{
    (void)state;
    CLEANUP(arena_done) struct arena arena = {0};
    struct rng rng = rng_seed(3);
    unsigned char *blocks[2000];
    size_t sizes[2000];
    for (int i = 0; i < 2000; i++) {
        sizes[i] = i % 97 == 0 ? rng_below(&rng, 100000) : rng_below(&rng, 200);
        blocks[i] = arena_alloc(&arena, sizes[i], 1);
        assert_int_equal((uintptr_t)blocks[i] % alignof(max_align_t), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], i & 0xFF, sizes[i]);
    }
    for (int i = 0; i < 2000; i++) /* nobody wrote over anybody */
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(blocks[i][k], i & 0xFF);
    assert_true(arena.total_bytes > 0);
}

/* Large pieces between small ones must not throw away the newest block. */
static void test_arena_wastes_little(void **state)
{
    (void)state;
    CLEANUP(arena_done) struct arena arena = {0};
    size_t asked = 0;
    for (int i = 0; i < 50; i++) {
        arena_alloc(&arena, 1, 64);
        arena_alloc(&arena, 600000, 1);
        asked += 64 + 600000;
    }
    assert_true(arena.total_bytes < asked + asked / 5);
}

static void test_arena_text(void **state)
{
    (void)state;
    struct arena arena = {0};
    assert_string_equal(arena_strdup(&arena, "abc"), "abc");
    assert_string_equal(arena_strndup(&arena, "abcdef", 2), "ab");
    assert_string_equal(arena_strndup(&arena, "ab", 9), "ab");
    assert_string_equal(arena_printf(&arena, "%s@%d", "3g.20gb", 4), "3g.20gb@4");
    char long_text[10000];
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    assert_string_equal(arena_printf(&arena, "%s", long_text), long_text);
    assert_ptr_not_equal(arena_alloc(&arena, 0, 8), arena_alloc(&arena, 0, 8));
    arena_done(&arena);
    assert_null(arena.blocks);
    assert_int_equal(arena.total_bytes, 0);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vec),
        cmocka_unit_test(test_map_empty),
        cmocka_unit_test(test_map_order_and_replace),
        cmocka_unit_test(test_map_random),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_wastes_little),
        cmocka_unit_test(test_arena_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
