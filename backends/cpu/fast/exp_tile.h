/* exp_tile.h - exponentials over lanes. */

/* e^x within 2 units in the last place; 0 below -104, infinity above 88.73, NaN stays. x = n ln 2 + r, |r|
** <= ln 2 / 2; polynomial and the two parts of ln 2 are those of expf in Cephes (S. Moshier). */
LANE vf vf_exp(vf x)
{
    x = vf_min(vf_set1(89), vf_max(vf_set1(-104), x)); /* the second operand is kept when NaN */
    vf n = vf_round(vf_mul(x, vf_set1(1.44269504f)));
    vf r = vf_fnma(n, vf_set1(0.693359375f), x);
    r = vf_fnma(n, vf_set1(-2.12194440e-4f), r);
    vf p = vf_set1(1.9875691500e-4f);
    p = vf_fma(p, r, vf_set1(1.3981999507e-3f));
    p = vf_fma(p, r, vf_set1(8.3334519073e-3f));
    p = vf_fma(p, r, vf_set1(4.1665795894e-2f));
    p = vf_fma(p, r, vf_set1(1.6666665459e-1f));
    p = vf_fma(p, r, vf_set1(5.0000001201e-1f));
    p = vf_fma(p, vf_mul(r, r), vf_add(r, vf_set1(1)));
    return vf_scale2(p, n);
}
LANE vf vf_sigmoid(vf x)
{
    return vf_div(vf_set1(1), vf_add(vf_set1(1), vf_exp(vf_sub(vf_zero(), x))));
}
/* limit tanh(x / limit) = limit (1 - 2 / (e^(2x/limit) + 1)): good to 1e-7 of the limit. */
LANE vf vf_cap(vf x, float limit)
{
    vf e = vf_exp(vf_mul(x, vf_set1(2 / limit)));
    vf t = vf_sub(vf_set1(1), vf_div(vf_set1(2), vf_add(e, vf_set1(1))));
    return vf_mul(t, vf_set1(limit));
}
