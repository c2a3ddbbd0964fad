/* collective.c - time of links between ranks: alpha-beta forms of the usual algorithms, and the best
** of those that a machine has. Formulas: hw_facts e.3. */
#include <math.h>

#include "sim/device/cost.h"

double plm_ring_all_reduce_s(double n, double bytes, double alpha, double bw)
{
    return n <= 1 ? 0.0 : 2.0 * (n - 1.0) * alpha + 2.0 * (n - 1.0) / n * bytes / bw;
}

double plm_tree_all_reduce_s(double n, double bytes, double alpha, double bw)
{
    return n <= 1 ? 0.0 : 2.0 * log2(n) * alpha + 2.0 * bytes / bw;
}

/* Each rank reads the array of every peer: one exchange of signals. */
double plm_one_shot_s(double n, double bytes, double alpha, double bw)
{
    return n <= 1 ? 0.0 : alpha + (n - 1.0) * bytes / bw;
}

/* Reduce-scatter and all-gather by loads from peers: two exchanges of signals. */
double plm_two_shot_s(double n, double bytes, double alpha, double bw)
{
    return n <= 1 ? 0.0 : 2.0 * alpha + 2.0 * (n - 1.0) / n * bytes / bw;
}

double plm_all_gather_s(double n, double bytes, double alpha, double bw)
{
    return n <= 1 ? 0.0 : (n - 1.0) * alpha + (n - 1.0) / n * bytes / bw;
}

/* Setting up a reduction in the switch takes about a dozen hops: NCCL's table has 25 us against
** 1.9 to 2.5 us of one NVSwitch hop (hw_facts e.2, e.3). */
#define NVLS_HOPS 12.0
double plm_nvls_all_reduce_s(double n, double bytes, double alpha, double bw)
{
    return n <= 1 ? 0.0 : NVLS_HOPS * alpha + (n + 1.0) / n * bytes / bw;
}
/* Wire rate of in-switch reduction over that of rings, measured at large sizes (hw_facts e.4): 8 H100
** 286 of 361 GB/s, 4 H100 299 of 340, 8 B200 544 of 673. */
#define NVLS_SHARE 0.81

/* ---- topology ---- */

/* Bytes/s each direction that a group of n ranks of one node gives each rank. A group wider than what
** the link joins goes over PCIe. On a full mesh a rank reaches n - 1 peers by n - 1 of its links. A
** record that names no link at all is taken to move data at its network's rate, or through memory. */
static double node_rate(const plm_machine *m, double n)
{
    const plm_device *d = &m->dev;
    double bw = d->link_bytes_s, peers = (double)d->node_devices - 1.0;
    if (d->link_group > 0 && n > (double)d->link_group && d->pcie_bytes_s > 0)
        bw = d->pcie_bytes_s;
    else if (m->mesh && peers > n - 1.0)
        bw *= (n - 1.0) / peers;
    if (bw <= 0)
        bw = d->pcie_bytes_s > 0 ? d->pcie_bytes_s : d->net_bytes_s;
    if (bw <= 0)
        bw = d->bandwidth_bytes_s;
    return bw * m->prof.link_eff;
}

static double net_rate(const plm_machine *m)
{
    const plm_device *d = &m->dev;
    double bw = d->net_bytes_s > 0 ? d->net_bytes_s : d->pcie_bytes_s;
    return bw > 0 ? bw * m->prof.link_eff : node_rate(m, 2.0);
}

/* Kernels that read peers' memory are used up to a message size: one-shot to link_one_shot_bytes,
** two-shot to 16 times that (vLLM: 0.5 MB and 8 MB on Hopper at 4 ranks, hw_facts e.4). */
#define TWO_SHOT_REACH 16.0

static double all_reduce_in_node(const plm_machine *m, double n, double bytes)
{
    double alpha = m->link_alpha_s, bw = node_rate(m, n);
    double best = fmin(plm_ring_all_reduce_s(n, bytes, alpha, bw),
                       plm_tree_all_reduce_s(n, bytes, alpha, bw));
    if (bytes <= m->prof.link_one_shot_bytes)
        best = fmin(best, plm_one_shot_s(n, bytes, alpha, bw));
    if (bytes <= m->prof.link_one_shot_bytes * TWO_SHOT_REACH)
        best = fmin(best, plm_two_shot_s(n, bytes, alpha, bw));
    if (m->nvls && n > 2)
        best = fmin(best, plm_nvls_all_reduce_s(n, bytes, alpha, bw * NVLS_SHARE));
    return best;
}

static double gather_in_node(const plm_machine *m, double n, double bytes)
{
    return plm_all_gather_s(n, bytes, m->link_alpha_s, node_rate(m, n));
}

/* Reduce-scatter in each node, all-reduce of the pieces between nodes, all-gather in each node; or one
** ring through all. */
static double all_reduce_over_nodes(const plm_machine *m, double n, double nodes, double bytes)
{
    double local = n / nodes, alpha = m->net_alpha_s, bw = net_rate(m);
    double piece = bytes / local;
    double between = fmin(plm_ring_all_reduce_s(nodes, piece, alpha, bw),
                          plm_tree_all_reduce_s(nodes, piece, alpha, bw));
    double layered = 2.0 * gather_in_node(m, local, bytes) + between;
    double slow = fmin(bw, node_rate(m, local > 1 ? local : 2.0));
    double hops = 2.0 * (nodes * alpha + (n - 1.0 - nodes) * m->link_alpha_s);
    double flat = fmax(hops, 0.0) + 2.0 * (n - 1.0) / n * bytes / slow;
    return fmin(layered, flat);
}

/* All-gather or reduce-scatter of an array of `bytes`: pieces between nodes, then within. */
static double gather_over_nodes(const plm_machine *m, double n, double nodes, double bytes)
{
    double local = n / nodes;
    return plm_all_gather_s(nodes, bytes / local, m->net_alpha_s, net_rate(m)) +
           gather_in_node(m, local, bytes);
}

/* Each rank sends (n-1)/n of its array; peers are reached side by side through a switch, one after
** the other without. What leaves the node does so at the network's rate at the same time. */
static double all_to_all(const plm_machine *m, double n, double nodes, double bytes)
{
    double local = n / nodes, inside = 0.0;
    if (local > 1)
        inside = (m->dev.link_switched ? 1.0 : local - 1.0) * m->link_alpha_s +
                 (local - 1.0) / n * bytes / node_rate(m, local);
    if (nodes <= 1)
        return inside;
    return fmax(inside, m->net_alpha_s + (nodes - 1.0) / nodes * bytes / net_rate(m));
}

double plm_link_s(const plm_machine *m, plm_link_kind kind, double ranks, double nodes, double bytes)
{
    if (ranks <= 1 || kind == PLM_LINK_NONE)
        return 0.0;
    nodes = nodes < 1 ? 1.0 : nodes > ranks ? ranks : nodes;
    switch (kind) {
    case PLM_LINK_ALL_REDUCE:
        return nodes > 1 ? all_reduce_over_nodes(m, ranks, nodes, bytes)
                         : all_reduce_in_node(m, ranks, bytes);
    case PLM_LINK_ALL_GATHER:
    case PLM_LINK_REDUCE_SCATTER:
        return nodes > 1 ? gather_over_nodes(m, ranks, nodes, bytes)
                         : gather_in_node(m, ranks, bytes);
    case PLM_LINK_ALL_TO_ALL:
        return all_to_all(m, ranks, nodes, bytes);
    case PLM_LINK_SEND:
        return nodes > 1 ? m->net_alpha_s + bytes / net_rate(m)
                         : m->link_alpha_s + bytes / node_rate(m, 2.0);
    case PLM_LINK_NONE:
        break;
    }
    return 0.0;
}
