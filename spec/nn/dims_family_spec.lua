-- spec/nn/dims_family_spec.lua: layers for one, two and three dims that share a file.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn

describe("layers of a family", function()
  it("are classes of their own, made once, below one parent", function()
    assert.equal(nn.Conv2d, require("ltrain.nn.ConvNd")[2])
    assert.equal("Conv1d Conv2d Conv3d", ("%s %s %s"):format(nn.Conv1d.__name, nn.Conv2d.__name,
      nn.Conv3d.__name))
    assert.not_equal(nn.Conv1d, nn.Conv2d)
    assert.equal(nn.Conv1d.super, nn.Conv3d.super)
  end)

  it("are listed by their names, the file is not", function()
    local found = {}
    for _, name in pairs(nn) do found[name] = (found[name] or 0) + 1 end
    for n = 1, 3 do assert.equal(1, found["MaxPool" .. n .. "d"]) end
    assert.is_nil(found.MaxPoolNd)
    assert.matches("nn: there is no 'MaxPoolNd'; did you mean 'MaxPool[123]d'",
      error_of(function() return nn.MaxPoolNd end))
    assert.matches("nn: there is no 'Conv4d'", error_of(function() return nn.Conv4d end))
  end)

  it("say the shapes of their number of dims", function()
    assert.matches("nn.Dropout1d: x must be [B, C, L]: got", error_of(function()
      nn.Dropout1d(0.5)(lt.ones(2, 3, 4, 5))
    end), 1, true)
    assert.matches("nn.InstanceNorm3d: x must be [B, C, D, H, W] or [C, D, H, W] with 2 channels",
      error_of(function() nn.InstanceNorm3d(2)(lt.ones(3, 4, 5, 6)) end), 1, true)
  end)

  it("are documented by the comments of the file", function()
    local source = require "ltrain.apps.prompt.doc_comments"
    local said = source.of "ltrain.nn.ConvTranspose3d"
    assert.matches("^Transposed convolution in three dims: .* D depth, H height, W width%.$",
      said.about)
    local forward = {}
    for _, entry in ipairs(said.functions) do
      if entry.name == "forward" then forward = entry.params end
    end
    assert.same({ "x Tensor [B, I, D, H, W] or [I, D, H, W] -> [B, O, D', H', W']" }, forward)
  end)

  it("have a state that another number of dims refuses by its shape", function()
    assert.matches("weight", error_of(function()
      nn.Conv2d(1, 1, 2):load_state_dict(nn.Conv1d(1, 1, 2):state_dict())
    end))
  end)
end)
