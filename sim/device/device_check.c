/* device_check.c - physics of a device record, and the rate of an arithmetic the device lacks. */
#include <stdio.h>
#include <string.h>

#include "sim/device/device.h"

#define GIB 1073741824.0
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* What memory of a kind can be. sweep: seconds to read all of it once; a bandwidth or capacity off
** by 8 (bits for bytes) or by 1000 leaves these bounds. They hold every part of the catalog with
** room to spare: HBM 5.8 ms (8 GB, four stacks) to 46 ms, GDDR 14 to 86 ms, LPDDR and DDR 170 to
** 670 ms. The first row whose text occurs in the memory type applies. */
static const struct {
    const char *type;
    double max_bytes, min_bytes_s, max_bytes_s, min_sweep_s, max_sweep_s;
} memories[] = {
    {"SRAM", 64e9, 1e12, 3e16, 1e-7, 1e-1},
    {"HBM", 600e9, 400e9, 40e12, 0.004, 0.070},
    {"GDDR", 130 * GIB, 40e9, 2.5e12, 0.009, 0.110},
    {"LPDDR", 1100 * GIB, 8e9, 1.6e12, 0.030, 1.2},
    {"DDR", 16384 * GIB, 8e9, 2.5e12, 0.030, 60},
    {"", 16384 * GIB, 1e9, 3e16, 1e-7, 60},
};

/* Dense FLOP a clock of one core with 16-bit input (tensor units at full rate, else packed vector),
** and fp32 vector FLOP. NVIDIA: hardware whitepapers, as collected in the identity peak = SM x
** clock x rate. AMD: CDNA and RDNA instruction rates. The first prefix of the target applies. */
static const struct {
    const char *target;
    double half, single;
} rates[] = {
    {"sm_60", 256, 128},    {"sm_61", 256, 256},    {"sm_70", 1024, 128},  {"sm_75", 1024, 128},
    {"sm_80", 2048, 128},   {"sm_86", 1024, 256},   {"sm_87", 1024, 256},  {"sm_89", 1024, 256},
    {"sm_90", 4096, 256},   {"sm_100", 8192, 256},  {"sm_103", 8192, 256}, {"sm_110", 8192, 256},
    {"sm_120", 1024, 256},  {"sm_121", 1024, 256},  {"gfx803", 128, 128},  {"gfx906", 256, 128},
    {"gfx908", 1024, 128},  {"gfx90a", 1024, 128},  {"gfx942", 2048, 256}, {"gfx950", 4096, 256},
    {"gfx103", 256, 128},   {"gfx110", 512, 256},   {"gfx115", 512, 256},  {"gfx120", 1024, 256},
};

/* Greatest dense rate of each arithmetic as a multiple of the 16-bit rate; twice that would be a
** sparse figure. Exceptions by architecture, all from vendor sheets: Blackwell Ultra has fp4 units
** beyond 2 x fp8, Rubin fp8 and fp4 beyond 2 x and 4 x, Groq's TSP int8 at 4 x fp16. */
static const struct {
    plm_math math;
    double multiple;
} multiples[] = {
    {PLM_MATH_TF32, 1},     {PLM_MATH_F16, 1}, {PLM_MATH_BF16, 1}, {PLM_MATH_F16_ACC16, 1},
    {PLM_MATH_F8_ACC16, 2}, {PLM_MATH_F8, 2},  {PLM_MATH_I8, 2},   {PLM_MATH_F6, 4},
    {PLM_MATH_F4, 4},       {PLM_MATH_I4, 4},
};
static const struct {
    const char *arch;
    plm_math math;
    double multiple;
} exceptions[] = {
    {"Blackwell Ultra", PLM_MATH_F4, 6.3}, {"Rubin", PLM_MATH_F8, 4.4}, {"Rubin", PLM_MATH_F6, 4.4},
    {"Rubin", PLM_MATH_F4, 8.8},           {"TSP", PLM_MATH_I8, 4},
};

static const char *const math_names[PLM_MATH_COUNT] = {
#define MATH_NAME(id, name) [PLM_MATH_##id] = name,
    PLM_MATH_MAP(MATH_NAME)
#undef MATH_NAME
};

/* A known figure outside [lo, hi]. */
static plm_status bound(const plm_device *d, const char *name, double v, double lo, double hi,
                        const char *unit, double scale, plm_error *err)
{
    if (v == 0 || (v >= lo && v <= hi))
        return PLM_OK;
    return plm_fail(err, PLM_E_INVALID,
                    "impossible %s, device %s: %.6g %s is not within %.6g to %.6g; check value and "
                    "unit in its record",
                    name, d->id, v / scale, unit, lo / scale, hi / scale);
}

static plm_status check_memory(const plm_device *d, plm_error *err)
{
    size_t i = 0;
    while (strstr(d->memory_type, memories[i].type) == NULL)
        i++;
    double lo = memories[i].min_bytes_s, hi = memories[i].max_bytes_s;
    PLM_TRY(bound(d, "bandwidth", d->bandwidth_bytes_s, lo, hi, "GB/s", 1e9, err));
    PLM_TRY(bound(d, "capacity", d->memory_bytes, 1e8, memories[i].max_bytes, "GB", 1e9, err));
    if (d->memory_bytes > 0 && d->bandwidth_bytes_s > 0)
        PLM_TRY(bound(d, "capacity over bandwidth", d->memory_bytes / d->bandwidth_bytes_s,
                      memories[i].min_sweep_s, memories[i].max_sweep_s, "ms", 1e-3, err));
    if (d->memory_limit_bytes > d->memory_bytes)
        return plm_fail(err, PLM_E_INVALID,
                        "impossible GPU limit, device %s: above the capacity; correct it", d->id);
    return PLM_OK;
}

static double allowed_multiple(const plm_device *d, plm_math math, double usual)
{
    for (size_t i = 0; i < COUNT(exceptions); i++)
        if (exceptions[i].math == math && strstr(d->arch, exceptions[i].arch) != NULL)
            return exceptions[i].multiple;
    return usual;
}

/* The 16-bit rate of the device, 0 = unknown. */
static double half_rate(const plm_device *d)
{
    double r = d->peak_flop_s[PLM_MATH_F16];
    r = d->peak_flop_s[PLM_MATH_BF16] > r ? d->peak_flop_s[PLM_MATH_BF16] : r;
    return d->peak_flop_s[PLM_MATH_F16_ACC16] > r ? d->peak_flop_s[PLM_MATH_F16_ACC16] : r;
}

/* No peak above what the cores can do in a clock; where cores or clock are unknown, no peak beyond
** its multiple of the 16-bit one. 1 % for rounding in data sheets; 15 % for fp32, which some sheets
** quote at a higher clock than the tensor peaks. DP4A parts are compared with 4 x fp32. */
static plm_status check_peaks(const plm_device *d, plm_error *err)
{
    size_t i = 0;
    while (i < COUNT(rates) && strncmp(d->target, rates[i].target, strlen(rates[i].target)) != 0)
        i++;
    double clocks = i < COUNT(rates) ? d->sm_count * d->clock_hz : 0;
    double half = clocks > 0 ? clocks * rates[i].half * 1.01 : half_rate(d) * 1.05;
    double single = clocks > 0 ? clocks * rates[i].single * 1.15 : 0;
    if (single > 0)
        PLM_TRY(bound(d, "fp32 peak", d->peak_flop_s[PLM_MATH_F32], 0, single, "TFLOP/s", 1e12,
                      err));
    for (size_t k = 0; k < COUNT(multiples); k++) {
        plm_math math = multiples[k].math;
        double top = half * allowed_multiple(d, math, multiples[k].multiple);
        if (math == PLM_MATH_I8 && top < 4.05 * d->vector_flop_s)
            top = 4.05 * d->vector_flop_s;
        char name[48];
        snprintf(name, sizeof name, "%s peak (sparse?)", math_names[math]);
        if (half > 0)
            PLM_TRY(bound(d, name, d->peak_flop_s[math], 0, top, "TFLOP/s", 1e12, err));
    }
    for (int m = 0; m < PLM_MATH_COUNT; m++)
        PLM_TRY(bound(d, math_names[m], d->peak_flop_s[m], 1e9, 1e17, "TFLOP/s", 1e12, err));
    return PLM_OK;
}

/* Narrower numbers are never slower, where both rates are of tensor units. */
static plm_status check_order(const plm_device *d, plm_error *err)
{
    static const plm_math order[][2] = {{PLM_MATH_F16, PLM_MATH_F8}, {PLM_MATH_BF16, PLM_MATH_F8},
                                        {PLM_MATH_F8, PLM_MATH_F6},  {PLM_MATH_F6, PLM_MATH_F4},
                                        {PLM_MATH_F8, PLM_MATH_F4},  {PLM_MATH_TF32, PLM_MATH_F16},
                                        {PLM_MATH_F16, PLM_MATH_F16_ACC16}};
    for (size_t i = 0; i < COUNT(order); i++) {
        double wide = d->peak_flop_s[order[i][0]], narrow = d->peak_flop_s[order[i][1]];
        if (wide > 0 && narrow > 0 && narrow < 0.99 * wide)
            return plm_fail(
                err, PLM_E_INVALID,
                "impossible peaks, device %s: %s is below %s; check for a sparse figure "
                "or a swapped one",
                d->id, math_names[order[i][1]], math_names[order[i][0]]);
    }
    return PLM_OK;
}

/* Links: greatest rate each direction of a generation, from the vendors: NVLink 2 to 6 150, 300,
** 450, 900, 1800 GB/s; PCIe x16 gen 3 to 7 15.75, 31.5, 63, 121, 242; xGMI 538. */
static plm_status check_links(const plm_device *d, plm_error *err)
{
    static const struct {
        const char *type;
        double max_bytes_s;
    } links[] = {{"NVLink2", 150e9},  {"NVLink3", 300e9}, {"NVLink4", 450e9}, {"NVLink5", 900e9},
                 {"NVLink6", 1800e9}, {"NVLink-C2C", 900e9}, {"UALink", 2000e9},
                 {"xGMI", 600e9},     {"PCIe1", 4e9},     {"PCIe2", 8e9},     {"PCIe3", 16e9},
                 {"PCIe4", 32e9},     {"PCIe5", 64e9},    {"PCIe6", 121e9},   {"PCIe", 242e9},
                 {"on-wafer", 3e16},  {"", 2000e9}};
    size_t i = 0;
    while (strstr(d->link_type, links[i].type) == NULL)
        i++;
    PLM_TRY(bound(d, "link", d->link_bytes_s, 1e8, links[i].max_bytes_s, "GB/s", 1e9, err));
    PLM_TRY(bound(d, "link latency", d->link_latency_s, 1e-7, 1e-3, "us", 1e-6, err));
    /* 1.6 Tbit/s is 200 GB/s, the fastest NIC of a device; 400 would be bits taken for bytes. */
    PLM_TRY(bound(d, "network", d->net_bytes_s, 1e7, 201e9, "GB/s", 1e9, err));
    PLM_TRY(bound(d, "network latency", d->net_latency_s, 1e-7, 1e-2, "us", 1e-6, err));
    double host = strcmp(d->cls, "cpu") == 0 ? 1e12 : 242e9;
    return bound(d, "PCIe", d->pcie_bytes_s, 1e8, host, "GB/s", 1e9, err);
}

plm_status plm_device_check(const plm_device *d, plm_error *err)
{
    static const char *const classes[] = {"gpu", "apu", "cpu", "tpu", "asic"};
    size_t i = 0;
    while (i < COUNT(classes) && strcmp(d->cls, classes[i]) != 0)
        i++;
    if (i == COUNT(classes))
        return plm_fail(err, PLM_E_INVALID,
                        "bad class, device %s: \"%s\" is unknown; write gpu, apu, cpu, tpu or asic",
                        d->id, d->cls);
    PLM_TRY(bound(d, "clock", d->clock_hz, 3e8, 7e9, "GHz", 1e9, err));
    PLM_TRY(bound(d, "cores", d->sm_count, 1, 1e6, "cores", 1, err));
    PLM_TRY(check_memory(d, err));
    PLM_TRY(check_peaks(d, err));
    PLM_TRY(check_order(d, err));
    PLM_TRY(check_links(d, err));
    double half = half_rate(d);
    if (half > 0 && d->bandwidth_bytes_s > 0)
        PLM_TRY(bound(d, "ridge point", half / d->bandwidth_bytes_s, 0.05, 1500, "FLOP/byte", 1,
                      err));
    PLM_TRY(bound(d, "power", d->tdp_w, 2, 30000, "W", 1, err));
    PLM_TRY(bound(d, "L2", d->l2_bytes, 1e5, 1e9, "MB", 1e6, err));
    PLM_TRY(bound(d, "L3", d->l3_bytes, 1e5, 4e9, "MB", 1e6, err));
    if (d->smem_per_block_bytes > d->smem_per_sm_bytes)
        return plm_fail(err, PLM_E_INVALID,
                        "impossible shared memory, device %s: a block has more than the core; "
                        "correct it",
                        d->id);
    return bound(d, "devices of a node", d->node_devices, 1, 10000, "devices", 1, err);
}

/* Arithmetic the hardware can do in place of another, in order of preference; PLM_MATH_COUNT ends a
** row. The first with a rate counts, except that 16-bit products may also run on the fp32 vector
** units where packed fp16 is slower (Pascal). */
static const plm_math instead[PLM_MATH_COUNT][4] = {
    [PLM_MATH_F32] = {PLM_MATH_COUNT},
    [PLM_MATH_TF32] = {PLM_MATH_F32, PLM_MATH_COUNT},
    [PLM_MATH_F16] = {PLM_MATH_BF16, PLM_MATH_F16_ACC16, PLM_MATH_F32, PLM_MATH_COUNT},
    [PLM_MATH_BF16] = {PLM_MATH_F16, PLM_MATH_F16_ACC16, PLM_MATH_F32, PLM_MATH_COUNT},
    [PLM_MATH_F8] = {PLM_MATH_BF16, PLM_MATH_F16, PLM_MATH_F16_ACC16, PLM_MATH_COUNT},
    [PLM_MATH_I8] = {PLM_MATH_F16, PLM_MATH_BF16, PLM_MATH_F16_ACC16, PLM_MATH_COUNT},
    [PLM_MATH_F6] = {PLM_MATH_F8, PLM_MATH_F16, PLM_MATH_BF16, PLM_MATH_COUNT},
    [PLM_MATH_F4] = {PLM_MATH_F8, PLM_MATH_F16, PLM_MATH_BF16, PLM_MATH_COUNT},
    [PLM_MATH_I4] = {PLM_MATH_I8, PLM_MATH_F16, PLM_MATH_BF16, PLM_MATH_COUNT},
    [PLM_MATH_F64] = {PLM_MATH_COUNT},
    [PLM_MATH_F16_ACC16] = {PLM_MATH_F16, PLM_MATH_BF16, PLM_MATH_F32, PLM_MATH_COUNT},
    [PLM_MATH_F8_ACC16] = {PLM_MATH_F8, PLM_MATH_BF16, PLM_MATH_F16, PLM_MATH_COUNT},
};

double plm_device_peak(const plm_device *d, plm_math m)
{
    if (d->peak_flop_s[m] > 0 && m != PLM_MATH_F16_ACC16)
        return d->peak_flop_s[m];
    double rate = d->peak_flop_s[m];
    for (int i = 0; rate <= 0 && i < 4 && instead[m][i] != PLM_MATH_COUNT; i++)
        rate = d->peak_flop_s[instead[m][i]];
    bool vector_can = m != PLM_MATH_F64; /* fp64 is not made of fp32 */
    return vector_can && d->vector_flop_s > rate ? d->vector_flop_s : rate;
}
