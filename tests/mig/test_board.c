/* SPDX-License-Identifier: Apache-2.0
 *
 * The board table: what must hold of every row, the lookups, and equality with the facts
 * that it was written from.
 */
#include "support.h"

#include <jansson.h>

static const char *const engine_keys[MIG_ENGINE_COUNT] = {"decoders", "encoders", "jpeg",
                                                          "ofa"};

static void check_profile(const struct mig_board *board, int index)
{
    const struct mig_profile *profile = &board->profiles[index];
    int last = 31 - __builtin_clz(profile->starts);

    assert_int_equal(mig_profile_find(board, profile->name), index);
    assert_int_equal(mig_profile_find(board, profile->kind), index);
    assert_true(profile->placement_size > 0);
    assert_true(last + profile->placement_size <= board->memory_units);
    assert_in_range(profile->max_instances, 1, board->max_instances);
    assert_true(profile->max_instances <= __builtin_popcount(profile->starts));
    for (int e = 0; e < MIG_ENGINE_COUNT; e++) /* so that no sum is ever half known */
        assert_true(board->engine_limits[e] == MIG_UNKNOWN ||
                    profile->engines[e] != MIG_UNKNOWN);
    assert_true(!board->has_mig || profile->ci_profile_count > 0);
}

static void test_every_board(void **state)
{
    (void)state;
    assert_int_equal(mig_board_count(), 21);
    for (size_t i = 0; i < mig_board_count(); i++) {
        const struct mig_board *board = mig_board_at(i);

        assert_ptr_equal(mig_board_find(board->slug), board);
        assert_in_range(board->memory_units, 1, MIG_UNITS_MAX);
        assert_in_range(board->max_instances, 1, MIG_INSTANCES_MAX);
        assert_in_range(board->profile_count, 1, MIG_PROFILES_MAX);
        for (int j = 0; j < board->profile_count; j++)
            check_profile(board, j);
        for (int j = 0; j < board->pci_device_id_count; j++)
            assert_ptr_equal(mig_board_by_pci(board->pci_device_ids[j]), board);
    }
}

static void test_lookups(void **state)
{
    const struct mig_board *board = NULL;
    struct error err = {0};

    (void)state;
    assert_null(mig_board_find("a100"));
    assert_null(mig_board_by_pci(0x123410DE));
    assert_int_equal(mig_board_get("a100-80gb", &board, &err), 0);
    assert_string_equal(board->slug, "a100-80gb");
    assert_int_equal(mig_board_get("a100", &board, &err), -E_INPUT);
    assert_non_null(strstr(err.text, "did you mean a100-40gb or a100-80gb?"));
    assert_int_equal(mig_board_get("a100-4gb", &board, &err), -E_INPUT);
    assert_non_null(strstr(err.text, "did you mean a100-40gb?"));
    assert_int_equal(mig_board_get("", &board, &err), -E_INPUT);
    assert_non_null(strstr(err.text, "rtxpro6000-96gb"));
}

static void test_bare_kinds(void **state)
{
    static const struct {
        const char *board, *kind, *name; /* name NULL: the board has none */
    } cases[] = {
        {"a100-40gb", "1g", "1g.5gb"},
        {"a100-40gb", "1g+me", "1g.5gb+me"},
        {"a100-40gb", "1g*2", "1g.10gb"},
        {"a100-40gb", "7g", "7g.40gb"},
        {"a100-40gb", "5g", NULL},
        {"a100-40gb", "", NULL},
        {"a100-40gb", "1g.10gb", "1g.10gb"},
        {"a100-80gb", "1g", "1g.10gb"},
        {"a30-24gb", "2g+me", "2g.12gb+me"},
        {"a30-24gb", "3g", NULL},
        {"h100-80gb-sxm5", "3g", "3g.40gb"},
        {"b200-180gb", "4g", "4g.90gb"},
        {"rtxpro6000-96gb", "1g", "1g.24gb"},
        {"rtxpro6000-96gb", "1g-me", "1g.24gb-me"},
        {"rtxpro6000-96gb", "2g+me.all", "2g.48gb+me.all"},
        {"rtxpro6000-96gb", "4g+gfx", "4g.96gb+gfx"},
        {"rtxpro6000-96gb", "4g", "4g.96gb"},
        {"t4-16gb", "whole", "whole"},
        {"t4-16gb", "1g", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct mig_board *board = board_named(cases[i].board);
        struct error err = {0};
        int profile = mig_profile_find(board, cases[i].kind);

        if (cases[i].name) {
            assert_string_equal(board->profiles[profile].name, cases[i].name);
            continue;
        }
        assert_int_equal(profile, -1);
        assert_int_equal(mig_profile_get(board, cases[i].kind, &profile, &err), -E_INPUT);
        assert_non_null(strstr(err.text, board->profiles[0].name));
    }
}

static void test_universes(void **state)
{
    static const struct {
        const char *board, *universe;
        uint32_t mask;
    } cases[] = {
        {"a100-40gb", "base", 0x79},
        {"a100-40gb", "base+rev2", 0x7d},
        {"a100-40gb", "base+me", 0x7b},
        {"a100-40gb", "full", 0x7f},
        {"a30-24gb", "base+rev2", 0x15},
        {"rtxpro6000-96gb", "base", 0x221},
        {"rtxpro6000-96gb", "base+me", 0x223},
        {"rtxpro6000-96gb", "full", 0x7ff},
        {"v100-16gb", "base", 1},
    };
    struct error err = {0};
    uint32_t mask = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            mig_universe_get(board_named(cases[i].board), cases[i].universe, &mask, &err), 0);
        assert_int_equal(mask, cases[i].mask);
    }
    assert_int_equal(mig_universe_get(board_named("a100-40gb"), "me", &mask, &err), -E_USAGE);
    assert_non_null(strstr(err.text, "base+rev2"));
}

static json_t *facts_of(const char *slug)
{
    CLEANUP(str_done) struct str path = STR_EMPTY;
    json_t *facts;

    str_addf(&path, "%s/../shared/facts/boards/%s.json", getenv("TRANCHE_SOURCE_ROOT"), slug);
    facts = json_load_file(path.bytes, 0, NULL);
    if (!facts)
        fail_msg("cannot read %s", path.bytes);
    return facts;
}

/* A number of the facts; null is unknown. */
static int number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    assert_non_null(value);
    return json_is_null(value) ? MIG_UNKNOWN : (int)json_integer_value(value);
}

static void assert_text(const json_t *object, const char *key, const char *expected)
{
    assert_string_equal(json_string_value(json_object_get(object, key)), expected);
}

static void compare_ci(const struct mig_profile *profile, const json_t *rows)
{
    assert_int_equal(json_array_size(rows), profile->ci_profile_count);
    for (int i = 0; i < profile->ci_profile_count; i++) {
        const struct mig_ci_profile *ci = &profile->ci_profiles[i];
        const json_t *row = json_array_get(rows, (size_t)i);

        assert_int_equal(ci->compute_slices, number(row, "compute_slices"));
        assert_int_equal(ci->profile_id, number(row, "profile_id"));
        assert_int_equal(ci->max_in_gi, number(row, "max_in_gi"));
        assert_int_equal(ci->is_default, json_is_true(json_object_get(row, "default")));
    }
}

static void compare_profile(const struct mig_profile *profile, const json_t *facts)
{
    const json_t *start;
    size_t i;
    uint32_t starts = 0;

    assert_text(facts, "name", profile->name);
    assert_text(facts, "kind", profile->kind);
    assert_text(facts, "group", mig_group_name(profile->group));
    assert_int_equal(profile->nvml_enum, number(facts, "nvml_enum"));
    assert_int_equal(profile->profile_id, number(facts, "profile_id"));
    assert_int_equal(profile->compute_slices, number(facts, "compute_slices"));
    assert_int_equal(profile->memory_units, number(facts, "memory_units"));
    assert_int_equal(profile->placement_size, number(facts, "placement_size"));
    assert_int_equal(profile->max_instances, number(facts, "max_instances"));
    assert_int_equal(profile->sm, number(facts, "sm"));
    assert_int_equal(profile->copy_engines, number(facts, "copy_engines"));
    assert_int_equal(profile->memory_mib, number(facts, "memory_mib"));
    for (int e = 0; e < MIG_ENGINE_COUNT; e++)
        assert_int_equal(profile->engines[e], number(facts, engine_keys[e]));
    json_array_foreach(json_object_get(facts, "placement_starts"), i, start) starts |=
        1U << json_integer_value(start);
    assert_int_equal(profile->starts, starts);
}

static void compare_board(const struct mig_board *board, const json_t *facts)
{
    const json_t *profiles = json_object_get(facts, "profiles");
    const json_t *ci = json_object_get(facts, "compute_instance_profiles");
    const json_t *mode = json_object_get(facts, "mig_mode");
    const json_t *pci = json_object_get(facts, "pci_device_ids");

    assert_text(facts, "gpu", board->gpu);
    assert_text(facts, "arch", board->arch);
    assert_text(facts, "chip", board->chip);
    assert_int_equal(board->memory_units, number(facts, "memory_units"));
    assert_int_equal(board->compute_slices, number(facts, "compute_slices"));
    assert_int_equal(board->max_instances, number(facts, "max_gi"));
    for (int e = 0; e < MIG_ENGINE_COUNT; e++)
        assert_int_equal(board->engine_limits[e],
                         number(json_object_get(facts, "engine_limits"), engine_keys[e]));
    assert_int_equal(board->mode_change_needs_reset,
                     json_is_true(json_object_get(mode, "mode_change_needs_gpu_reset")));
    assert_int_equal(board->mode_persists_reboot,
                     json_is_true(json_object_get(mode, "mode_persists_across_reboot")));
    assert_int_equal(board->pci_device_id_count, json_array_size(pci));
    for (int i = 0; i < board->pci_device_id_count; i++)
        assert_int_equal(board->pci_device_ids[i],
                         strtoul(json_string_value(json_array_get(pci, (size_t)i)), NULL, 16));
    assert_int_equal(board->profile_count, json_array_size(profiles));
    for (int i = 0; i < board->profile_count; i++) {
        compare_profile(&board->profiles[i], json_array_get(profiles, (size_t)i));
        compare_ci(&board->profiles[i], json_object_get(ci, board->profiles[i].name));
    }
}

static void test_table_equals_facts(void **state)
{
    json_t *index;
    const char *slug;
    json_t *entry;
    CLEANUP(str_done) struct str path = STR_EMPTY;
    size_t with_mig = 0;

    (void)state;
    str_addf(&path, "%s/../shared/facts/boards/index.json", getenv("TRANCHE_SOURCE_ROOT"));
    index = json_load_file(path.bytes, 0, NULL);
    if (!index) {
        print_message("# skipped: no ../shared/facts to compare with\n");
        str_done(&path); /* skip() does not come back */
        skip();
    }
    json_object_foreach(index, slug, entry)
    {
        json_t *facts = facts_of(slug);

        compare_board(board_named(slug), facts);
        json_decref(facts);
    }
    for (size_t i = 0; i < mig_board_count(); i++)
        with_mig += mig_board_at(i)->has_mig;
    assert_int_equal(with_mig, json_object_size(index));
    json_decref(index);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_board),        cmocka_unit_test(test_lookups),
        cmocka_unit_test(test_bare_kinds),         cmocka_unit_test(test_universes),
        cmocka_unit_test(test_table_equals_facts),
    };

    return cmocka_run_group_tests_name("mig/board", tests, NULL, NULL);
}
