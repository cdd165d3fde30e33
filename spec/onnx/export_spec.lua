-- spec/onnx/export_spec.lua: what an ONNX file holds, and what evaluate.lua computes from it. That
-- onnxruntime computes the same is shown by runtime_spec.lua.
local error_of = require "spec.error_of"
local evaluate = require "spec.onnx.evaluate"
local lt = require "ltrain"
local models = require "spec.onnx.models"
local read = require "spec.onnx.reader"
local nn = lt.nn

local F32 <const>, I64 <const> = 1, 7

describe("lt.onnx.export", function()
  local path
  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  local function exported(model, inputs, options)
    lt.onnx.export(model, inputs, path, options)
    return read(path)
  end

  -- A function of one tensor.
  local function file_of(fn, x, options) return exported(fn, x or lt.randn(3, 4), options) end

  it("names weights as the state dict does, and holds their bytes", function()
    local model <const> = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    local file <const> = exported(model, lt.randn(5, 4))
    assert.equal(17, file.opset)
    assert.same({ "Gemm", "Relu", "Gemm", "Identity" }, file.ops)
    assert.same({ "input", "0.weight", "0.bias" }, file.nodes[1].inputs)
    assert.equal(1, file.nodes[1].attributes.transB)
    for name, x in next, model:state_dict() do
      local kept <const> = file.initializers[name]
      assert.same({ F32, x.shape, x:detach():tobytes() }, { kept.dtype, kept.shape, kept.bytes })
    end
    assert.same({ { name = "input", dtype = F32, shape = { 5, 4 } } }, file.inputs)
    assert.same({ { name = "output", dtype = F32, shape = { 5, 2 } } }, file.outputs)
  end)

  it("connects nodes by the values that they make", function()
    local file <const> = file_of(function(x) return (x * 2 + x):tanh() end)
    assert.same({ "Mul", "Add", "Tanh", "Identity" }, file.ops)
    assert.equal("input", file.nodes[1].inputs[1])
    assert.same({ file.nodes[1].outputs[1], "input" }, file.nodes[2].inputs)
    assert.same(file.nodes[2].outputs, file.nodes[3].inputs)
    assert.same({ "output" }, file.nodes[4].outputs)
    local two <const> = file.initializers[file.nodes[1].inputs[2]]
    assert.equal(2.0, (string.unpack("<f", two.bytes)))
  end)

  it("has the numbers of activations", function()
    local file <const> = file_of(function(x) return x:softplus(2, 0.5):leaky_relu(0.2) end)
    assert.same({ "Mul", "Softplus", "Div", "Greater", "Where", "Mul", "Greater", "Where",
      "Identity" }, file.ops)
    assert.same({ "Softplus", "Identity" }, file_of(function(x) return x:softplus() end).ops)
    assert.same({ "Clip", "Identity" }, file_of(function(x) return x:relu6() end).ops)
  end)

  it("adds rows where an index that is an input says", function()
    local file <const> = exported(function(x, index)
      return lt.zeros(5, 4):index_add(index, x, { dim = 1 })
    end, { lt.randn(3, 4), lt.tensor({ 4, 0, 4 }, { dtype = "i64" }) })
    local node
    for _, each in ipairs(file.nodes) do
      node = each.op == "ScatterElements" and each or node
    end
    assert.equal(0, node.attributes.axis)
    assert.equal("input_1", node.inputs[3])
    assert.same({ { 3, 4 }, { 3 } }, { file.inputs[1].shape, file.inputs[2].shape })
  end)

  it("norms without weight and bias have no input for them", function()
    local file <const> = exported(nn.LayerNorm(4, { elementwise_affine = false }), lt.randn(3, 4))
    assert.same({ "Expand", "LayerNormalization", "Identity" }, file.ops)
    assert.equal(2, #file.nodes[2].inputs)
    assert.same({ "Mul", "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Identity" },
      exported(nn.RMSNorm(4), lt.randn(3, 4)).ops)
    assert.same({ "Reshape", "ReduceMean", "Sub", "Mul", "ReduceMean", "Add", "Sqrt", "Div",
                  "Reshape", "Identity" },
      exported(nn.GroupNorm(2, 4, { affine = false }), lt.randn(3, 4, 5)).ops)
  end)

  it("runs the model in eval mode and leaves its mode", function()
    local model <const> = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    assert.same({ "Gemm", "Identity" }, exported(model, lt.randn(2, 4)).ops)
    assert.is_true(model.training)
    assert.is_true(model[2].training)
  end)

  it("keeps modes of parts that were apart", function()
    local model <const> = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    model[2]:eval()
    exported(model, lt.randn(2, 4))
    assert.is_true(model.training)
    assert.is_false(model[2].training)
  end)

  it("takes several inputs and outputs, with names", function()
    local file <const> = exported(function(a, b) return a + b, a:gt(b) end,
      { lt.randn(2), lt.randn(2) },
      { input_names = { "left", "right" }, output_names = { "sum", "more" } })
    assert.same({ "left", "right" }, { file.inputs[1].name, file.inputs[2].name })
    assert.same({ "sum", "more" }, { file.outputs[1].name, file.outputs[2].name })
    assert.equal(9, file.outputs[2].dtype) -- bool
  end)

  it("has named dims where dynamic_axes says so", function()
    local file <const> = file_of(function(x) return x:view(-1), x:view(2, -1, 2) end,
      lt.randn(3, 4), { dynamic_axes = { input = { [1] = "batch" } } })
    assert.same({ "batch", 4 }, file.inputs[1].shape)
    assert.same({ "output_1_1" }, file.outputs[1].shape)
    assert.same({ 2, "batch", 2 }, file.outputs[2].shape)
    assert.equal("Shape", file.ops[1])
  end)

  it("makes a slice of what is one, and gathers the rest", function()
    local file = file_of(function(x) return x:narrow(2, 2, 3) end)
    assert.same({ "Slice", "Identity" }, file.ops)
    file = file_of(function(x) return x:select(2, 3) end)
    assert.same({ "Slice", "Squeeze", "Identity" }, file.ops)
    file = file_of(function(x) return x:diagonal() end)
    assert.same({ "Reshape", "Gather", "Identity" }, file.ops)
    local positions <const> = file.initializers[file.nodes[2].inputs[2]]
    assert.equal(I64, positions.dtype)
    assert.equal(string.pack("<i8i8i8", 0, 5, 10), positions.bytes)
  end)

  it("has no node and no initializer that no output needs", function()
    local unused <const> = nn.Linear(4, 4)
    local file <const> = file_of(function(x)
      unused(x):erfinv()
      local _, positions = x:max(2)
      return positions, x:instance_norm()
    end, lt.randn(2, 3, 4))
    local used = {}
    for _, node in ipairs(file.nodes) do
      for _, name in ipairs(node.inputs) do used[name] = true end
    end
    for name in next, file.initializers do assert.is_true(used[name], name) end
    assert.equal("ArgMax", file.ops[1])
    assert.is_nil(table.concat(file.ops, " "):find "ReduceMax")
  end)

  it("pads by Pad, and flips by a Slice that runs backwards", function()
    local file = file_of(nn.ZeroPad2d { 1, 2, 0, 1 }, lt.randn(1, 2, 3, 4))
    local pads <const> = file.initializers[file.nodes[#file.nodes - 1].inputs[2]]
    assert.equal("Pad", file.ops[#file.ops - 1])
    assert.equal(("i8"):rep(8):pack(0, 0, 0, 1, 0, 0, 1, 2), pads.bytes)
    file = file_of(function(x) return x:flip(2) end)
    assert.same({ "Slice", "Identity" }, file.ops)
  end)

  it("interpolates by Resize: factors follow the input, sizes of the script stay", function()
    local sides <const> = { dynamic_axes = { input = { [3] = "height", [4] = "width" } } }
    for _, aligned in ipairs { false, true } do
      local function enlarged(x)
        local function of(options)
          options.mode, options.align_corners = "bilinear", aligned
          return x:interpolate(options)
        end
        return of { scale_factor = 2 }, of { scale_factor = { 1.5, 0.5 } }, of { size = { 3, 9 } },
          of { scale_factor = 2, recompute_scale_factor = true },
          of { size = { x.shape[3] + 1, x.shape[4] } }
      end
      local file <const> = file_of(enlarged, lt.randn(1, 2, 4, 6), sides)
      assert.same({ 1, 2, 3, 9 }, file.outputs[3].shape)
      assert.same({ 1, 2, "output_5_3", "width" }, file.outputs[5].shape)
      for _, shape in ipairs { { 1, 2, 4, 6 }, { 1, 2, 7, 3 } } do
        local x <const> = lt.randn(shape)
        local got <const> = evaluate(file, { x })
        for k, want in ipairs { enlarged(x) } do
          assert.same(want.shape, got[k].shape)
          assert.is_true((want - got[k]):abs():max():item() < 1e-5)
        end
      end
    end
  end)

  describe("with a sample of one", function()
    local axes <const> = { dynamic_axes = { input = { "batch", "length" } } }

    it("has no size of the sample in the file", function()
      local file <const> = file_of(function(x)
        local y = x + lt.arange(x.shape[2]):view(-1, 1)
        return y:select(2, -1), y:narrow(2, 1, x.shape[2] - 1), y:flatten(2)
      end, lt.randn(1, 1, 4), axes)
      assert.same({ { "batch", 4 }, { "batch", "output_2_2", 4 }, { "batch", "output_3_2" } },
        { file.outputs[1].shape, file.outputs[2].shape, file.outputs[3].shape })
      assert.same({ "batch", "length", 4 }, file.inputs[1].shape)
      assert.truthy(table.concat(file.ops, " "):find("Range", 1, true))
    end)

    it("takes the names of outputs' dims", function()
      local file <const> = file_of(function(x) return x:flatten(2) end, lt.randn(1, 1, 4),
        { dynamic_axes = { input = { "batch", "length" }, output = { "batch", "features" } } })
      assert.same({ "batch", "features" }, file.outputs[1].shape)
    end)
  end)

  describe("of a model of lt.models", function()
    for _, case in ipairs(models.cases()) do
      it(("computes what %s does, for inputs of several sizes"):format(case.name), function()
        local file <const> = exported(case.model, case.samples[1], { dynamic_axes = case.axes })
        local _ <close> = lt.no_grad()
        case.model:eval()
        for _, inputs in ipairs(case.samples) do
          local got <const> = evaluate(file, inputs)
          local want <const> = models.tensors(case.model(table.unpack(inputs)))
          assert.equal(#want, #got)
          for k, x in ipairs(want) do
            assert.same(x.shape, got[k].shape)
            local limit <const> = 1e-4 * math.max(1, x:abs():max():item())
            assert.is_true((x - got[k]):abs():max():item() < limit)
          end
        end
      end)
    end
  end)

  it("follows a detached value and one that is written in place", function()
    local file <const> = file_of(function(x)
      local y <const> = x * 2
      y:add_(1)
      return y:detach():exp()
    end)
    assert.same({ "Mul", "Add", "Exp", "Identity" }, file.ops)
    assert.same(file.nodes[2].outputs, file.nodes[3].inputs)
  end)

  it("has the gates of an LSTM in ONNX's order", function()
    local lstm <const> = nn.LSTM(2, 1)
    lstm.weight_ih_l0:detach():copy_(lt.arange(8):view(4, 2))
    local file <const> = exported(function(x) return (lstm(x)) end, lt.randn(1, 3, 2))
    for _, node in ipairs(file.nodes) do
      if node.op == "Gather" and node.inputs[1]:find "constant" then
        local order <const> = file.initializers[node.inputs[2]]
        assert.equal(string.pack("<i8i8i8i8", 0, 3, 1, 2), order.bytes) -- i o f g
        return
      end
    end
    error "no weight is reordered"
  end)

  it("stores a weight that is used twice once", function()
    local shared <const> = nn.Linear(4, 4)
    local file <const> = exported(nn.Sequential(shared, shared), lt.randn(2, 4))
    local names = {}
    for name in next, file.initializers do names[#names + 1] = name end
    assert.equal(2, #names)
  end)

  describe("refuses", function()
    local function check(message, fn, x, options)
      os.remove(path)
      assert.matches(message, error_of(lt.onnx.export, fn, x or lt.randn(3, 4), path, options))
      assert.is_nil(io.open(path))
    end

    it("random numbers, with the line that draws them", function()
      check("randn at .*export_spec.lua:%d+: draws random numbers, which a file cannot: draw them "
        .. "outside of the model",
        function(x) return x + lt.randn(3, 4) end)
    end)
    it("an operation that has no form", function()
      check("erfinv at .*export_spec.lua:%d+: there is no ONNX form of it", function(x)
        return x:erfinv()
      end)
    end)
    it("an operation that is composed of some without a form, by its own name", function()
      check("onnx.export: nonzero at .*export_spec.lua:%d+: there is no ONNX form of it",
        function(x) return x:gt(0):nonzero() end)
      check("onnx.export: indexing at .*export_spec.lua:%d+: there is no ONNX form of it",
        function(x) return x[x:gt(0)] end)
    end)
    it("a result that has no form, where it is used", function()
      local x <const> = lt.randn(1, 1, 4, 4)
      local function pool(v) return v:max_pool2d(2, { return_indices = true }) end
      check("max_pool2d at .*export_spec.lua:%d+: there is no ONNX form", pool, x)
      assert.same({ "MaxPool", "Identity" }, exported(function(v) return (pool(v)) end, x).ops)
    end)
    it("writes into memory that has several views", function()
      check("add at .*spec.lua:%d+: writes into memory that other tensors share", function(x)
        local y = x * 2
        local z <const> = y:t()
        y:add_(1)
        return z
      end)
    end)
    it("paths through the script that depend on a named dim", function()
      check("which operations run depends", function(x)
        for _ = 1, x.shape[1] do x = x:exp() end
        return x
      end, nil, { dynamic_axes = { input = { "n" } } })
    end)
    it("sizes, numbers, constants and parts that depend on a named dim otherwise", function()
      local n <const> = { dynamic_axes = { input = { "n" } } }
      check("a size of 2 depends on the size of 'n': leave it out", function(x)
        return lt.ones(x.shape[1] // 2 + 1) * 1
      end, nil, n)
      check("the number 1.5 depends on the size of 'n'", function(x)
        return x * (x.shape[1] / 2)
      end, nil, n)
      check("one_hot at .*: the number of classes = 3 depends on the size of 'n'", function(x)
        return x:gt(0):long():one_hot { num_classes = x.shape[1] }
      end, nil, n)
      check("slice at .*: a position of %d+ depends on the size of 'n'", function(x)
        return x:slice(1, 1, x.shape[1] // 2 + 1, 5)
      end, lt.randn(16, 4), n)
      check("a constant %[3%] depends on the size of 'n'", function(x)
        local squares = {}
        for k = 1, x.shape[1] do squares[k] = k * k end
        return lt.tensor(squares) * 2
      end, nil, n)
      check("a constant %[3, 4%] depends on the size of 'n'", function(x)
        return x:t():reshape(1, 4, -1):double():interpolate { scale_factor = 1.5, mode = "linear" }
      end, nil, n)
      check("interpolate at .*: the factor = {1.5} depends on the size of 'n'", function(x)
        return x:t():view(1, 4, -1):interpolate { scale_factor = x.shape[1] / 2, mode = "linear" }
      end, nil, n)
      check("max_pool1d at .*: stride = {1, 3} depends on the size of 'n'", function(x)
        return (x:t():max_pool1d(x.shape[1]))
      end, nil, n)
      check("select at .*: a position of 1 depends on the size of 'n'", function(x)
        return x:select(1, (x.shape[1] + 1) // 2) * 1
      end, nil, n)
    end)
    it("a size at which the model fails, with its message", function()
      check("with n = 4 instead of 3 the model fails: .*spec.lua:%d+: too long", function(x)
        if x.shape[1] ~= 3 then error "too long" end
        return x * 1
      end, nil, { dynamic_axes = { input = { "n" } } })
      check("'n' names dims of 3 and of 4", function(x) return x * 1 end, nil,
        { dynamic_axes = { input = { "n", "n" } } })
    end)
    it("a path that cannot be written", function()
      local done <const>, why = lt.onnx.export(nn.Linear(1, 1), lt.ones(1, 1), "/absent/a.onnx")
      assert.is_nil(done)
      assert.matches("^onnx.export: cannot write .*No such file", why)
      assert.is_true(lt.onnx.export(nn.Linear(1, 1), lt.ones(1, 1), path))
    end)
    it("what is not a model, input, path or option", function()
      check("needs a model or a function, got 3", 3)
      check("inputs must be a tensor or a list", function(x) return x end, {})
      check("inputs%[2%] must be a tensor, got 'x'", function(x) return x end, { lt.ones(1), "x" })
      check("what the model returns must be tensors", function() end)
      check("unknown option 'input_name'; did you mean 'input_names'", function() end, nil,
        { input_name = {} })
      check("there is no input or output 'inptu'; did you mean 'input'", function(x) return x end,
        nil, { dynamic_axes = { inptu = { "n" } } })
      check("must be {%[dim%] = 'name'}, dims from 1 to 2", function(x) return x end, nil,
        { dynamic_axes = { input = { [3] = "n" } } })
      check("input_names has 2 names for 1 input", function(x) return x end, nil,
        { input_names = { "a", "b" } })
    end)
  end)
end)
