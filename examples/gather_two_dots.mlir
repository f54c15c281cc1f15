// Neither operator: two row products for each slot, against two gradients of its token.
//   first[t, k]  = round_P(sum_j x[r, j] * grad[t, j])       r = index[i]; 0 for an inactive slot
//   second[t, k] = round_P(sum_j x[r, j] * other[t, j])
!D = !moe.dtype<"D">
!P = !moe.dtype<"P">
func.func @gather_two_dots(%x: tensor<?x?x!D> {moe.dims = ["M", "H"]},
                           %index: tensor<?xi32> {moe.dims = ["N"]},
                           %grad: tensor<?x?x!D> {moe.dims = ["R", "H"]},
                           %other: tensor<?x?x!D> {moe.dims = ["R", "H"]})
    -> (tensor<?x?x!P> {moe.dims = ["R", "K"], moe.name = "first"},
        tensor<?x?x!P> {moe.dims = ["R", "K"], moe.name = "second"}) {
  %active = moe.active_slots %index in "M" : (tensor<?xi32>) -> tensor<?xi1>
  %rows = moe.gather_rows %x at %index : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %g = moe.repeat_rows %grad : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %o = moe.repeat_rows %other : (tensor<?x?x!D>) -> tensor<?x?x!D>
  %dot_g = moe.row_dot %rows, %g : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?x!P>
  %dot_o = moe.row_dot %rows, %o : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x?x!P>
  %first = moe.select_slots %dot_g where %active : (tensor<?x?x!P>, tensor<?xi1>) -> tensor<?x?x!P>
  %second = moe.select_slots %dot_o where %active : (tensor<?x?x!P>, tensor<?xi1>) -> tensor<?x?x!P>
  func.return %first, %second : tensor<?x?x!P>, tensor<?x?x!P>
}
