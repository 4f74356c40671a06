/* SPDX-License-Identifier: Apache-2.0
 *
 * mig-parted's config format: reading, complaints with their place, writing, and reading back
 * what was written.
 */
#include "support.h"

static int parse(const char *text, struct mig_config_file *file, struct error *err)
{
    return mig_config_parse("config.yaml", text, strlen(text), file, err);
}

static void test_read(void **state)
{
    static const char text[] = "version: v1\n"
                               "mig-configs:\n"
                               "  off:\n"
                               "    - devices: all\n"
                               "      mig-enabled: false\n"
                               "  mixed:\n"
                               "    - device-filter: \"0x20B010DE\"\n"
                               "      devices: [0, 2]\n"
                               "      mig-enabled: true\n"
                               "      mig-devices:\n"
                               "        \"1c.3g.20gb\": 3\n"
                               "        1g.5gb+me: 1\n"
                               "        2g.10gb: 0\n"
                               "    - device-filter: [\"0x233010DE\", 0x233110DE]\n"
                               "      devices: all\n"
                               "      mig-enabled: true\n"
                               "      mig-devices: {}\n";
    struct mig_config_file file;
    const struct mig_config *config;
    struct error err;

    (void)state;
    assert_int_equal(parse(text, &file, &err), 0);
    assert_int_equal(file.configs.count, 2);
    assert_int_equal(mig_config_select(&file, "mixed", &config, &err), 0);
    assert_int_equal(config->entries.count, 2);
    const struct mig_config_entry *entry = &config->entries.data[0];
    assert_int_equal(entry->filters.data[0], 0x20B010DE);
    assert_false(entry->all);
    assert_int_equal(entry->devices.data[1], 2);
    assert_int_equal(entry->mig_devices.count, 2);
    assert_string_equal(entry->mig_devices.data[0].name, "1c.3g.20gb");
    assert_int_equal(entry->mig_devices.data[0].count, 3);
    assert_int_equal(entry->mig_devices.data[0].line, 11);
    assert_int_equal(config->entries.data[1].filters.count, 2);
    assert_true(config->entries.data[1].mig_enabled);
    assert_int_equal(mig_config_select(&file, "mixd", &config, &err), -E_INPUT);
    assert_has(err.text, "did you mean \"mixed\"");
    assert_int_equal(mig_config_select(&file, NULL, &config, &err), -E_INPUT);
    assert_has(err.text, "off, mixed");
    mig_config_file_done(&file);
}

static void test_complaints(void **state)
{
#define HEAD "version: v1\nmig-configs:\n  a:\n    - "
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"version: v2\nmig-configs: {}\n", "config.yaml:1:10: expected \"version: v1\""},
        {"mig-configs: {}\n", "expected \"version: v1\""},
        {"version: v1\n", "no mig-configs"},
        {"version: v1\nmig-configs: {}\nhooks: {}\n", "hooks"},
        {HEAD "mig-enabled: true\n", "config.yaml:4:7: the entry lacks devices"},
        {HEAD "devices: all\n", "the entry lacks mig-enabled"},
        {HEAD "devices: some\n      mig-enabled: true\n",
         "config.yaml:4:16: devices: expected all"},
        {HEAD "devices: [-1]\n      mig-enabled: true\n", "4:17: expected a GPU index"},
        {HEAD "devices: [0, 0]\n      mig-enabled: true\n", "GPU 0 is listed twice"},
        {HEAD "devices: all\n      mig-enabled: maybe\n", "5:20"},
        {HEAD "devices: all\n      mig-enabled: true\n      mig-devices: {1g: many}\n",
         "expected how many"},
        {HEAD "devices: all\n      mig-enabled: false\n      mig-devices: {1g: 1}\n",
         "mig-devices beside mig-enabled: false"},
        {HEAD "devices: all\n      mig-enabled: true\n      device-filter: A100\n",
         "is no PCI device id"},
        {HEAD "devices: all\n      mig-enable: true\n", "mig-enabled"},
        {"custom:\n  - devices: [0]\n    mig-enabled: false\n", "this is a fragment"},
        {"- 1\n", "a mig-parted config file"},
    };
    struct mig_config_file file;
    struct error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse(cases[i].text, &file, &err) != -E_INPUT)
            fail_msg("taken: %s", cases[i].text);
        assert_has(err.text, cases[i].message);
    }
}

static void test_config_map(void **state)
{
    static const char text[] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n"
                               "  config.yaml: |\n"
                               "    version: v1\n"
                               "    mig-configs:\n"
                               "      all-disabled:\n"
                               "        - devices: all\n"
                               "          mig-enabled: false\n";
    struct mig_config_file file;
    struct error err;

    (void)state;
    assert_int_equal(parse(text, &file, &err), 0);
    assert_string_equal(file.configs.data[0].name, "all-disabled");
    mig_config_file_done(&file);
}

static void test_written_is_read(void **state)
{
    static const char text[] = "version: v1\n"
                               "mig-configs:\n"
                               "  \"1 odd: name\":\n"
                               "  - device-filter: \"0x20B010DE\"\n"
                               "    devices: [0, 2]\n"
                               "    mig-enabled: true\n"
                               "    mig-devices:\n"
                               "      \"1c.3g.20gb\": 3\n"
                               "  - device-filter: [\"0x20B010DE\", \"0x233010DE\"]\n"
                               "    devices: all\n"
                               "    mig-enabled: false\n"
                               "    mig-devices: {}\n";
    CLEANUP(str_done) struct str written = STR_EMPTY;
    struct mig_config_file file;
    struct error err;

    (void)state;
    assert_int_equal(parse(text, &file, &err), 0);
    mig_config_format(&file, &written);
    assert_string_equal(written.bytes, text);
    mig_config_file_done(&file);
}

/* A user's file has this many configs. */
static void check_file(const char *folder, const char *name, size_t configs)
{
    struct mig_config_file file;
    struct error err;
    char path[512];

    snprintf(path, sizeof path, "%s/%s/%s", getenv("TRANCHE_SOURCE_ROOT"), folder, name);
    if (mig_config_read(path, &file, &err))
        fail_msg("%s", err.text);
    assert_int_equal(file.configs.count, configs);
    mig_config_file_done(&file);
}

static void test_files_of_users(void **state)
{
    static const char folder[] = "tests/gpu/data/mig-parted";

    (void)state;
    check_file(folder, "8_gpus.yaml", 1);
    check_file(folder, "8_gpus_on_node_of_2.yaml", 2);
    check_file(folder, "examples.yaml", 9);
    check_file(folder, "half_without_mig.yaml", 2);
    check_file(folder, "mixed_and_disabled.yaml", 2);
    check_file(folder, "sums_fit_placement_does_not.yaml", 3);
}

/* The long ones of NVIDIA's, where the shared data lies beside the source. */
static void test_long_files_of_users(void **state)
{
    static const char folder[] = "../shared/data/user-files/mig-parted";
    char path[512];

    (void)state;
    snprintf(path, sizeof path, "%s/%s", getenv("TRANCHE_SOURCE_ROOT"), folder);
    if (access(path, R_OK)) {
        print_message("# %s is not there\n", path);
        skip();
    }
    check_file(folder, "nvidia_config-default.yaml", 81);
    check_file(folder, "nvidia_dgx-station-80gb-config.yaml", 9);
    check_file(folder, "gpu-operator_default-mig-parted-config_configmap.yaml", 81);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),           cmocka_unit_test(test_complaints),
        cmocka_unit_test(test_config_map),     cmocka_unit_test(test_written_is_read),
        cmocka_unit_test(test_files_of_users), cmocka_unit_test(test_long_files_of_users),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
