/* cost.c - the time of one op on one machine.
**
**   time = overhead + max(tensor, vector, exp, memory, link)
**
** overhead  launches * (launch_s + launch_clk / clock + kernel_s of the class + weight_s of the weights' type), hw_facts e.1
**           and the constants of the fits of d.4; and what a kernel takes at least.
** tensor    FLOP / (peak * eff), with tile and wave quantisation where the profile asks for it, and a
**           peak that falls with the power at hand (power_share).
** memory    (bytes + ramp) / (bandwidth * eff): the bandwidth reached grows with the transfer as
**           bytes / (bytes + ramp), which is Little's law with a fixed latency (hw_facts b.3).
**           Activations that fit the last cache come from there. A mat-vec kernel must also take the
**           bytes apart: with c clocks a byte and SM, transfer and decoding overlap as the root of
**           the sum of squares, 1/s = hypot(1 / (bandwidth * eff), c / (SM * clock)), which tells HBM
**           parts of slow SMs from GDDR parts of fast ones. Inferred from decode rates of 18 devices.
** attention tensor and exp share the time of one kernel: the longer in full, of the shorter what the
**           profile leaves unachieved of the tensor peak, so that an ideal kernel overlaps them and a
**           poor one runs them one after the other. Measured kernels lie between (hw_facts c.2:
**           0.7 to 1.4 times the serial rate). */
#include "sim/device/cost.h"

#include <math.h>
#include <string.h>

const char *plm_bound_name(plm_bound b)
{
    static const char *const names[PLM_BOUND_COUNT] = {
#define BOUND_NAME(id, name) [PLM_BOUND_##id] = name,
        PLM_BOUND_MAP(BOUND_NAME)
#undef BOUND_NAME
    };
    return (unsigned)b < PLM_BOUND_COUNT ? names[b] : "unknown";
}

/* ---- binding ---- */

static double inverse(double x)
{
    return x > 0 ? 1.0 / x : 1.0;
}

/* NVLink SHARP came with the third NVSwitch, beside compute capability 9.0. */
static bool has_nvls(const plm_device *d)
{
    int32_t cc = 0;
    if (!d->link_switched || strncmp(d->target, "sm_", 3) != 0)
        return false;
    for (const char *c = d->target + 3; *c >= '0' && *c <= '9' && cc < 10000; c++)
        cc = cc * 10 + (*c - '0');
    return cc >= 90;
}

static void bind_memory(plm_machine *m)
{
    const plm_profile *p = &m->prof;
    m->inv_bandwidth = 1.0 / m->dev.bandwidth_bytes_s;
    for (int i = 0; i < PLM_CLASS_COUNT; i++) {
        m->inv_memory[i] = m->inv_bandwidth * inverse(p->mem_eff[i]);
        m->inv_tensor[i] = inverse(p->tensor_eff[i]);
    }
    m->inv_skinny = p->skinny_eff > 0 ? m->inv_bandwidth / p->skinny_eff
                                      : m->inv_memory[PLM_CLASS_LINEAR];
    m->inv_attn_decode = p->attn_decode_eff > 0 ? m->inv_bandwidth / p->attn_decode_eff
                                                : m->inv_memory[PLM_CLASS_ATTENTION];
    m->inv_moe_small = p->moe_eff_small > 0 ? m->inv_bandwidth / p->moe_eff_small
                                            : m->inv_memory[PLM_CLASS_GROUPED];
    for (int i = 0; i < PLM_DT_COUNT; i++) {
        m->inv_weight[i] = inverse(p->weight_eff[i]);
        m->inv_math[i] = inverse(p->weight_math[i]);
    }
    double sm_hz = (double)m->dev.sm_count * m->dev.clock_hz;
    if (sm_hz > 0) {
        double clk = p->weight_clk / sm_hz;
        m->inv_skinny = hypot(m->inv_skinny, clk);
        m->inv_moe_small = hypot(m->inv_moe_small, clk);
        m->inv_row = p->row_clk / sm_hz;
    }
    m->cache_bytes = m->dev.l3_bytes > m->dev.l2_bytes ? m->dev.l3_bytes : m->dev.l2_bytes;
}

/* Share of the peak that tensor units keep at the device's power. Above power_flop_j operations a joule
** they are throttled: the rate grows as the root of power and peak. Measured over 17 NVIDIA devices
** of 0.7 to 4.3 int8 TOP/s a watt, whose prompt rates in one version of llama.cpp are 0.5th powers of
** that within 10 %. */
static double power_share(const plm_device *d, const plm_profile *p)
{
    double peak = plm_device_peak(d, PLM_MATH_I8);
    if (!(p->power_flop_j > 0 && d->tdp_w > 0 && peak > 0))
        return 1.0;
    return fmin(1.0, sqrt(d->tdp_w * p->power_flop_j / peak));
}

/* Special-function units make 16 results while the FMA lanes make 128 FMA, of 256 FLOP, on NVIDIA since
** Volta (hw_facts c.2); a record without its own figure is taken to have that ratio. */
#define VECTOR_FLOP_PER_EXP 16.0

plm_status plm_machine_bind(const plm_device *d, const plm_profile *p, plm_machine *out,
                            plm_error *err)
{
    memset(out, 0, sizeof *out);
    out->dev = *d;
    out->prof = *p;
    if (!(d->bandwidth_bytes_s > 0))
        return plm_fail(err, PLM_E_INVALID,
                        "device, %s: its record has no memory bandwidth; add it to cost anything",
                        d->id);
    double half = plm_device_peak(d, PLM_MATH_F16);
    if (!(half > 0))
        return plm_fail(err, PLM_E_INVALID,
                        "device, %s: its record has no fp16, bf16 or fp32 peak; add one to cost "
                        "anything",
                        d->id);
    for (int i = 0; i < PLM_MATH_COUNT; i++) {
        double peak = plm_device_peak(d, (plm_math)i);
        out->inv_peak[i] = 1.0 / (peak > 0 ? peak : half);
    }
    double vector = d->vector_flop_s > 0 ? d->vector_flop_s : 1.0 / out->inv_peak[PLM_MATH_F32];
    double exp_s = d->exp_s > 0 ? d->exp_s : vector / VECTOR_FLOP_PER_EXP;
    out->inv_vector = inverse(p->vector_eff) / vector;
    out->inv_exp = inverse(p->exp_eff) / exp_s;
    for (int i = 0; i < PLM_MATH_COUNT; i++)
        out->inv_peak[i] /= power_share(d, p);
    bind_memory(out);
    out->launch_s = p->launch_s + (d->clock_hz > 0 ? p->launch_clk / d->clock_hz : 0.0);
    out->prof.link_eff = p->link_eff > 0 ? p->link_eff : 1.0;
    out->link_alpha_s = p->link_latency_s > 0 ? p->link_latency_s : d->link_latency_s;
    out->net_alpha_s = d->net_latency_s > 0 ? d->net_latency_s : out->link_alpha_s;
    out->mesh = !d->link_switched && strstr(d->link_type, "mesh") != NULL;
    out->nvls = has_nvls(d);
    for (int i = 0; i < PLM_BOUND_COUNT; i++)
        out->scale[i] = 1.0;
    return PLM_OK;
}

/* ---- arithmetic ---- */

static bool narrow(plm_math m)
{
    return m == PLM_MATH_F8 || m == PLM_MATH_I8 || m == PLM_MATH_F6 || m == PLM_MATH_F4 ||
           m == PLM_MATH_I4;
}

plm_math plm_cost_math(const plm_profile *p, plm_dtype weight, plm_dtype act)
{
    plm_math a = (unsigned)act < PLM_DT_COUNT ? plm_dtype_get(act)->math : PLM_MATH_F16;
    /* Kernels that decode weights, and attention, multiply 16-bit numbers though rows are float32. */
    plm_math half = p->acc16 ? PLM_MATH_F16_ACC16 : PLM_MATH_F16;
    plm_math wide = a == PLM_MATH_F32 || a == PLM_MATH_F64 || a == PLM_MATH_F16 ? half : a;
    if ((unsigned)weight >= PLM_DT_COUNT)
        return wide;
    const plm_dtype_info *info = plm_dtype_get(weight);
    plm_math w = info->math;
    if (info->family == PLM_FAMILY_PLAIN && !narrow(w))
        return w == PLM_MATH_F16 ? half : w;
    if (!narrow(a)) {
        bool blocks = info->family == PLM_FAMILY_INTERLEAVED || w == PLM_MATH_I8 ||
                      w == PLM_MATH_I4;
        return p->int8_dot && blocks ? PLM_MATH_I8 : wide;
    }
    if (a == PLM_MATH_F4 || a == PLM_MATH_F6)
        return w == a ? a : PLM_MATH_F8; /* mixed narrow products run at the wider rate */
    return a == PLM_MATH_I4 && w != PLM_MATH_I4 ? PLM_MATH_I8 : a;
}

/* ---- memory ---- */

double plm_cache_share(double bytes, double cache_bytes)
{
    if (bytes * 2.0 <= cache_bytes)
        return 1.0;
    if (bytes >= cache_bytes)
        return 0.0;
    return 2.0 - 2.0 * bytes / cache_bytes;
}

/* Seconds a byte from memory. */
static double byte_s(const plm_machine *m, plm_class cls, const plm_work *w)
{
    if (cls == PLM_CLASS_ATTENTION && w->m <= 1.0)
        return m->inv_attn_decode;
    if (cls == PLM_CLASS_LINEAR && w->m <= m->prof.skinny_m)
        return m->inv_skinny + (w->m > 1.0 ? (w->m - 1.0) * m->inv_row : 0.0);
    if (cls == PLM_CLASS_GROUPED) {
        /* Few experts hit are few tiles in flight: the share of bandwidth goes from moe_eff_small up
           to the class's as all come to be hit. In proportion, so that one more token never makes
           the product quicker. */
        double eff = 1.0 / m->inv_moe_small;
        return 1.0 / (eff + w->group_share * (1.0 / m->inv_memory[cls] - eff));
    }
    return m->inv_memory[cls];
}

/* Keys just written count as activations here: attention counts them again as read from memory, though
** they come from cache, which stands for their way to memory. */
static double memory_s(const plm_machine *m, plm_class cls, const plm_work *w, double resident,
                       double workspace)
{
    double far = w->weight_bytes, near = w->act_read_bytes + w->act_write_bytes +
                                         w->kv_write_bytes + workspace;
    if ((unsigned)w->weight_dtype < PLM_DT_COUNT)
        far *= m->inv_weight[w->weight_dtype];
    far += w->kv_read_bytes + w->state_bytes;
    double share = plm_cache_share(near, m->cache_bytes), cached = near * share;
    double rate = m->prof.cache_rate;
    if (rate > 0) {
        cached += far * resident;
        far -= far * resident;
    }
    far += near - near * share;
    double s = far > 0 ? far + m->prof.ramp_bytes : 0.0;
    if (rate > 0)
        s += cached / rate;
    return s * byte_s(m, cls, w);
}

/* ---- the op ---- */

static bool is_product(plm_class cls)
{
    return cls == PLM_CLASS_LINEAR || cls == PLM_CLASS_GROUPED;
}

void plm_op_cost_resident(const plm_machine *m, plm_class cls, const plm_work *w, double resident,
                          plm_op_time *out)
{
    double *part = out->part_s, workspace = 0.0, launches = (double)w->launches;
    double tensor = 0.0;
    if (w->tensor_flop > 0) {
        plm_math math = plm_cost_math(&m->prof, w->weight_dtype, w->act_dtype);
        tensor = w->tensor_flop * m->inv_peak[math] * m->inv_tensor[cls];
        if ((unsigned)w->weight_dtype < PLM_DT_COUNT)
            tensor *= m->inv_math[w->weight_dtype];
        /* A mat-vec kernel has no tiles to fill. */
        if (m->prof.tile_quant && is_product(cls) && w->m > m->prof.skinny_m)
            tensor /= plm_gemm_eff(m, w, &workspace);
    }
    part[PLM_BOUND_TENSOR] = tensor / m->scale[PLM_BOUND_TENSOR];
    part[PLM_BOUND_VECTOR] = w->vector_flop * m->inv_vector / m->scale[PLM_BOUND_VECTOR];
    part[PLM_BOUND_EXP] = w->exp * m->inv_exp / m->scale[PLM_BOUND_EXP];
    part[PLM_BOUND_MEMORY] = memory_s(m, cls, w, resident, workspace) / m->scale[PLM_BOUND_MEMORY];
    part[PLM_BOUND_LINK] = 0.0;
    if (w->link != PLM_LINK_NONE)
        part[PLM_BOUND_LINK] = plm_link_s(m, w->link, w->ranks, w->nodes, w->link_bytes) /
                               m->scale[PLM_BOUND_LINK];
    plm_bound bound = PLM_BOUND_TENSOR;
    for (int i = 1; i < PLM_BOUND_OVERHEAD; i++)
        if (part[i] > part[bound])
            bound = (plm_bound)i;
    double body = part[bound];
    if (cls == PLM_CLASS_ATTENTION) {
        double a = part[PLM_BOUND_TENSOR], b = part[PLM_BOUND_EXP];
        double eff = 1.0 / m->inv_tensor[cls], both = a > b ? a : b;
        both += eff < 1.0 ? (1.0 - eff) * (a > b ? b : a) : 0.0;
        if (both > body) {
            body = both;
            bound = a >= b ? PLM_BOUND_TENSOR : PLM_BOUND_EXP;
        }
    }
    double each = m->launch_s + m->prof.kernel_s[cls];
    if ((unsigned)w->weight_dtype < PLM_DT_COUNT)
        each += m->prof.weight_s[w->weight_dtype];
    double overhead = launches * each / m->scale[PLM_BOUND_OVERHEAD];
    double least = launches * m->prof.kernel_floor_s / m->scale[PLM_BOUND_OVERHEAD];
    if (cls != PLM_CLASS_LINK && body < least)
        overhead += least - body;
    part[PLM_BOUND_OVERHEAD] = overhead;
    out->time_s = overhead + body;
    out->rest_bound = bound;
    out->bound = overhead > body ? PLM_BOUND_OVERHEAD : bound;
}

void plm_op_cost(const plm_machine *m, plm_class cls, const plm_work *w, plm_op_time *out)
{
    plm_op_cost_resident(m, cls, w, 0.0, out);
}
