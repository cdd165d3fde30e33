-- spec/api/by_place_spec.lua: arguments by place, by name and both, beyond layers.
local error_of = require "spec.error_of"
local lt = require "ltrain"

describe("arguments by place", function()
  it("are those of PyTorch's initializers", function()
    local init <const>, w <const> = lt.nn.init, lt.zeros(4, 4)
    local x = init.trunc_normal_(w, 3.0, 0.1, 2.9, 3.1)
    assert(x:amin():item() >= 2.9 and x:amax():item() <= 3.1)
    lt.seed(1)
    local by_place = init.kaiming_uniform_(w, 1.0, "fan_out", "relu"):clone()
    lt.seed(1)
    local by_name = init.kaiming_uniform_(w, { a = 1.0, mode = "fan_out", nonlinearity = "relu" })
    assert(lt.equal(by_place, by_name))
    assert.matches("init%.xavier_normal_: one argument too many: 3",
      error_of(init.xavier_normal_, w, 2, 3))
    assert.matches("gain is given by place and by name",
      error_of(init.xavier_normal_, w, 2, { gain = 2 }))
  end)

  it("are those of torch.fft, torch.linalg and functions with options", function()
    local x <const> = lt.randn(2, 6)
    assert(lt.equal(lt.fft.rfft(x, 4, 1, "ortho"), lt.fft.rfft(x, { n = 4, dim = 1,
      norm = "ortho" })))
    assert(lt.equal(lt.linalg.vector_norm(x, 1, 2, true), x:abs():sum(2, true)))
    assert.equal(4, lt.fft.stft(x[1], 4, 2, 4, lt.fft.hann_window(4, false)).shape[2])
    local image <const> = lt.ones(1, 1, 2, 2)
    assert.same({ 1, 1, 4, 4 }, lt.interpolate(image, 4, nil, "bilinear", true).shape)
    assert.same({ 1, 1, 4, 4 }, image:interpolate(4).shape)
    local w <const> = lt.parameter(lt.ones(2))
    w:sum():backward()
    assert.equal(1.0, lt.nn.clip_grad_norm_({ w }, 1.0, "inf"):item())
  end)

  it("are those of torchmetrics, the task first", function()
    local metrics <const> = lt.metrics
    assert.equal(3, metrics.Accuracy("multiclass", nil, 3, nil, "micro").num_classes)
    assert.equal(0.25, metrics.F1("multilabel", 0.25, nil, 4, "macro").threshold)
    assert.matches("metrics%.AUROC: task = 'multilabel' needs num_labels",
      error_of(metrics.AUROC, "multilabel"))
    assert.matches("task = 'binary' has neither num_classes nor num_labels",
      error_of(metrics.Recall, { task = "binary", num_classes = 2 }))
    local rmse = metrics.MeanSquaredError(false)
    rmse:update(lt.full({ 2 }, 3.0), lt.zeros(2))
    assert.equal(3.0, rmse:compute())
  end)

  it("are those of distributions", function()
    local D <const>, zero <const> = lt.distributions, lt.zeros(2)
    assert.equal(0.5, D.Bernoulli(nil, zero).probs[1]:item())
    assert.equal(0.5, D.Categorical(nil, zero).probs[1]:item())
    assert.equal(0.5, D.Binomial(3, nil, zero).probs[1]:item())
    assert.is_false(D.Normal(0.0, -1.0, false).validate_args)
    assert(lt.equal(lt.eye(2), D.MultivariateNormal(zero, lt.eye(2)).scale_tril))
  end)

  it("are those of loaders and transforms", function()
    local data <const> = lt.data.TensorDataset(lt.ones(8, 2))
    assert.equal(2, #lt.data.DataLoader(data, 4, true))
    assert.equal(0.25, lt.transforms.RandomHorizontalFlip(0.25).p)
    assert.same({ 4, 4, 4, 4 }, lt.transforms.RandomCrop { size = 32, padding = 4 }.padding)
  end)

  it("are those of torch.nn.functional's norms and losses", function()
    local F <const>, x, w, b = lt.nn.functional, lt.randn(4, 6), lt.rand(6), lt.randn(6)
    local y <const>, ids <const> = lt.rand(4, 6), lt.tensor { 0, 5, 2, 1 }
    local side <const> = lt.tensor { 1.0, -1.0, 1.0, 1.0 }
    local calls = {
      { F.layer_norm, { x, 6, w, b, 1e-3 }, { x, { normalized_shape = 6, weight = w, bias = b,
        eps = 1e-3 } } },
      { F.rms_norm, { x, 6, w, 1e-3 }, { x, { normalized_shape = 6, weight = w, eps = 1e-3 } } },
      { F.group_norm, { x, 2, nil, b, 1e-3 }, { x, { num_groups = 2, bias = b, eps = 1e-3 } } },
      { F.batch_norm, { x, b, w, b, w, false, 0.1, 1e-3 }, { x, { running_mean = b,
        running_var = w, weight = b, bias = w, eps = 1e-3 } } },
      { F.batch_norm, { x, nil, nil, w, b, true }, { x, { weight = w, bias = b } } },
      { F.binary_cross_entropy_with_logits, { x, y, w, "sum", b:abs() },
        { x, y, { weight = w, reduction = "sum", pos_weight = b:abs() } } },
      { F.poisson_nll_loss, { y, y, false, true, 1e-3, "sum" },
        { y, y, { log_input = false, full = true, eps = 1e-3, reduction = "sum" } } },
      { F.gaussian_nll_loss, { x, y, y, true, 0.5, "sum" },
        { x, y, y, { full = true, eps = 0.5, reduction = "sum" } } },
      { F.hinge_embedding_loss, { x, x:sign(), 0.5, "sum" },
        { x, x:sign(), { margin = 0.5, reduction = "sum" } } },
      { F.cosine_embedding_loss, { x, y, side, 0.5, "sum" },
        { x, y, side, { margin = 0.5, reduction = "sum" } } },
      { F.margin_ranking_loss, { x, y, x:sign(), 0.5, "sum" },
        { x, y, x:sign(), { margin = 0.5, reduction = "sum" } } },
      { F.triplet_margin_loss, { x, y, -x, 0.5, 1, 1e-3, true, "sum" },
        { x, y, -x, { margin = 0.5, p = 1, eps = 1e-3, swap = true, reduction = "sum" } } },
      { F.multi_margin_loss, { x, ids, 2, 0.5, w, "sum" },
        { x, ids, { p = 2, margin = 0.5, weight = w, reduction = "sum" } } },
      { F.softmax, { x, 2, "f64" }, { x, { dim = 2, dtype = "f64" } } },
      { F.log_softmax, { x, 2 }, { x, { dim = 2 } } }, { F.softmin, { x, 2 }, { x, { dim = 2 } } },
      { F.gelu, { x, "tanh" }, { x, { approximate = "tanh" } } },
      { F.embedding, { ids, x:t() }, { x:t(), ids } },
      { F.embedding_bag, { ids, x:t(), lt.tensor { 0, 3 } },
        { x:t(), ids, { offsets = lt.tensor { 0, 3 } } } },
      { F.dropout, { x, 0.5, false }, { x, { p = 0.0 } } },
    }
    for k, call in ipairs(calls) do
      local f, places, names = table.unpack(call)
      local n = 0
      for place in pairs(places) do n = math.max(n, place) end
      local of_places, of_names = f(table.unpack(places, 1, n)), f(table.unpack(names))
      assert(lt.equal(of_places, of_names), k)
    end
    assert(not lt.equal(x, F.dropout(x, 0.5, true)))
    for _, drop in ipairs { "alpha_dropout", "feature_alpha_dropout" } do
      assert(lt.equal(x, F[drop](x, 0.5, false)))
    end
  end)

  it("are those of methods of tensors and of what makes them, by name too", function()
    local x <const> = lt.arange(6):float():reshape(2, 3)
    for _, name in ipairs { "split", "chunk", "tensor_split" } do
      local by_place = x[name](x, 2, 2)
      for k, part in ipairs(lt[name](x, 2, { dim = 2 })) do assert(lt.equal(by_place[k], part)) end
      assert.equal(#by_place, #x[name](x, 2, { dims = 2 }))
    end
    assert.equal(2, #x:chunk { chunks = 2, dim = 2 })
    assert.equal(3, #x:unbind { dim = 2 })
    assert.equal(3, x:size { dim = 2 })
    assert(lt.allclose(x, x + 0.1, 0.0, 0.2) and not x:allclose(x + 0.1, 0.0, 0.05, true))
    assert.equal("f64", x:to("cpu", "f64", true).dtype)
    assert.equal("f64", lt.tensor({ 1 }, "f64", "cpu", true).dtype)
    assert.same({ 0, 2 }, lt.arange { stop = 4, step = 2 }:tolist())
    assert.same({ 3.0, 3.0 }, lt.full({ 2 }, { fill_value = 3.0 }):tolist())
    assert(lt.randint(3, { 4 }):amax():item() < 3 and x:randint_like(3):amax():item() < 3)
    assert.same({ 2, 3 }, lt.meshgrid(lt.arange(2), lt.arange(3))[2].shape)
    assert.same({ 3, 2 }, lt.meshgrid(lt.arange(2), lt.arange(3), "xy")[2].shape)
    assert(lt.equal(lt.block_diag({ x, x }), lt.block_diag(x, x)))
    assert(lt.equal(lt.cartesian_prod({ x[1], x[2] }), lt.cartesian_prod(x[1], x[2])))
    local w <const> = lt.ones(2):requires_grad_(true)
    local y <const> = w:sum()
    y:backward(lt.tensor(2.0), true)
    y:backward { gradient = lt.tensor(3.0) }
    assert.same({ 5, 5 }, w.grad:tolist())
    assert.same({ 2, 2 }, lt.grad(w:sum(), w, lt.tensor(2.0), true):tolist())
    assert.is_false(lt.parameter(lt.ones(1), false).requires_grad)
  end)

  it("that a method does not know are named", function()
    local x <const> = lt.ones(2, 3)
    local cases = {
      { "chunk: unknown option 'axis'; did you mean 'dim'?", x.chunk, x, 2, { axis = 1 } },
      { "split: argument 'dim' is given twice", x.split, x, 2, 1, { dim = 1 } },
      { "meshgrid: unknown option 'index'; there is indexing", lt.meshgrid, x[1],
        { index = "ij" } },
      { 'autocast: applies to every device: write lt.autocast("bf16"): got', lt.autocast, "cpu" },
    }
    for _, case in ipairs(cases) do
      local message <const> = error_of(table.unpack(case, 2, 6))
      assert(message:find(case[1], 1, true), message)
    end
  end)

  it("in an old order are named in the right one", function()
    local F <const>, x, w = lt.nn.functional, lt.randn(4, 6), lt.rand(6)
    local cases = {
      { "layer_norm: the normalized_shape comes before the tensors; it is layer_norm(x, "
        .. "normalized_shape, weight, bias, eps)", F.layer_norm, x, w, w, { 6 } },
      { "group_norm: the num_groups comes before the tensors", F.group_norm, x, w, w, 2 },
      { "hinge_embedding_loss: argument 'margin' must be a number, got 'sum'; it is "
        .. "hinge_embedding_loss(prediction, target, margin, reduction)", F.hinge_embedding_loss,
        x, x:sign(), "sum", 0.5 },
      { "poisson_nll_loss: argument 'log_input' must be true or false, got 'sum'; it is",
        F.poisson_nll_loss, x, x, "sum", true },
      { "multi_margin_loss: argument 'p' must be a number, got a tensor", F.multi_margin_loss, x,
        lt.tensor { 0, 1, 2, 3 }, w },
      { "binary_cross_entropy_with_logits: argument 'reduction' must be a name, got a tensor",
        F.binary_cross_entropy_with_logits, x, x:sigmoid(), w, w },
      { "batch_norm: training = true updates no running means", F.batch_norm, x, w, w, nil, nil,
        true },
      { "dropout: argument 'p' must be a number, got true", F.dropout, x, true },
    }
    for _, case in ipairs(cases) do
      local message <const> = error_of(table.unpack(case, 2, 9))
      assert(message:find(case[1], 1, true), message)
    end
  end)

  it("are those of classes, where PyTorch has more of them between", function()
    local layer = lt.nn.MultiheadAttention(8, 2, 0.0, true, nil, nil, 4, 4)
    assert.same({ 8, 4 }, layer.k_proj_weight.shape)
    assert.equal("sum", lt.nn.EmbeddingBag(10, 4, nil, nil, nil, "sum").mode)
    assert.matches("unknown option 'max_norm'", error_of(lt.nn.EmbeddingBag, 10, 4, 1.0))
    assert.equal(2, lt.metrics.Accuracy("multiclass", nil, 3, nil, "micro", nil, 2).top_k)
    assert.is_true(lt.GradScaler("cuda", 1024.0, nil, nil, nil, true):is_enabled())
    local path <const> = os.tmpname()
    lt.save(lt.ones(2), path) -- as torch.save has them
    assert.same({ 2 }, lt.load(path, "cpu").shape)
    os.remove(path)
  end)
end)
