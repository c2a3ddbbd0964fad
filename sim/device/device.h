/* device.h - the device record: physics of one accelerator, or CPU, as the catalog holds it. */
#ifndef PLM_SIM_DEVICE_H
#define PLM_SIM_DEVICE_H
#include <stdbool.h>

#include "core/base/catalog.h"
#include "core/ir/dtype.h"

typedef enum plm_basis { PLM_BASIS_UNKNOWN, PLM_BASIS_DATASHEET, PLM_BASIS_MEASURED, PLM_BASIS_INFERRED }
    plm_basis;

/* 0 = unknown for every number. Rates are of one device (one card, one APU, all sockets of a CPU
** record); peaks are dense. */
typedef struct plm_device {
    char id[64], name[96], vendor[24], cls[8], arch[48], target[64], memory_type[64];
    int32_t launch_year;
    double memory_bytes;        /* visible to software */
    double memory_limit_bytes;  /* default share a GPU may use of unified memory (Apple), else = memory */
    bool memory_assumed;        /* several sizes exist and the record's was assumed */
    bool unified;               /* memory shared with the host */
    double bandwidth_bytes_s;
    double peak_flop_s[PLM_MATH_COUNT];
    plm_basis peak_basis[PLM_MATH_COUNT];
    plm_basis memory_basis, bandwidth_basis;
    double vector_flop_s;       /* fp32 outside tensor units */
    double exp_s;               /* transcendental evaluations a second */
    int32_t sm_count;           /* SM, CU, Xe core, GPU core, CPU core */
    double clock_hz;
    double l2_bytes, l3_bytes;
    double smem_per_sm_bytes, smem_per_block_bytes;
    int64_t regs_per_sm;
    int32_t warp, max_warps, max_blocks;
    double tdp_w;
    double link_bytes_s;        /* to the peers of a node, each direction, all links together */
    double link_latency_s;
    char link_type[48];
    bool link_switched;         /* any-to-any at full rate (NVSwitch); false = mesh, ring or PCIe */
    double pcie_bytes_s;        /* host link, each direction */
    double net_bytes_s, net_latency_s; /* to other nodes, each device */
    int32_t node_devices;       /* usual devices of a node (8 for HGX) */
    int32_t link_group;         /* devices the link joins (2 for a bridge); larger groups of a node
                                   go over PCIe; 0 = all of the node */
    bool datacenter;            /* a batching server is its usual engine */
} plm_device;

/* id: catalog id, or the path of a JSON record. "ID:COUNT" is split by plm_device_split. The record is
** read and checked (plm_device_check). */
plm_status plm_device_load(const plm_catalog *c, const char *id, plm_device *out, plm_error *err)
    PLM_MUST_USE;
plm_status plm_device_from_record(const char *json, size_t bytes, const char *where,
                                  plm_device *out, plm_error *err) PLM_MUST_USE;
/* "h100_sxm_80:8" -> id (copied, cap bytes) and count 8; count 1 without ":". */
plm_status plm_device_split(const char *text, char *id, size_t cap, int64_t *count, plm_error *err)
    PLM_MUST_USE;
/* Physics: bandwidth, peak and capacity inside sane bounds, peaks ordered (fp8 >= fp16 ...), memory
** a device of its class can have. The error names the figure. The catalog test runs it on all. */
plm_status plm_device_check(const plm_device *d, plm_error *err) PLM_MUST_USE;
/* Dense peak for arithmetic of a kind with fallbacks the hardware has (bf16 -> fp16 -> fp32 vector;
** fp8 -> fp16; int8 -> ...): the rate at which such products can be made, 0 if none is known. */
double plm_device_peak(const plm_device *d, plm_math m);

/* ---- occupancy (occupancy.c); source hw_facts section a, NVIDIA cuda_occupancy.h 13.0 ---- */
typedef struct plm_occupancy {
    int32_t blocks_per_sm, warps_per_sm, max_warps;
    double occupancy;
    const char *limiter; /* "warps", "registers", "shared memory", "blocks", "barriers" */
} plm_occupancy;
/* NVIDIA: by compute capability (70, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121). */
plm_status plm_occupancy_nvidia(int32_t cc, int64_t threads, int64_t regs, int64_t smem_bytes,
                                plm_occupancy *out, plm_error *err) PLM_MUST_USE;
/* AMD CDNA: target "gfx90a", "gfx942", "gfx950"; waves per SIMD as blocks... see occupancy.c. */
plm_status plm_occupancy_amd(const char *target, int32_t wave, int64_t threads, int64_t vgpr,
                             int64_t agpr, int64_t sgpr, int64_t lds_bytes, plm_occupancy *out,
                             plm_error *err) PLM_MUST_USE;
/* By device record (uses target). */
plm_status plm_occupancy_device(const plm_device *d, int64_t threads, int64_t regs,
                                int64_t smem_bytes, plm_occupancy *out, plm_error *err)
    PLM_MUST_USE;
/* Bytes one SM must keep in flight to saturate memory, and warps that takes with `bytes` each. */
double plm_bytes_in_flight(double bandwidth_bytes_s, double sm, double clock_hz,
                           double latency_cycles);
#endif
