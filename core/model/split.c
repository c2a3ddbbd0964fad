#include "core/model/load.h"

/* Split files of a GGUF model: split.no counts from zero, file names from one. */
plm_status plm_split_check(const plm_split_part *parts, size_t n, plm_error *err)
{
    if (n == 0)
        return plm_fail(err, PLM_E_INVALID, "split, no parts: nothing to check; name the parts");
    int64_t count = parts[0].count, total = parts[0].tensors_total, sum = 0;
    for (size_t i = 0; i < n; i++) {
        const plm_split_part *p = &parts[i];
        if (p->count != count || p->tensors_total != total)
            return plm_fail(
                err, PLM_E_INVALID,
                "split, part %zu: of a set of %lld parts and %lld tensors, the first of "
                "%lld and %lld; keep the parts of one model together",
                i + 1, (long long)p->count, (long long)p->tensors_total, (long long)count,
                (long long)total);
        if (p->no < 0 || p->no >= count || p->tensors < 0 || p->tensors > total)
            return plm_fail(err, PLM_E_INVALID,
                            "split, part %zu: number %lld of %lld parts; "
                            "download it again",
                            i + 1, (long long)p->no, (long long)count);
        for (size_t k = 0; k < i; k++)
            if (parts[k].no == p->no)
                return plm_fail(err, PLM_E_INVALID,
                                "split, part %zu: number %lld is there twice; "
                                "keep one",
                                i + 1, (long long)p->no);
        sum += p->tensors <= total - sum ? p->tensors : total - sum + 1;
        if (sum > total)
            return plm_fail(err, PLM_E_INVALID,
                            "split, part %zu: more tensors than the set's %lld; "
                            "download it again",
                            i + 1, (long long)total);
    }
    if ((int64_t)n < count) {
        for (int64_t no = 0; no < count; no++) {
            size_t k = 0;
            while (k < n && parts[k].no != no)
                k++;
            if (k == n)
                return plm_fail(err, PLM_E_INVALID,
                                "split, part %lld of %lld: missing; put it beside "
                                "the others",
                                (long long)no + 1, (long long)count);
        }
    }
    if (sum != total)
        return plm_fail(err, PLM_E_INVALID,
                        "split, all parts: %lld tensors, want %lld; a part is "
                        "cut, download it again",
                        (long long)sum, (long long)total);
    return PLM_OK;
}
