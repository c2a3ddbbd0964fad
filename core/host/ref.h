/* ref.h - the reference backend: every op but the links by its oracle, scalar double.
**
** Slow and obviously right: it is what kernels are held against. It sits here and not in backends/ since
** the oracles are core/ir's (they define the ops, and the tests of the graph use them without any
** backend); it still gets nothing but what the contract hands to a plugin.
**
** Values lie in memory in the types of the graph and are rounded to them after each op. Weights are
** decoded when a node needs them, a few rows at a time, and not kept. A sequence's keys are gathered in
** order of position, so neither the place of blocks nor the other sequences of a step change a bit. */
#ifndef PLM_HOST_REF_H
#define PLM_HOST_REF_H
#include "plimsoll/backend.h"

const plm_backend *plm_ref_open(const plm_backend_host *host, plm_error *err);

#endif
