// Neither operator: rows scaled by the square of the weight, without rounding in between.
//   out[r, :] = round_D(grad[t, :] * p[t, k] * p[t, k])      r = index[i], for every active slot
!D = !moe.dtype<"D">
!P = !moe.dtype<"P">
func.func @scale_squared(%grad: tensor<?x?x!D> {moe.dims = ["R", "H"]},
                         %index: tensor<?xi32> {moe.dims = ["N"]},
                         %probs: tensor<?x?x!P> {moe.dims = ["R", "K"]})
    -> (tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "out"}) {
  %rows = moe.repeat_rows %grad : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %once = moe.scale_rows %rows by %probs : (tensor<?x?x!D>, tensor<?x?x!P>) -> tensor<?x?xf32>
  %twice = moe.scale_rows %once by %probs : (tensor<?x?xf32>, tensor<?x?x!P>) -> tensor<?x?x!D>
  %out = moe.scatter_rows %twice to %index rows "M" : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  func.return %out : tensor<?x?x!D>
}
