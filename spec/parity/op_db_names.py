"""spec/parity/op_db_names.py: the names of PyTorch's operator database that are not compared here,
by the reason. A name that ltrain has an operation of is compared all the same (op_db.py)."""

LACKING = {
    "complex numbers are not a dtype": """
        angle cdouble cfloat chalf complex conj conj_physical imag isreal polar real
        resolve_conj resolve_neg view_as_complex view_as_real linalg.eig linalg.eigvals
        sgn vdot""",
    "draws: other random numbers": """
        bernoulli cauchy exponential geometric log_normal multinomial
        nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout2d
        nn.functional.dropout3d nn.functional.feature_alpha_dropout
        nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
        nn.functional.rrelu normal rand_like randint randint_like randn randn_like uniform""",
    "masked tensors and sparse ones are no kinds of tensors": """
        masked.amax masked.amin masked.argmax masked.argmin masked.cumprod masked.cumsum
        masked.log_softmax masked.logaddexp masked.logsumexp masked.mean masked.median
        masked.norm masked.normalize masked.prod masked.softmax masked.softmin masked.std
        masked.sum masked.var sparse.mm sparse.sampled_addmm to_sparse""",
    "a side of PyTorch itself": """
        _batch_norm_with_update _chunk_cat _native_batch_norm_legit _segment_reduce
        _softmax_backward_data _unsafe_masked_index _unsafe_masked_index_put_accumulate
        _upsample_bilinear2d_aa grid_sampler_2d grid_sampler_3d hash_tensor
        jiterator_2inputs_2outputs jiterator_4inputs_with_extra_args jiterator_binary
        jiterator_binary_return_by_ref jiterator_unary max_pool2d_with_indices_backward
        native_batch_norm native_dropout_backward native_group_norm native_layer_norm
        nn.functional.linear_cross_entropy nn.functional.multi_head_attention_forward
        torch._scaled_mm torch._scaled_mm_v2 torch.ops.aten._efficient_attention_forward
        torch.ops.aten._flash_attention_forward torch.ops.aten._safe_softmax.default
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu unsafe_chunk unsafe_split
        scalar_tensor""",
    "a copy by another name: clone after the view": """
        alias_copy as_strided_copy diagonal_copy expand_copy narrow_copy permute_copy
        split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy
        unsqueeze_copy view_copy""",
    "methods of tensors, lists and creation, tested in spec/bind": """
        arange as_strided as_strided_scatter bfloat16 bool broadcast_shapes broadcast_tensors
        byte char chunk contiguous double empty empty_like empty_permuted empty_strided equal
        eye float full full_like half int long new_empty new_empty_strided new_full new_ones
        new_zeros ones ones_like short split split_with_sizes to unbind zeros zeros_like
        linspace logspace allclose""",
    "pairs for complex numbers, arbitrary signs: compared by spec/parity/rooms.lua": """
        fft.fft fft.fftshift fft.ifft fft.ifftshift fft.irfft fft.rfft istft stft
        linalg.cholesky linalg.cond linalg.cross linalg.det linalg.diagonal linalg.eigh
        linalg.eigvalsh linalg.inv linalg.lstsq linalg.matrix_norm linalg.matrix_power
        linalg.matrix_rank linalg.multi_dot linalg.norm linalg.pinv linalg.qr linalg.slogdet
        linalg.solve linalg.solve_triangular linalg.svd linalg.svdvals linalg.vecdot""",
    "Bunch and Kaufman's factorization, which has two kinds of pivots": """
        linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve""",
    "a random basis, arbitrary signs: compared with svd in spec/linalg": """
        pca_lowrank svd_lowrank""",
    "another name for what is compared": """
        H T mH mT __getitem__ __radd__ __rdiv__ __rmatmul__ __rmod__ __rmul__ __rpow__ __rsub__
        clamp_max clamp_min fill item positive reshape_as rsub slice_scatter subtract
        true_divide view_as expand_as zero_ resize_ resize_as_ __rand__ __ror__ __rxor__
        nn.functional.upsample_bilinear nn.functional.upsample_nearest""",
    "a line of other operations": """
        constant_pad_nd repeat trapz tril_indices triu_indices sum_to_size""",
    "arguments that differ, functions of Lua: compared in spec/parity, tested in spec/ops": """
        norm max min nn.functional.gelu nn.functional.softplus nn.functional.batch_norm
        nn.functional.max_pool2d slice nn.functional.scaled_dot_product_attention digamma erfinv
        lgamma xlogy bincount index_put bitwise_and bitwise_left_shift bitwise_not bitwise_or
        bitwise_right_shift bitwise_xor bucketize cummax cummin cumprod gcd histc index_reduce
        logcumsumexp masked_scatter median mode nanmedian quantile scatter scatter_reduce
        searchsorted take_along_dim unfold unique unique_consecutive
        nn.functional.binary_cross_entropy nn.functional.celu
        nn.functional.cosine_embedding_loss nn.functional.cosine_similarity
        nn.functional.ctc_loss nn.functional.elu nn.functional.gaussian_nll_loss
        nn.functional.glu nn.functional.group_norm nn.functional.hardshrink
        nn.functional.hardsigmoid nn.functional.hardswish nn.functional.hardtanh
        nn.functional.hinge_embedding_loss nn.functional.huber_loss nn.functional.instance_norm
        nn.functional.kl_div nn.functional.leaky_relu nn.functional.logsigmoid
        nn.functional.margin_ranking_loss nn.functional.mish nn.functional.multi_margin_loss
        nn.functional.multilabel_margin_loss nn.functional.multilabel_soft_margin_loss
        nn.functional.nll_loss nn.functional.normalize nn.functional.poisson_nll_loss
        nn.functional.prelu nn.functional.relu6 nn.functional.rms_norm nn.functional.selu
        nn.functional.smooth_l1_loss nn.functional.soft_margin_loss nn.functional.softmin
        nn.functional.softshrink nn.functional.softsign nn.functional.tanhshrink
        nn.functional.threshold nn.functional.triplet_margin_loss nn.functional.unfold acos
        addcdiv addcmul aminmax asin atan atan2 cdist cosh count_nonzero diag diagonal dist
        isinf lerp log10 log2 logaddexp meshgrid nanmean nansum nan_to_num repeat_interleave
        roll rot90 sinh std_mean tan tensor_split tile trunc ceil var_mean baddbmm dot kron svd
        tensordot einsum cross""",
}
