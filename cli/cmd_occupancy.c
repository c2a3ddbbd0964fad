/* cmd_occupancy.c - occupancy: blocks and warps of a kernel on one SM or CU. */
#include "cli/cli.h"
#include "sim/device/device.h"

plm_status plm_cmd_occupancy(const plm_args *a, const plm_io *io, FILE *out, int *exit_status,
                             plm_error *err)
{
    (void)io;
    if (!a->opt[PLM_OPT_DEVICE].set || !a->opt[PLM_OPT_THREADS].set || !a->opt[PLM_OPT_REGS].set)
        return plm_fail(err, PLM_E_INVALID, "option missing, --device, --threads and --regs: "
                        "occupancy needs all three; see plimsoll occupancy --help");
    plm_catalog *c = NULL;
    plm_device d;
    plm_occupancy r;
    plm_status status;
    PLM_GOTO(plm_catalog_create(plm_args_text(a, PLM_OPT_CATALOG, NULL), &c, err));
    PLM_GOTO(plm_device_load(c, a->opt[PLM_OPT_DEVICE].text, &d, err));
    PLM_GOTO(plm_occupancy_device(&d, a->opt[PLM_OPT_THREADS].count, a->opt[PLM_OPT_REGS].count,
                                  plm_args_count(a, PLM_OPT_SHARED, 0), &r, err));
    *exit_status = r.blocks_per_sm > 0 ? 0 : 1;
    if (a->opt[PLM_OPT_JSON].set) {
        plm_json_out o = {false};
        json_t *j = plm_out_object(&o);
        plm_out_int(&o, j, "blocks_per_sm", r.blocks_per_sm);
        plm_out_int(&o, j, "warps_per_sm", r.warps_per_sm);
        plm_out_real(&o, j, "occupancy", r.occupancy);
        plm_out_text(&o, j, "limiter", r.limiter);
        PLM_GOTO(plm_out_write(&o, j, out, err));
    } else {
        fprintf(out, "%s: %d blocks, %d of %d warps per SM (occupancy %.1f %%), limited by %s\n",
                d.name, r.blocks_per_sm, r.warps_per_sm, r.max_warps, 100 * r.occupancy,
                r.limiter);
    }
done:
    plm_catalog_destroy(c);
    return status;
}
