// permuted_grad[i, :] = grad[index[i], :]      a row of +0 where index[i] is -1
// The map goes from permuted rows to tokens: the loop runs over the M rows, each with one source.
!D = !moe.dtype<"D">
func.func @padded(%unpermuted_tokens_grad: tensor<?x?x!D> {moe.dims = ["R", "H"]},
                  %sorted_indices: tensor<?xi32> {moe.dims = ["M"]})
    -> (tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "permuted_tokens_grad"})
    attributes {moe.tokens = "M"} {
  %grad = moe.gather_rows %unpermuted_tokens_grad at %sorted_indices : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  func.return %grad : tensor<?x?x!D>
}
