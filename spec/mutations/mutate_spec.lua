-- spec/mutations/mutate_spec.lua: scripts with one mistake each, and how some of them end.
-- `./dev mutations` runs those of the examples.
local mutate = require "spec.mutations.mutate"
local child = require "spec.cli.child"

local SCRIPT <const> = [[
local lt = require "ltrain"
local nn = lt.nn
local Net = lt.Module:extend("Net")
function Net:init()
  self.a = nn.Linear(3, 4)
end
function Net:forward(x)
  return self.a(x):relu()
end
function Net:training_step(batch)
  return lt.mse_loss(self(batch), lt.ones(2, 4))
end
function Net:configure_optimizers()
  return lt.optim.SGD(self:parameters(), {lr = 0.1})
end
local trainer = lt.Trainer{max_epochs = 1, logger = false, enable_checkpointing = false}
trainer:fit(Net(), {lt.ones(2, 3)})
]]

local mutants <const> = mutate(SCRIPT)

-- The line with a mistake of the kind, as its text.
local function lines_with(kind)
  local list = {}
  for _, mutant in ipairs(mutants) do
    local k = 0
    for line in mutant.text:gmatch "([^\n]*)\n" do
      k = k + 1
      if k == mutant.line and mutant.kind == kind then list[#list + 1] = line:match "^%s*(.*)$" end
    end
  end
  return list
end

describe("mistakes of one word", function()
  it("are of each kind, and compile", function()
    assert.same({ "self.a = nil" }, lines_with "nil_for_a_layer")
    assert.same({ "local _ = self.a(x):relu()", "local _ = lt.mse_loss(self(batch), lt.ones(2, 4))",
                  "local _ = lt.optim.SGD(self:parameters(), {lr = 0.1})" },
      lines_with "return_dropped")
    assert.same({ "self.a = nn.Linear(4, 4)", "self.a = nn.Linear(3, 5)",
                  "return lt.mse_loss(self(batch), lt.ones(3, 4))" },
      table.move(lines_with "dim_changed", 1, 3, 1, {}))
    assert.same({ "self.a = nn.Linear( 4)", "self.a = nn.Linear(3)", "return self.a():relu()" },
      table.move(lines_with "argument_dropped", 2, 4, 1, {}))
    local last <const> = lines_with "dot_for_colon"
    assert.equal("trainer.fit(Net(), {lt.ones(2, 3)})", last[#last])
    for _, mutant in ipairs(mutants) do
      assert(load(mutant.text) or mutant.kind == "comma_lost", mutant.text)
    end
  end)

  it("are habits of Python and PyTorch too", function()
    assert.same({ "local _ = self.a(x):relu()" }, { lines_with "return_dropped"[1] })
    assert.same({ "self.a = nn.Linear(2, 4)", "self.a = nn.Linear(3, 3)" },
      table.move(lines_with "number_less", 1, 2, 1, {}))
    assert.same({ "self.a = nn.Linear", "return lt.optim.SGD" }, lines_with "class_for_object")
    assert.same({ "return self.a(x).relu", "return lt.optim.SGD(self.parameters, {lr = 0.1})" },
      table.move(lines_with "call_forgotten", 2, 4, 1, {}))
    assert.same({ 'return lt.mse_loss(self(batch), lt.ones(2, 4), {reduction = "none"})' },
      lines_with "loss_of_each")
    assert.same({ "function Net:init() local nn", "function Net:training_step(batch) local lt",
                  "function Net:configure_optimizers() local lt" }, lines_with "upvalue_hidden")
    assert.same({ "self.a = nn.Linear(3  4)" }, { lines_with "comma_lost"[1] })
    assert.same({ 'local lt = require "ltrains"' }, lines_with "require_misspelt")
  end)

  it("end in an error at a line of the script", function()
    local folder <const> = child.folder()
    for _, kind in ipairs { "nil_for_a_layer", "name_misspelt", "dot_for_colon" } do
      for k, mutant in ipairs(mutants) do
        if mutant.kind == kind and k % 5 == 0 then
          child.write(folder .. "/script.lua", mutant.text)
          local status, _, err = child.run({ "run", "script.lua" }, { dir = folder })
          assert.equal(1, status, mutant.text)
          assert.matches("ltrain: script.lua:%d+: ", err)
        end
      end
    end
  end)
end)
