// out[r, :]    = round_D(grad[t, :] * scale[t, k])                    for every active slot, r = index[i]
// gscale[t, k] = round_P(sum_j (x[r, j] + bias[e, j]) * grad[t, j])   e = expert[t, k]
// An inactive slot has no x term; its bias term still counts.
!D = !moe.dtype<"D">
!P = !moe.dtype<"P">
func.func @scales_bias(%grad_y: tensor<?x?x!D> {moe.dims = ["R", "H"]},
                       %expanded_row_idx: tensor<?xi32> {moe.dims = ["N"]},
                       %expanded_x: tensor<?x?x!D> {moe.dims = ["M", "H"]},
                       %scales: tensor<?x?x!P> {moe.dims = ["R", "K"]},
                       %expert_idx: tensor<?x?xi32> {moe.dims = ["R", "K"]},
                       %bias: tensor<?x?x!D> {moe.dims = ["E", "H"]})
    -> (tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "grad_expanded_x"},
        tensor<?x?x!P> {moe.dims = ["R", "K"], moe.name = "grad_scales"}) {
  %grad = moe.repeat_rows %grad_y : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %scaled = moe.scale_rows %grad by %scales : (tensor<?x?x!D>, tensor<?x?x!P>) -> tensor<?x?x!D>
  %out = moe.scatter_rows %scaled to %expanded_row_idx rows "M" : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>

  %x = moe.gather_rows %expanded_x at %expanded_row_idx : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %b = moe.gather_rows %bias at %expert_idx : (tensor<?x?x!D>, tensor<?x?xi32>) -> tensor<?x?x!D>
  %xb = moe.add_rows %x, %b : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?xf32>
  %gscale = moe.row_dot %xb, %grad : (tensor<?x?xf32>, tensor<?x?x!D>) -> tensor<?x?x!P>
  func.return %out, %gscale : tensor<?x?x!D>, tensor<?x?x!P>
}
