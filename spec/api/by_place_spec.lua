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
end)
