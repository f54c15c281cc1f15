// out[r, :] = grad[t, :]      for every active slot, r = index[i]
!D = !moe.dtype<"D">
func.func @plain(%grad_y: tensor<?x?x!D> {moe.dims = ["R", "H"]},
                 %expanded_row_idx: tensor<?xi32> {moe.dims = ["N"]})
    -> (tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "grad_expanded_x"}) {
  %grad = moe.repeat_rows %grad_y : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %out = moe.scatter_rows %grad to %expanded_row_idx rows "M" : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  func.return %out : tensor<?x?x!D>
}
