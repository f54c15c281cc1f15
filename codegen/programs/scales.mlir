// out[r, :]    = round_D(grad[t, :] * scale[t, k])        for every active slot, r = index[i]
// gscale[t, k] = round_P(sum_j x[r, j] * grad[t, j])      0 for an inactive slot
!D = !moe.dtype<"D">
!P = !moe.dtype<"P">
func.func @scales(%grad_y: tensor<?x?x!D> {moe.dims = ["R", "H"]},
                  %expanded_row_idx: tensor<?xi32> {moe.dims = ["N"]},
                  %expanded_x: tensor<?x?x!D> {moe.dims = ["M", "H"]},
                  %scales: tensor<?x?x!P> {moe.dims = ["R", "K"]})
    -> (tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "grad_expanded_x"},
        tensor<?x?x!P> {moe.dims = ["R", "K"], moe.name = "grad_scales"}) {
  %grad = moe.repeat_rows %grad_y : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %scaled = moe.scale_rows %grad by %scales : (tensor<?x?x!D>, tensor<?x?x!P>) -> tensor<?x?x!D>
  %out = moe.scatter_rows %scaled to %expanded_row_idx rows "M" : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>

  %x = moe.gather_rows %expanded_x at %expanded_row_idx : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %dot = moe.row_dot %x, %grad : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?x!P>
  %active = moe.active_slots %expanded_row_idx in "M" : (tensor<?xi32>) -> tensor<?xi1>
  %gscale = moe.select_slots %dot where %active : (tensor<?x?x!P>, tensor<?xi1>) -> tensor<?x?x!P>
  func.return %out, %gscale : tensor<?x?x!D>, tensor<?x?x!P>
}
