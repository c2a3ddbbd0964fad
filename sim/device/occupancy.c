/* occupancy.c - how many blocks of a kernel one SM (CU, WGP) holds, and what limits them.
**
** NVIDIA: limits and rounding of cuda_occupancy.h, CUDA 13.0, with the largest shared-memory
** carve-out and one barrier a block. AMD: LLVM 19 (AMDGPUBaseInfo) register and LDS rules, whose
** answers for compiled kernels are the test vectors. Hardware terms: a wave is a warp; a workgroup
** a block; an AMD SIMD a quarter of a CDNA CU or of an RDNA work-group processor (WGP, two CUs).
*/
#include <limits.h>
#include <string.h>

#include "core/base/mem.h"
#include "sim/device/device.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int64_t round_up(int64_t x, int64_t to)
{
    return plm_ceil_div(x, to) * to;
}

/* The least of named limits; an earlier one wins a tie. */
typedef struct limit {
    const char *name;
    int64_t value;
} limit;

static limit least(const limit *l, size_t n)
{
    limit best = l[0];
    for (size_t i = 1; i < n; i++)
        if (l[i].value < best.value)
            best = l[i];
    return best;
}

static plm_status check_range(const char *what, int64_t v, int64_t lo, int64_t hi, plm_error *err)
{
    if (v >= lo && v <= hi)
        return PLM_OK;
    return plm_fail(err, PLM_E_INVALID, "bad %s, %lld: the hardware takes %lld to %lld; choose one "
                    "of these", what, (long long)v, (long long)lo, (long long)hi);
}

/* ---- NVIDIA ---- */
static const struct {
    int32_t cc, max_warps, max_blocks;
    int32_t shared_kib, granule, reserved; /* bytes set aside by the driver for each block */
    int32_t barriers_per_block_slot;
} nvidia[] = {
    {70, 64, 32, 96, 256, 0, 2},      {75, 32, 16, 64, 256, 0, 2},
    {80, 64, 32, 164, 128, 1024, 2},  {86, 48, 16, 100, 128, 1024, 1},
    {87, 48, 16, 164, 128, 1024, 1},  {89, 48, 24, 100, 128, 1024, 1},
    {90, 64, 32, 228, 128, 1024, 2},  {100, 64, 32, 228, 128, 1024, 2},
    {103, 64, 32, 228, 128, 1024, 2}, {110, 48, 24, 228, 128, 1024, 1},
    {120, 48, 24, 100, 128, 1024, 1}, {121, 48, 24, 100, 128, 1024, 1},
};
enum {
    NVIDIA_WARP = 32, NVIDIA_THREADS = 1024, NVIDIA_REGS = 65536, NVIDIA_REGS_THREAD = 255,
    NVIDIA_REG_UNIT = 256, /* registers of a warp are rounded up to this */
    NVIDIA_PARTS = 4       /* sub-partitions; a warp's registers lie in one */
};
#define SHARED_MAX ((int64_t)1 << 40)

plm_status plm_occupancy_nvidia(int32_t cc, int64_t threads, int64_t regs, int64_t smem_bytes,
                                plm_occupancy *out, plm_error *err)
{
    size_t row = 0;
    while (row < COUNT(nvidia) && nvidia[row].cc != cc)
        row++;
    if (row == COUNT(nvidia))
        return plm_fail(err, PLM_E_UNSUPPORTED,
                        "compute capability %d.%d, occupancy: no limits are known; known are 7.0, "
                        "7.5, 8.0, 8.6, 8.7, 8.9, 9.0, 10.0, 10.3, 11.0, 12.0, 12.1",
                        (int)(cc / 10), (int)(cc % 10));
    PLM_TRY(check_range("threads of a block", threads, 1, NVIDIA_THREADS, err));
    PLM_TRY(check_range("registers of a thread", regs, 0, NVIDIA_REGS_THREAD, err));
    PLM_TRY(check_range("shared memory of a block", smem_bytes, 0, SHARED_MAX, err));
    int64_t warps = plm_ceil_div(threads, NVIDIA_WARP);
    int64_t by_regs = INT32_MAX;
    if (regs > 0) {
        int64_t warp_regs = round_up(regs * NVIDIA_WARP, NVIDIA_REG_UNIT);
        int64_t per_part = NVIDIA_REGS / NVIDIA_PARTS / warp_regs;
        bool fits = warp_regs * round_up(warps, NVIDIA_PARTS) <= NVIDIA_REGS;
        by_regs = fits ? per_part * NVIDIA_PARTS / warps : 0;
    }
    int64_t block_bytes = round_up(smem_bytes + nvidia[row].reserved, nvidia[row].granule);
    int64_t by_shared = block_bytes > 0 ? nvidia[row].shared_kib * 1024 / block_bytes : INT32_MAX;
    const limit limits[] = {
        {"warps", nvidia[row].max_warps / warps},
        {"registers", by_regs},
        {"shared memory", by_shared},
        {"blocks", nvidia[row].max_blocks},
        {"barriers", nvidia[row].max_blocks * nvidia[row].barriers_per_block_slot},
    };
    limit l = least(limits, COUNT(limits));
    out->blocks_per_sm = (int32_t)l.value;
    out->warps_per_sm = (int32_t)(l.value * warps);
    out->max_warps = nvidia[row].max_warps;
    out->occupancy = (double)out->warps_per_sm / out->max_warps;
    out->limiter = l.name;
    return PLM_OK;
}

/* ---- AMD ---- */
/* file: vector registers of a lane and SIMD at that wave size; granule: their allocation unit.
** sgpr_extra: scalar registers a kernel has beside its own (VCC, flat scratch, XNACK); the compiler
** gives gfx90a kernels none that show up in its occupancy, gfx942 ones six.
** CDNA4's LDS granule is unpublished; 512 bytes, as before it, reproduces a published 32 KiB one.
 */
static const struct {
    const char *target; /* prefix; the first that matches applies */
    int32_t file32, granule32, file64, granule64;
    int32_t max_waves, simds;
    int64_t lds_bytes, lds_granule;
    int32_t sgpr_file, sgpr_extra; /* file 0 = scalar registers never limit */
} amd[] = {
    {"gfx90a", 0, 0, 512, 8, 8, 4, 65536, 512, 800, 0},
    {"gfx942", 0, 0, 512, 8, 8, 4, 65536, 512, 800, 6},
    {"gfx950", 0, 0, 512, 8, 8, 4, 163840, 512, 800, 6},
    {"gfx101", 1024, 8, 512, 4, 20, 4, 131072, 512, 0, 0},
    {"gfx103", 1024, 16, 512, 8, 16, 4, 131072, 512, 0, 0},
    {"gfx1102", 1024, 16, 512, 8, 16, 4, 131072, 512, 0, 0},
    {"gfx1103", 1024, 16, 512, 8, 16, 4, 131072, 512, 0, 0},
    {"gfx1100", 1536, 24, 768, 12, 16, 4, 131072, 512, 0, 0},
    {"gfx1101", 1536, 24, 768, 12, 16, 4, 131072, 512, 0, 0},
    {"gfx1151", 1536, 24, 768, 12, 16, 4, 131072, 512, 0, 0},
    {"gfx120", 1536, 24, 768, 12, 16, 4, 131072, 512, 0, 0},
};
enum {
    AMD_THREADS = 1024, AMD_VGPR = 256, AMD_SGPR = 106, AMD_SGPR_UNIT = 16,
    AMD_LDS_BLOCK_RDNA = 65536 /* a workgroup's share of the 128 KiB of a WGP */
};

/* Blocks and waves are those of a CU (CDNA) or of a WGP (RDNA); the limits are waves of a SIMD:
** warps = waves a SIMD x SIMDs, blocks = whole workgroups among them. wave 0 = the usual size, 64
** on CDNA and 32 on RDNA. agpr counts accumulation registers of the CDNA unified file. */
plm_status plm_occupancy_amd(const char *target, int32_t wave, int64_t threads, int64_t vgpr,
                             int64_t agpr, int64_t sgpr, int64_t lds_bytes, plm_occupancy *out,
                             plm_error *err)
{
    size_t row = 0;
    while (row < COUNT(amd) && strncmp(target, amd[row].target, strlen(amd[row].target)) != 0)
        row++;
    if (row == COUNT(amd))
        return plm_fail(err, PLM_E_UNSUPPORTED,
                        "target %.20s, occupancy: no limits are known; known are gfx90a, gfx942, "
                        "gfx950 and the RDNA ones gfx101x, gfx103x, gfx110x, gfx1151, gfx120x",
                        target);
    bool cdna = amd[row].file32 == 0;
    if (wave == 0)
        wave = cdna ? 64 : 32;
    if (wave != 64 && (wave != 32 || cdna))
        return plm_fail(err, PLM_E_INVALID, "bad wave size, %d: %s has %s; choose that", (int)wave,
                        target, cdna ? "64" : "32 and 64");
    PLM_TRY(check_range("threads of a workgroup", threads, 1, AMD_THREADS, err));
    PLM_TRY(check_range("vector registers", vgpr, 0, AMD_VGPR, err));
    PLM_TRY(check_range("accumulation registers", agpr, 0, cdna ? AMD_VGPR : 0, err));
    PLM_TRY(check_range("scalar registers", sgpr, 0, AMD_SGPR, err));
    PLM_TRY(check_range("LDS of a workgroup", lds_bytes, 0, SHARED_MAX, err));
    int64_t waves = plm_ceil_div(threads, wave);
    int64_t file = wave == 64 ? amd[row].file64 : amd[row].file32;
    int64_t granule = wave == 64 ? amd[row].granule64 : amd[row].granule32;
    int64_t used = round_up((agpr > 0 ? round_up(vgpr, 4) : vgpr) + agpr, granule);
    int64_t scalar = round_up(sgpr + amd[row].sgpr_extra, AMD_SGPR_UNIT);
    int64_t by_lds = INT32_MAX;
    if (lds_bytes > 0) {
        bool fits = cdna || lds_bytes <= AMD_LDS_BLOCK_RDNA;
        int64_t groups = amd[row].lds_bytes / round_up(lds_bytes, amd[row].lds_granule);
        by_lds = fits ? groups * waves / amd[row].simds : 0;
        if (fits && groups > 0 && by_lds == 0)
            by_lds = 1; /* a lone wave of a workgroup sits on one SIMD */
    }
    const limit limits[] = {
        {"warps", amd[row].max_waves},
        {"registers", used > 0 ? file / used : INT32_MAX},
        {"registers", amd[row].sgpr_file > 0 && sgpr > 0 ? amd[row].sgpr_file / scalar : INT32_MAX},
        {"shared memory", by_lds},
    };
    limit l = least(limits, COUNT(limits));
    out->warps_per_sm = (int32_t)(l.value * amd[row].simds);
    out->blocks_per_sm = (int32_t)(out->warps_per_sm / waves);
    out->max_warps = amd[row].max_waves * amd[row].simds;
    out->occupancy = (double)l.value / amd[row].max_waves;
    out->limiter = l.name;
    return PLM_OK;
}

plm_status plm_occupancy_device(const plm_device *d, int64_t threads, int64_t regs,
                                int64_t smem_bytes, plm_occupancy *out, plm_error *err)
{
    if (strncmp(d->target, "gfx", 3) == 0)
        return plm_occupancy_amd(d->target, 0, threads, regs, 0, 0, smem_bytes, out, err);
    int32_t cc = 0;
    bool digits = strncmp(d->target, "sm_", 3) == 0;
    for (const char *p = d->target + (digits ? 3 : 0);
         digits && *p >= '0' && *p <= '9' && cc < 1000; p++)
        cc = cc * 10 + (*p - '0');
    if (cc > 0)
        return plm_occupancy_nvidia(cc, threads, regs, smem_bytes, out, err);
    return plm_fail(
        err, PLM_E_UNSUPPORTED,
        "occupancy, device %s: its target \"%s\" has no known limits; name an NVIDIA or "
        "AMD GPU",
        d->id, d->target);
}

/* Little's law: bytes a clock and SM x latency in clocks. Volkov, EECS-2016-143. */
double plm_bytes_in_flight(double bandwidth_bytes_s, double sm, double clock_hz,
                           double latency_cycles)
{
    if (sm <= 0 || clock_hz <= 0)
        return 0;
    return bandwidth_bytes_s / (sm * clock_hz) * latency_cycles;
}
