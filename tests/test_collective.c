/* Collectives: published byte counts, closed forms, measured times, and the choice of algorithm. */
#include "sim/device/cost.h"
#include "tests/support.h"

/* Eight H100 of a node: 450 GB/s each direction, NVSwitch; 50 GB/s to other nodes. */
static plm_machine machine(double link_eff, double alpha, double one_shot)
{
    plm_device d = {.bandwidth_bytes_s = 3352e9, .link_bytes_s = 450e9, .link_switched = true,
                    .pcie_bytes_s = 63e9, .net_bytes_s = 50e9, .net_latency_s = 5e-6,
                    .node_devices = 8};
    plm_profile p = {.link_eff = link_eff, .link_latency_s = alpha, .link_one_shot_bytes = one_shot};
    plm_machine m;
    plm_error err = {0};
    d.peak_flop_s[PLM_MATH_BF16] = 989e12;
    strcpy(d.target, "sm_90");
    assert_ok(plm_machine_bind(&d, &p, &m, &err), err);
    return m;
}

/* hw_facts e.3: S = 65536; at 1 byte/s and no latency seconds are bytes. */
static void bytes_match_published_vectors(void **state)
{
    (void)state;
    assert_close(plm_one_shot_s(2, 65536, 0, 1), 65536, 0, 0);
    assert_close(plm_one_shot_s(4, 65536, 0, 1), 196608, 0, 0);
    assert_close(plm_one_shot_s(8, 65536, 0, 1), 458752, 0, 0);
    assert_close(plm_two_shot_s(2, 65536, 0, 1), 65536, 0, 0);
    assert_close(plm_two_shot_s(4, 65536, 0, 1), 98304, 0, 0);
    assert_close(plm_two_shot_s(8, 65536, 0, 1), 114688, 0, 0);
}

/* H100 x 8, 512 MiB in 2111.06 us: algorithm 254.3 GB/s, bus 445.0 = 254.3 * 2 (n - 1) / n. */
static void bus_bandwidth_is_the_ring_s(void **state)
{
    (void)state;
    double s = plm_ring_all_reduce_s(8, 536870912, 0, 445.0e9);
    assert_close(s, 2111.06e-6, 1e-3, 0);
    assert_close(536870912 / s, 254.3e9, 1e-3, 0);
}

static void formulas_have_their_latencies(void **state)
{
    (void)state;
    assert_close(plm_ring_all_reduce_s(8, 800, 3, 100), 2 * 7 * 3 + 2 * 7.0 / 8 * 8, 1e-15, 0);
    assert_close(plm_tree_all_reduce_s(8, 800, 3, 100), 2 * 3 * 3 + 2 * 8, 1e-15, 0);
    assert_close(plm_one_shot_s(8, 800, 3, 100), 3 + 7 * 8, 1e-15, 0);
    assert_close(plm_two_shot_s(8, 800, 3, 100), 2 * 3 + 2 * 7.0 / 8 * 8, 1e-15, 0);
    assert_close(plm_all_gather_s(8, 800, 3, 100), 7 * 3 + 7.0 / 8 * 8, 1e-15, 0);
    assert_close(plm_nvls_all_reduce_s(8, 800, 0, 100), 9.0 / 8 * 8, 1e-15, 0);
    assert_close(plm_ring_all_reduce_s(1, 800, 3, 100), 0, 0, 0);
}

static void the_least_algorithm_is_chosen(void **state)
{
    plm_machine m = machine(1, 2e-6, 262144);
    double small = plm_link_s(&m, PLM_LINK_ALL_REDUCE, 8, 1, 16384);
    (void)state;
    assert_close(small, plm_one_shot_s(8, 16384, 2e-6, 450e9), 1e-12, 0);
    double middle = plm_link_s(&m, PLM_LINK_ALL_REDUCE, 8, 1, 1048576);
    assert_close(middle, plm_two_shot_s(8, 1048576, 2e-6, 450e9), 1e-12, 0);
    /* In the switch at large sizes: a share of (n + 1) / n at 0.81 of the rate. */
    double large = plm_link_s(&m, PLM_LINK_ALL_REDUCE, 8, 1, 1e9);
    assert_close(large, 24e-6 + 1.125e9 / (450e9 * 0.81), 1e-9, 0);
    m.nvls = false;
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 8, 1, 1e9),
                 plm_ring_all_reduce_s(8, 1e9, 2e-6, 450e9), 1e-12, 0);
    /* Two ranks have nothing to gain from the switch. */
    m = machine(1, 2e-6, 0);
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 2, 1, 1e9),
                 plm_ring_all_reduce_s(2, 1e9, 2e-6, 450e9), 1e-12, 0);
}

/* Measured, hw_facts e.4: 64 MiB and more by NCCL on 8 H100 and on 8 A100 (300 GB/s, no NVLS), and a
** one-shot kernel. Link efficiency 0.8 is what NCCL's rings reach (361 of 450, 234 of 300). */
static void measured_times_are_met(void **state)
{
    plm_machine m = machine(0.8, 2.5e-6, 524288);
    (void)state;
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 8, 1, 536870912.0), 2111e-6, 0.05, 0);
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 8, 1, 67108864.0), 325e-6, 0.15, 0);
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 8, 1, 65536), 4.8e-6, 0.25, 0);
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 2, 1, 65536), 3.0e-6, 0.25, 0);
    assert_close(plm_link_s(&m, PLM_LINK_ALL_GATHER, 8, 1, 67108864.0), 208e-6, 0.15, 0);
    m.nvls = false;
    m.dev.link_bytes_s = 300e9;
    m.prof.link_eff = 0.75;
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 8, 1, 536870912.0), 4226e-6, 0.05, 0);
}

/* TH-11 (gpt-fast issue 111): 29 tok/s on one V100; on two, half the time and 2 all-reduces in each of
** 32 layers of 500 us leave at most 20.31 tok/s. */
static void slow_links_make_two_devices_slower_than_one(void **state)
{
    plm_machine m = machine(1, 500e-6, 1e6);
    (void)state;
    double s = 1.0 / 29 / 2 + 2 * 32 * plm_link_s(&m, PLM_LINK_ALL_REDUCE, 2, 1, 8192);
    assert_close(1.0 / s, 20.31, 0.001, 0);
    assert_true(1.0 / s < 29);
}

static void groups_over_nodes_are_layered(void **state)
{
    plm_machine m = machine(1, 2e-6, 0);
    double s = 1e9;
    (void)state;
    double want = 2 * plm_all_gather_s(8, s, 2e-6, 450e9) +
                  plm_ring_all_reduce_s(2, s / 8, 5e-6, 50e9);
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 16, 2, s), want, 1e-12, 0);
    /* Busy links do less in the same time: more nodes, more time. */
    assert_true(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 32, 4, s) > want);
    assert_close(plm_link_s(&m, PLM_LINK_SEND, 2, 2, 1e6), 5e-6 + 1e6 / 50e9, 1e-12, 0);
    assert_close(plm_link_s(&m, PLM_LINK_SEND, 2, 1, 1e6), 2e-6 + 1e6 / 450e9, 1e-12, 0);
    /* Half of what 16 ranks exchange leaves the node; the rest goes on beside it. */
    assert_close(plm_link_s(&m, PLM_LINK_ALL_TO_ALL, 16, 2, 1e6), 5e-6 + 0.5e6 / 50e9, 1e-12, 0);
    assert_close(plm_link_s(&m, PLM_LINK_ALL_TO_ALL, 8, 1, 1e6), 2e-6 + 7.0 / 8 * 1e6 / 450e9,
                 1e-12, 0);
    assert_close(plm_link_s(&m, PLM_LINK_ALL_GATHER, 16, 2, 1e9),
                 plm_all_gather_s(2, 1e9 / 8, 5e-6, 50e9) + plm_all_gather_s(8, 1e9, 2e-6, 450e9),
                 1e-12, 0);
}

/* MI300X: 448 GB/s over 7 links, one to each peer. */
static void a_mesh_gives_a_pair_one_link(void **state)
{
    plm_machine m = machine(1, 0, 0);
    (void)state;
    m.dev.link_switched = false;
    m.nvls = false;
    m.mesh = true;
    m.dev.link_bytes_s = 448e9;
    assert_close(plm_link_s(&m, PLM_LINK_SEND, 2, 1, 64e9), 1.0, 1e-12, 0);
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 8, 1, 448e9), 1.75, 1e-12, 0);
}

/* A bridge joins two; four of them meet over PCIe. A record without links is still finite. */
static void bridges_and_unknown_links(void **state)
{
    plm_machine m = machine(1, 0, 0);
    (void)state;
    m.nvls = false;
    m.dev.link_group = 2;
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 2, 1, 450e9), 1.0, 1e-12, 0);
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 4, 1, 63e9), 1.5, 1e-12, 0);
    m.dev.link_bytes_s = m.dev.pcie_bytes_s = m.dev.net_bytes_s = 0;
    double s = plm_link_s(&m, PLM_LINK_ALL_REDUCE, 16, 2, 1e6);
    assert_true(s > 0 && isfinite(s));
    assert_close(plm_link_s(&m, PLM_LINK_ALL_REDUCE, 1, 1, 1e6), 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_match_published_vectors),
        cmocka_unit_test(bus_bandwidth_is_the_ring_s),
        cmocka_unit_test(formulas_have_their_latencies),
        cmocka_unit_test(the_least_algorithm_is_chosen),
        cmocka_unit_test(measured_times_are_met),
        cmocka_unit_test(slow_links_make_two_devices_slower_than_one),
        cmocka_unit_test(groups_over_nodes_are_layered),
        cmocka_unit_test(a_mesh_gives_a_pair_one_link),
        cmocka_unit_test(bridges_and_unknown_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
