/* gemm.c - tile and wave quantisation of matrix products. */
#include "sim/device/cost.h"

/* Smallest whole number >= x, x >= 0. ceil() is a call on plain x86-64; costs are counted in ns. */
static double up(double x)
{
    if (!(x < 1e15))
        return x;
    double t = (double)(int64_t)x;
    return t < x ? t + 1.0 : t;
}

/* hw_facts d.2: tiles = ceil(M/BM) ceil(N/BN), waves = ceil(tiles/SM), eff_wave = tiles/(waves SM),
** eff_tile = M N/(tiles BM BN); stream-K deals K iterations instead of tiles:
** iters/(SM ceil(iters/SM)) eff_tile. All zeros for an empty product. */
plm_tiling plm_gemm_tiling(double m, double n, double k, double bm, double bn, double bk, double sm)
{
    plm_tiling t = {0};
    if (!(m > 0 && n > 0 && k > 0 && bm > 0 && bn > 0 && bk > 0 && sm > 0))
        return t;
    t.tiles = up(m / bm) * up(n / bn);
    t.waves = up(t.tiles / sm);
    t.eff_wave = t.tiles / (t.waves * sm);
    t.eff_tile = m * n / (t.tiles * bm * bn);
    t.eff = t.eff_wave * t.eff_tile;
    double iters = t.tiles * up(k / bk);
    t.eff_stream_k = iters / (sm * up(iters / sm)) * t.eff_tile;
    return t;
}

/* Tiles of GEMM libraries. A smaller tile reads its operands more often from cache; `keep` is the rate
** it is taken to reach, of that of the largest, when it fills the device: I/(I + 8) over its value at
** 256 x 128, with I = BM BN/(BM + BN) the products made of each operand element. Inferred, set by
** hand: the form is the operand traffic of a tile, the 8 is not measured. */
static const struct {
    double bm, bn, keep;
} tiles[] = {
    {256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.973}, {256, 64, 0.947}, {64, 256, 0.947},
    {128, 64, 0.922}, {64, 128, 0.922}, {64, 64, 0.876}, {32, 128, 0.834}, {16, 128, 0.701},
};
#define N_TILES (sizeof tiles / sizeof tiles[0])

enum { SPLIT_MAX = 16, SPLIT_K_LEAST = 256 }; /* parts of K, and the shortest part worth a block */

typedef struct choice {
    double eff, workspace, cost;
} choice;

/* Keeps the cheaper of *best and this tile. flop_s: seconds of the product at eff 1. */
static void try_tile(const plm_machine *m, const plm_work *w, double bm, double bn, double keep,
                     double flop_s, choice *best)
{
    double sm = (double)m->dev.sm_count, groups = w->groups > 1 ? w->groups : 1.0;
    double count = groups * up(w->m / bm) * up(w->n / bn);
    double fill = groups * w->m * w->n / (count * bm * bn);
    double eff = count / (up(count / sm) * sm) * fill * keep;
    double cost = flop_s / eff;
    if (cost < best->cost)
        *best = (choice){eff, 0.0, cost};
    if (count * 2.0 > sm)
        return;
    double split = (double)(int64_t)(sm / count);
    double most = w->k / SPLIT_K_LEAST;
    split = split > SPLIT_MAX ? SPLIT_MAX : split;
    split = split > most ? (double)(int64_t)most : split;
    if (split < 2.0)
        return;
    /* Each part writes its float32 sums once; they are read and added once (hw_facts d.2). */
    double bytes = split * groups * w->m * w->n * 4.0;
    eff = count * split / (up(count * split / sm) * sm) * fill * keep;
    cost = flop_s / eff + bytes * m->inv_bandwidth;
    if (cost < best->cost)
        *best = (choice){eff, bytes, cost};
}

double plm_gemm_eff(const plm_machine *m, const plm_work *w, double *workspace_bytes)
{
    choice best = {1.0, 0.0, 1e300};
    *workspace_bytes = 0.0;
    if (!(w->m > 0 && w->n > 0 && w->k > 0) || m->dev.sm_count <= 0)
        return 1.0;
    double flop_s = w->tensor_flop * m->inv_peak[plm_cost_math(&m->prof, w->weight_dtype,
                                                               w->act_dtype)];
    if (m->prof.tile_m > 0 && m->prof.tile_n > 0) {
        try_tile(m, w, m->prof.tile_m, m->prof.tile_n, 1.0, flop_s, &best);
    } else {
        for (size_t i = 0; i < N_TILES; i++)
            try_tile(m, w, tiles[i].bm, tiles[i].bn, tiles[i].keep, flop_s, &best);
    }
    *workspace_bytes = best.workspace;
    return best.eff;
}
