"""Objectives in place of the exact score loss, each quadratic in alpha.

With s = grad log p~ and H its Hessian, the exact loss of a row is tr H + |s|^2 / 2. Every objective here takes two
kinds of numbers of log p~ at a row: slopes, whose squares it halves and adds, and bends, which it adds,

    J = sum_a [ slope_a^2 / 2 + pull_a slope_a ] + sum_s bend_s,

and both are linear in log p~. So with k the kernels to the inducing points, f = alpha.k and log p~ = f + log q0,

    G = E slope(k) slope(k)',  h = E bend(k),  b_first = E slope(k) (slope(log q0) + pull),

and Q alpha + b = 0 on Dt and the gradient through it stay what they are (`statistics`, `graph`).

    objective              slopes, bends at a row x of D coordinates                                       expectation
    exact                  d_i, d_i^2 along all D coordinates                                              exact
    sliced                 u'grad, u'Hess u along S directions u = v / sqrt(S), signs v: E sum u u' = I    exact
    sliced_vr              d_i along all coordinates; u'Hess u as in sliced                                exact
    finite_difference      as sliced, from f at x and x +- t v, |t v| the step: error O(step^2)            near sliced
    denoising              d_i at x + std e, e ~ N(0, I), pull e / std, no bends                           noised rows
    curvature_propagation  d_i; an estimate of the trace from signs at every unit of the networks          exact
    approximate_backprop   d_i; the trace without mixed derivatives inside the networks                    another loss

sliced: v'Hv + (v's)^2 / 2 (Song, Garg, Shi, Ermon 2019); signs, because their v'Hv has the least variance. sliced_vr
has |s|^2 / 2, the known expectation of the second term. Only sliced and finite_difference cost O(S) in everything; for
the others G needs first derivatives in every coordinate, about half the cost of the exact statistics, while their loss
on Dv takes one backward pass.

finite_difference: (f(x + tv) - f(x - tv)) / 2t and (f(x + tv) + f(x - tv) - 2 f(x)) / t^2 (Pang, Xu, Li, Song, Ermon,
Zhu 2020) of f alone: the derivatives of log q0 are known.

denoising: |s(x~) + (x~ - x) / std^2|^2 / 2 = |s|^2 / 2 + s.e / std + a constant, which is left out (Vincent 2011). As
E[s.e / std] = E[tr H] at x~, this is the exact loss for the density of the noised rows, not of the rows. To second
order in std it is larger by std^2 / 2 times the Laplacian of the exact loss.

curvature_propagation, approximate_backprop: see `propagation`.

The term lambda_C of the exact fit is sum_i (d_i^2 log p~)^2. Along directions it is sum_u (u'Hu)^2 / |u|^2, which is
the same for coordinates; in general it also counts mixed derivatives: E = [(tr H)^2 + 2 sum_{i != j} H_ij^2] / D.
Estimates t of the trace add t^2 / D. denoising has no second derivatives and leaves the term out.

Where the exact loss is meant to judge (validation, the end of phase 2, test) it always does, whatever was trained.
"""
