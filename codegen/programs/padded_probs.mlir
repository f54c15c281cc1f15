// permuted_grad[i, :] = round_D(grad[index[i], :] * probs[i])               a row of +0 where index[i] is -1
// probs_grad[i]       = round_P(sum_j permuted[i, j] * grad[index[i], j])   0 where index[i] is -1
// The map goes from permuted rows to tokens: the loop runs over the M rows, each with one source.
!D = !moe.dtype<"D">
!P = !moe.dtype<"P">
func.func @padded_probs(%permuted_tokens: tensor<?x?x!D> {moe.dims = ["M", "H"]},
                        %unpermuted_tokens_grad: tensor<?x?x!D> {moe.dims = ["R", "H"]},
                        %sorted_indices: tensor<?xi32> {moe.dims = ["M"]},
                        %probs: tensor<?x!P> {moe.dims = ["M"]})
    -> (tensor<?x?x!D> {moe.dims = ["M", "H"], moe.name = "permuted_tokens_grad"},
        tensor<?x!P> {moe.dims = ["M"], moe.name = "probs_grad"})
    attributes {moe.tokens = "M"} {
  %active = moe.active_slots %sorted_indices in "R" : (tensor<?xi32>) -> tensor<?xi1>
  %grad = moe.gather_rows %unpermuted_tokens_grad at %sorted_indices : (tensor<?x?x!D>, tensor<?xi32>) -> tensor<?x?x!D>
  %scaled = moe.scale_rows %grad by %probs : (tensor<?x?x!D>, tensor<?x!P>) -> tensor<?x?x!D>
  %out = moe.select_slots %scaled where %active : (tensor<?x?x!D>, tensor<?xi1>) -> tensor<?x?x!D>

  %dot = moe.row_dot %permuted_tokens, %grad : (tensor<?x?x!D>, tensor<?x?x!D>) -> tensor<?x!P>
  %gprobs = moe.select_slots %dot where %active : (tensor<?x!P>, tensor<?xi1>) -> tensor<?x!P>
  func.return %out, %gprobs : tensor<?x?x!D>, tensor<?x!P>
}
