#include "core/ir/op.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/ir/rules.h"

#define plm_work_none NULL
#define plm_oracle_none NULL

static const plm_op_info table[PLM_OP_COUNT] = {
#define PLM_OP(id, name, min_in, max_in, n_out, flags, cls, shape, work, oracle, inputs, attrs,    \
               doc)                                                                                \
    {name, min_in, max_in, n_out, PLM_OPF_##flags, PLM_CLASS_##cls, plm_shape_##shape,             \
     plm_work_##work, plm_oracle_##oracle, inputs, attrs, doc},
#include "core/ir/ops.def"
#undef PLM_OP
};

#define PLM_OP(id, name, min_in, max_in, n_out, ...)                                               \
    _Static_assert(min_in >= 1 && min_in <= max_in && max_in <= PLM_IN_MAX, name " inputs");       \
    _Static_assert(n_out >= 1 && n_out <= PLM_OUT_MAX, name " outputs");
#include "core/ir/ops.def"
#undef PLM_OP

const plm_op_info *plm_op_get(plm_op op)
{
    return (unsigned)op < PLM_OP_COUNT ? &table[op] : NULL;
}

plm_op plm_op_by_name(const char *name)
{
    for (int i = 0; name != NULL && i < PLM_OP_COUNT; i++)
        if (strcmp(name, table[i].name) == 0)
            return (plm_op)i;
    return PLM_OP_COUNT;
}

static int64_t add_to(int64_t sum, int64_t a, int64_t b)
{
    int64_t product, all;
    if (!plm_mul_i64(plm_max_i64(a, 0), plm_max_i64(b, 0), &product) ||
        !plm_add_i64(sum, product, &all))
        return INT64_MAX;
    return all;
}

void plm_batch_symbols(const plm_batch *b, int64_t top_k, int64_t sym[PLM_SYM_COUNT])
{
    memset(sym, 0, PLM_SYM_COUNT * sizeof sym[0]);
    for (uint32_t i = 0; i < b->n_seg; i++) {
        const plm_segment *s = &b->seg[i];
        sym[PLM_SYM_T] = add_to(sym[PLM_SYM_T], s->q_len, s->count);
        sym[PLM_SYM_S] = add_to(sym[PLM_SYM_S], 1, s->count);
        sym[PLM_SYM_C] = add_to(sym[PLM_SYM_C], s->q_len, s->count);
        sym[PLM_SYM_C] = add_to(sym[PLM_SYM_C], s->kv_len, s->count);
    }
    sym[PLM_SYM_R] = b->logit_rows < 0 ? sym[PLM_SYM_S] : b->logit_rows;
    sym[PLM_SYM_E] = add_to(0, sym[PLM_SYM_T], top_k);
}
